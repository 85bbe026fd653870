// SPDX-License-Identifier: MIT
/// \file A tensor in one of the storage formats, whichever: build it from coordinates, use it with any kernel, turn it
/// back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/registry.hpp"
#include "polyad/statistics.hpp"
#include "polyad/types.hpp"

namespace polyad {

struct ValueCode;

/// What a format may be told when it is built. A format reads what concerns it; 0 means the paper's guidance.
struct FormatOptions {
  /// Mode (0-based) that a mode-specific format is built for: the output of MTTKRP, the contracted mode of TTV. Unset:
  /// for every mode.
  std::optional<int> mode = std::nullopt;
  /// Rank that sizes depending on the cache are chosen for.
  std::uint64_t rank = 16;
  /// b-csf, hb-csf: longer fibres are split.
  std::uint64_t fibre_threshold = 128;
  /// hicoo: log2 of the side of a block, 1 to 8.
  int block_bits = 0;
  /// hicoo: log2 of the side of a superblock, at least block_bits.
  int superblock_bits = 0;
  /// flycoo: nonzeros of a shard.
  std::uint64_t shard_nonzeros = 0;
  /// flycoo: output rows of a super-shard.
  std::uint64_t supershard_rows = 0;
  /// tiles: bytes of the rows that a tile reads, about; 0: as the size of the second-level cache says.
  std::uint64_t tile_bytes = 0;
  /// sweep: the leaf modes (0-based), which follow each other in the cycle of all modes. Empty: those whose sweep
  /// should cost least. What the planner found (options_for) saves looking for them again.
  std::vector<int> leaf_modes = {};
  /// copies, tiles, merged, sweep-two: how the values of this very tensor are stored. Unset: looked for, a pass over
  /// all of them. What the planner found (options_for) saves looking again. A code that does not suit a sample of the
  /// values is not taken.
  std::shared_ptr<const ValueCode> value_code = nullptr;
};

/// What a paper's formula says a format takes.
struct StoragePrediction {
  double words = 0;          ///< in the paper's words (what it counts: indices, pointers, sometimes values)
  double bytes = 0;          ///< of all arrays as they are built here
  std::string_view formula;  ///< of the words, in the notation of the format's README
  std::string refusal;       ///< why the format cannot be built; empty when it can
};

class TensorBody;

/// A tensor in a storage format: the erased handle. Move-only. Some formats (flycoo) change their order of nonzeros
/// while computing, so one Tensor serves one computation at a time, and sums over its nonzeros (norm, innerprod) may
/// differ in the last bits after an MTTKRP.
class Tensor {
 public:
  /// One structure of a tensor: the only one, or the one for a mode.
  struct Part {
    std::optional<int> mode;  ///< 0-based; unset when it serves all modes
    std::uint64_t bytes = 0;
  };

  /// Empty; only to be assigned to.
  Tensor();
  explicit Tensor(std::vector<std::unique_ptr<TensorBody>> bodies);
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor();

  /// The format's line in the registry.
  [[nodiscard]] const FormatEntry& format() const;
  [[nodiscard]] int order() const;
  [[nodiscard]] const std::vector<std::uint64_t>& dims() const;
  [[nodiscard]] std::uint64_t nnz() const;
  [[nodiscard]] Precision precision() const;
  /// Bytes of all arrays, measured.
  [[nodiscard]] std::uint64_t bytes() const;
  /// The structures it consists of.
  [[nodiscard]] std::vector<Part> parts() const;

  /// Back to coordinates, in the order in which the format stores them. Nothing is lost but labels.
  [[nodiscard]] CooTensor to_coo(const Context& context = {}) const;

  /// The structure to use for a mode: the one built for it, else the first. For the library itself.
  [[nodiscard]] TensorBody& body(int mode) const;

 private:
  std::vector<std::unique_ptr<TensorBody>> bodies_;
};

/// Builds a tensor in the format of that name ('polyad list formats'). The coordinates are not changed.
[[nodiscard]] Tensor build(const CooTensor& x, std::string_view format, const FormatOptions& options = {},
                           const Context& context = {});

/// A tensor whose coordinates stay where they are (format "stream"): arrays that are views of a `.ptn` file (read()),
/// as they were read, nothing having changed them. They are read from the file in windows, two for each thread at a
/// time, so the tensor may be larger than the memory.
[[nodiscard]] Tensor stream_of(CooTensor&& x, const Context& context = {});

/// Whether stream_of can take it: all its arrays are parts of a mapped file and have the types that are computed with.
[[nodiscard]] bool can_stream(const CooTensor& x);

/// What the format's formula predicts for one structure (options.mode for a mode-specific format), without building it.
[[nodiscard]] StoragePrediction predict_storage(const CooTensor& x, const TensorStatistics& statistics,
                                                std::string_view format, const FormatOptions& options = {},
                                                const Context& context = {});

/// The registry's line of a format ("csf" is csf-all); Error (usage) that names the formats there are.
[[nodiscard]] const FormatEntry& format_named(std::string_view name);

}  // namespace polyad
