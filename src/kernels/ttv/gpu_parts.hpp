// SPDX-License-Identifier: MIT
/// \file How the formats of TTV are cut into parts for a device, and where the sums of a part belong.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/gpu/part.hpp"
#include "kernels/gpu/pipeline_model.hpp"
#include "kernels/ttv/request.hpp"

namespace polyad {

/// A part and where its sums belong.
struct TtvPart {
  gpu::Part part;
  std::uint64_t groups_1 = 1;  ///< work-groups in the second direction
  std::uint64_t out = 0;       ///< numbers that the kernel writes
  std::uint64_t first = 0;     ///< place of the first sum in the result
  std::uint64_t row = 0;       ///< HOCSR: first row
  /// So many of the first sums are of fibres that a part before has begun: added, not written.
  std::uint64_t shared = 0;
};

/// The kernels of a format.
struct TtvDeviceKernel {
  std::string_view unit;
  std::string_view function;
  std::string_view second;  ///< runs after it; empty when there is none
  std::array<std::uint32_t, 2> items = {128, 1};
  std::vector<gpu::Define> defines;
};

/// Cuts a tensor into parts, one after the other. Whole slices when they fit, else whole fibres, else pieces of them.
class TtvCutter {
 public:
  /// Where the next part begins; what it means is the cutter's.
  using Position = std::array<std::uint64_t, 2>;

  virtual ~TtvCutter() = default;
  [[nodiscard]] virtual TtvDeviceKernel kernel() const = 0;
  /// The next part of at most so many bytes, arrays and sums (or the smallest one); false when there is none left.
  virtual bool next(std::uint64_t most_bytes, TtvPart& part) = 0;
  /// What is left.
  [[nodiscard]] virtual CollectionSize rest() const = 0;
  [[nodiscard]] virtual Position position() const = 0;
  virtual void go(const Position& position) = 0;
  /// Copies what the device gave for a part to the values of the result; the sums that are shared to `shared`.
  /// \param bytes of a number
  virtual void place(const TtvPart& part, std::uint64_t bytes, const std::byte* out, std::byte* values,
                     std::byte* shared) const;
};

/// Nonzeros of a chunk of HOCOO's kernel.
inline constexpr std::uint64_t hocoo_chunk = 1024;

/// The result without its values, and the cutter that gives the parts that compute them. Views the request.
struct TtvJob {
  CooTensor result;
  std::unique_ptr<TtvCutter> cutter;         ///< none when there is nothing to compute
  std::shared_ptr<const void> keeps;         ///< what the parts view besides the tensor
  std::function<void(CooTensor& y)> finish;  ///< called when the values are there, if it is set
};
/// Coordinates whose fibres are runs of nonzeros, sorted by the other modes; a copy is sorted when they are not yet.
[[nodiscard]] TtvJob runs_job(const TtvRequest& r, const CooTensor& stored, bool are_runs);
[[nodiscard]] TtvJob hocoo_job(const TtvRequest& r);
[[nodiscard]] TtvJob hocsr_job(const TtvRequest& r);
[[nodiscard]] TtvJob cfb_job(const TtvRequest& r);
[[nodiscard]] TtvJob hocfs_csr_job(const TtvRequest& r);
[[nodiscard]] TtvJob hocfs_ell_job(const TtvRequest& r);

}  // namespace polyad
