// SPDX-License-Identifier: MIT
/// \file SpTV of a tensor that stays in its file, on devices: collections of whole slices (Yang, Li and Li 2019,
/// section 6.2), each a window of the file that is sorted by the other modes and summed as HOCOO is. Neither the host
/// nor the device ever has all of it; the host has the result.
#include <algorithm>
#include <memory>

#include "core/counted.hpp"
#include "formats/stream/stream.hpp"
#include "kernels/ttv/gpu_run.hpp"
#include "polyad/operations.hpp"

namespace polyad {

namespace {

/// Elements [begin, end) of an array of the file, where they lie.
template <class T>
Buffer<T> part_of(const Buffer<T>& array, std::uint64_t begin, std::uint64_t end) {
  // A view of memory that outlives it, and that nobody writes to.
  const std::shared_ptr<const void> owner(std::shared_ptr<const void>(), array.data());
  return Buffer<T>::view(owner, const_cast<T*>(array.data()) + begin, end - begin, array.is_in_file());
}

/// Nonzeros [begin, end) of x.
CooTensor window_of(const CooTensor& x, std::uint64_t begin, std::uint64_t end) {
  CooTensor w;
  w.dims = x.dims;
  w.sorted_by = x.sorted_by;
  w.duplicates_merged = x.duplicates_merged;
  const auto part = [&](const auto& array) { return part_of(array, begin, end); };
  for (const IndexBuffer& indices : x.indices)
    w.indices.push_back(std::visit([&](const auto& a) { return IndexBuffer(part(a)); }, indices));
  w.values = std::visit([&](const auto& a) { return ValueBuffer(part(a)); }, x.values);
  return w;
}

/// Nonzeros of a window where the same bits are wanted. Chunks are counted from the beginning of a window: it may not
/// depend on the memory and on the threads, nor on whether the tensor is in its file. 2 MB with three modes and f64.
constexpr std::uint64_t fixed_window = std::uint64_t{1} << 16U;

/// Where windows are cut. Slices are over the modes that the file is sorted by before the mode that is summed over:
/// two of them have no fibre in common.
class Windows {
 public:
  Windows(const Stream& stream, int mode, const Context& context) : stream_(stream) {
    const std::vector<int>& sorted = stream.x.sorted_by;
    slice_modes_.assign(sorted.begin(), std::ranges::find(sorted, mode));
    const std::uint64_t usual = stream.window * static_cast<std::uint64_t>(stream.threads);
    size_ = context.deterministic ? fixed_window : stream.in_file ? usual : stream.x.nnz();
    if (stream.in_file && size_ > usual)
      more_ = std::make_unique<Counted>(
          context,
          std::min(2 * (size_ - usual) * stream.x.bytes() / std::max<std::uint64_t>(1, stream.x.nnz()),
                   stream.x.bytes()),
          "the windows of a streamed tensor");
  }

  [[nodiscard]] const std::vector<int>& slice_modes() const { return slice_modes_; }

  /// The end of the window that begins at a nonzero; whether it is the end of a slice.
  [[nodiscard]] std::pair<std::uint64_t, bool> end_of(std::uint64_t begin) const {
    const CooTensor& x = stream_.x;
    const std::uint64_t end = begin + std::min(size_, x.nnz() - begin);
    if (end == x.nnz()) return {end, true};
    if (slice_modes_.empty()) return {end, false};
    // The first nonzero of the slice that the window would end in.
    std::uint64_t low = begin;
    std::uint64_t high = end;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (is_before(middle, end)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low > begin ? std::pair(low, true) : std::pair(end, false);
  }

 private:
  /// Whether the slice of nonzero a comes before that of b.
  [[nodiscard]] bool is_before(std::uint64_t a, std::uint64_t b) const {
    for (const int m : slice_modes_) {
      const std::uint64_t of_a = stream_.x.index(m, a);
      const std::uint64_t of_b = stream_.x.index(m, b);
      if (of_a != of_b) return of_a < of_b;
    }
    return false;
  }

  const Stream& stream_;
  std::vector<int> slice_modes_;
  std::uint64_t size_;
  std::unique_ptr<Counted> more_;  // than the stream counts
};

void append(CooTensor& y, const CooTensor& more) {
  constexpr std::string_view purpose = "the result of ttv";
  const auto append_to = [&](auto& to, const auto& from) {
    const std::size_t at = to.size();
    to.resize(at + from.size(), purpose);
    std::ranges::copy(from, to.data() + at);
  };
  for (std::size_t m = 0; m < y.indices.size(); ++m)
    std::visit([&]<class T>(Buffer<T>& to) { append_to(to, std::get<Buffer<T>>(more.indices[m])); }, y.indices[m]);
  std::visit([&]<class T>(Buffer<T>& to) { append_to(to, std::get<Buffer<T>>(more.values)); }, y.values);
}

}  // namespace

CooTensor run_windows(const TtvRequest& r, PipelineReport* report) {
  const Stream& stream = *get_if<Stream>(r.tensor);
  const std::uint64_t nnz = stream.x.nnz();
  const std::vector<int> others = modes_without(r.shape().order(), r.mode);
  const bool are_runs = stream.x.sorted_by == mode_last(r.shape().order(), r.mode);
  const Windows windows(stream, r.mode, r.context);
  const std::unique_ptr<TtvDevices> devices = TtvDevices::open(r, report);
  CooTensor y = ttv_result(r, 0);
  const std::vector<int> wanted = y.sorted_by;
  bool whole_slices = true;
  std::uint64_t merged = 0;  // sums when those of one fibre were last put together
  const auto put_in_order = [&] {
    y.sorted_by.clear();
    y.duplicates_merged = whole_slices;
    sort_nonzeros(y, wanted, r.context);
    if (!whole_slices) (void)merge_duplicates(y, r.context);
    merged = y.nnz();
  };
  for (std::uint64_t begin = 0; begin < nnz;) {
    const auto [end, at_slice] = windows.end_of(begin);
    whole_slices = whole_slices && at_slice;
    const CooTensor window = window_of(stream.x, begin, end);
    stream.fetch(end, std::min(nnz, end + (end - begin)));  // from the disk while the device works
    append(y, devices->run(runs_job(r, window, are_runs)));
    stream.drop(begin, end);
    if (!whole_slices && y.nnz() > 2 * merged + (end - begin)) put_in_order();
    begin = end;
  }
  // The sums of different slices follow each other in the order of the file.
  const std::vector<int>& slices = windows.slice_modes();
  if (!whole_slices || !std::equal(slices.begin(), slices.end(), others.begin())) put_in_order();
  return y;
}

}  // namespace polyad
