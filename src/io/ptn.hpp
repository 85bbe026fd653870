// SPDX-License-Identifier: MIT
/// \file Opened `.ptn` files; docs/ptn.md is the specification.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/input_stream.hpp"
#include "io/output_file.hpp"
#include "io/ptn_layout.hpp"
#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/io.hpp"

namespace polyad::io {

/// A `.ptn` file in memory: mapped, or read whole where it cannot be (compressed, standard input). Its head is
/// verified.
class PtnFile {
 public:
  /// Opens the stream, from its beginning; throws Error.
  PtnFile(InputStream& input, const Context& context);

  /// What the head says.
  [[nodiscard]] const ptn::Head& head() const noexcept { return head_; }

  /// The tensor. Arrays that have the wanted types are views of the file, which stays open as long as they live; others
  /// are converted. Labels are copied, and their checksums always verified; those of the arrays if options.verify.
  [[nodiscard]] CooTensor tensor(const ReadOptions& options, const Context& context, ReadReport& report) const;

  /// Verifies all checksums, that the padding is zero, that indices are below the dims, values finite, labels in order
  /// and what is said to be known (sorted, no duplicates) true. Throws Error; returns the bytes verified. Tensors that
  /// view this file and were changed count as damage.
  std::uint64_t verify(const Context& context) const;

 private:
  struct Task;

  [[nodiscard]] const std::byte* data_of(const ptn::Section& s) const noexcept { return bytes_.data() + s.offset; }
  [[noreturn]] void refuse(std::string_view sentence) const;
  /// Lets go of the pages of a part that is done with, when the file is larger than the memory limit.
  void release(const std::byte* data, std::uint64_t bytes) const;
  void check_padding() const;
  void check_known(const Context& context) const;
  void for_each_label(int mode, const std::function<void(std::string_view)>& use) const;
  [[nodiscard]] std::vector<ModeLabels> labels(std::span<const std::uint64_t> dims,
                                               std::vector<std::string>& notes) const;
  void run(std::span<const Task> tasks, std::string_view phase, const Context& context) const;

  std::string name_;
  std::shared_ptr<const void> owner_;
  std::span<std::byte> bytes_;  // kept by owner_
  ptn::Head head_;
  bool mapped_ = false;              // else it was read whole
  bool larger_than_memory_ = false;  // mapped, and larger than the limit: parts that are done with are let go
};

/// Opens a file ("-": standard input) and verifies all of it; see PtnFile::verify.
std::uint64_t verify_ptn(const std::string& path, const Context& context);

/// Writes a tensor. Nothing is gone back to: a first pass over the arrays gives the checksums that the head needs.
void write_ptn(const CooTensor& x, OutputFile& output, const WriteOptions& options, const Context& context);

}  // namespace polyad::io
