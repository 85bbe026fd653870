// SPDX-License-Identifier: MIT
#include "kernels/ttv/gpu_parts.hpp"

#include <algorithm>
#include <bit>

#include "backends/gpu/device.hpp"
#include "formats/cfb/cfb.hpp"
#include "formats/hocfs/hocfs.hpp"
#include "formats/hocoo/hocoo.hpp"
#include "formats/hocsr/hocsr.hpp"
#include "kernels/ttv/results.hpp"

namespace polyad {

namespace {

using Bytes = std::span<const std::byte>;

/// Elements begin .. end of the Buffer inside a variant.
template <class Variant>
Bytes view_of(const Variant& buffer, std::uint64_t begin, std::uint64_t end) {
  return std::visit([&](const auto& b) { return std::as_bytes(b.span().subspan(begin, end - begin)); }, buffer);
}

/// Offsets begin .. end.
Bytes view_of(const Offsets& offsets, std::uint64_t begin, std::uint64_t end) {
  return offsets.visit([&](const auto* p) { return std::as_bytes(std::span(p + begin, end - begin)); });
}

std::string type_of(std::uint64_t bytes) { return bytes == 4 ? "u32" : "u64"; }
std::uint64_t width_of(const Offsets& offsets) {
  return offsets.visit([](const auto* p) { return sizeof(*p); });
}

/// Work-items of a group that all devices of the context can have.
std::uint32_t group_size(const TtvRequest& r) {
  std::uint32_t most = 256;
  for (const auto& device : r.context.devices) most = std::min(most, std::max(device->facts().largest_group, 1U));
  return std::bit_floor(most);
}

/// Bytes of the numbers of a tensor.
struct Widths {
  explicit Widths(const TensorShape& shape) : index(bytes_of(shape.index_width())), value(bytes_of(shape.precision)) {}
  std::uint64_t index;
  std::uint64_t value;
};

/// Fibres, and the nonzeros in them.
struct FibreRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::uint64_t nonzero = 0;
  std::uint64_t nonzero_end = 0;
};

/// Formats that have fibres one behind the other: begins, indices, values.
class FibreCutter : public TtvCutter {
 public:
  FibreCutter(const TensorShape& shape, const Offsets& begins, const IndexBuffer& indices, const ValueBuffer& values)
      : widths_(shape), begins_(begins), indices_(indices), values_(values) {}

  [[nodiscard]] CollectionSize rest() const override {
    const auto fibres = static_cast<double>(begins_.groups() - fibre_);
    const auto nnz = static_cast<double>(begins_[begins_.groups()] - nonzero_);
    return {fibres * static_cast<double>(width_of(begins_)) + nnz * static_cast<double>(widths_.index + widths_.value),
            nnz, fibres * static_cast<double>(widths_.value)};
  }
  [[nodiscard]] Position position() const override { return {fibre_, nonzero_}; }
  void go(const Position& position) override {
    fibre_ = position[0];
    nonzero_ = position[1];
  }

 protected:
  /// The last place to cut at that is not after a fibre: the beginning of a slice.
  [[nodiscard]] virtual std::uint64_t cut_before(std::uint64_t fibre) const { return fibre; }

  /// Cuts at a slice, else at a fibre, else inside one. \param per_fibre bytes besides begins and sum
  bool next_range(std::uint64_t most_bytes, std::uint64_t per_fibre, FibreRange& range) {
    const std::uint64_t fibres = begins_.groups();
    if (fibre_ >= fibres) return false;
    per_fibre += width_of(begins_) + widths_.value;
    const std::uint64_t per_nonzero = widths_.index + widths_.value;
    const std::uint64_t fixed = 2 * width_of(begins_) + 16 * gpu::slot_alignment;  // ends of arrays, their alignment
    const std::uint64_t most = most_bytes > fixed ? most_bytes - fixed : 1;
    std::uint64_t end = gpu::largest_that_fits(fibre_, fibres, [&](std::uint64_t to) {
      return (to - fibre_) * per_fibre + (begins_[to] - nonzero_) * per_nonzero <= most;
    });
    if (end > fibre_) {
      if (end < fibres && cut_before(end) > fibre_) end = cut_before(end);
      range = {fibre_, end, nonzero_, begins_[end]};
    } else {
      const std::uint64_t left = begins_[fibre_ + 1] - nonzero_;
      const std::uint64_t room = most > per_fibre ? (most - per_fibre) / per_nonzero : 0;
      range = {fibre_, fibre_ + 1, nonzero_, nonzero_ + std::min(left, std::max<std::uint64_t>(room, 1))};
    }
    nonzero_ = range.nonzero_end;
    fibre_ = nonzero_ == begins_[range.end] ? range.end : range.end - 1;
    return true;
  }

  void set(TtvPart& part, const FibreRange& r) const {
    part = {};
    part.part.nnz = r.nonzero_end - r.nonzero;
    part.out = r.end - r.first;
    part.first = r.first;
    part.shared = r.nonzero > begins_[r.first] ? 1 : 0;
    part.part.arrays = {view_of(begins_, r.first, r.end + 1), view_of(indices_, r.nonzero, r.nonzero_end),
                        view_of(values_, r.nonzero, r.nonzero_end)};
  }

  Widths widths_;
  const Offsets& begins_;

 private:
  const IndexBuffer& indices_;
  const ValueBuffer& values_;
  std::uint64_t fibre_ = 0;
  std::uint64_t nonzero_ = 0;
};

/// A work-item per fibre: CFB, and HOCSR but for where the sums belong.
class BucketCutter : public FibreCutter {
 public:
  BucketCutter(const TensorShape& shape, const Offsets& begins, const IndexBuffer& indices, const ValueBuffer& values,
               std::uint32_t group)
      : FibreCutter(shape, begins, indices, values), items_(std::min(group, 128U)) {}

  [[nodiscard]] TtvDeviceKernel kernel() const override {
    return {"ttv_fibres",
            "ttv_fibres",
            {},
            {items_, 1},
            {{"PD_INDEX", type_of(widths_.index)}, {"PD_OFFSET", type_of(width_of(begins_))}}};
  }
  bool next(std::uint64_t most_bytes, TtvPart& part) override {
    FibreRange r;
    if (!next_range(most_bytes, 0, r)) return false;
    set(part, r);
    part.part.numbers = {part.out, r.nonzero, r.nonzero_end};
    part.part.groups = (part.out + items_ - 1) / items_;
    return true;
  }

 private:
  std::uint32_t items_;
};

/// The rows of HOCSR that are not empty, in blocks that can be counted by different threads.
class RowCounts {
 public:
  RowCounts(const Offsets& rows, int threads) : rows_(rows), before_((rows.groups() + block - 1) / block + 1) {
    cpu::for_each_chunk(threads, before_.size() - 1, [&](std::uint64_t b, int) {
      before_[b + 1] = count(b * block, std::min((b + 1) * block, rows_.groups()));
    });
    for (std::size_t b = 1; b < before_.size(); ++b) before_[b] += before_[b - 1];
  }

  static constexpr std::uint64_t block = 1U << 14U;
  [[nodiscard]] std::uint64_t all() const { return before_.back(); }
  /// Non-empty rows before a row.
  [[nodiscard]] std::uint64_t before(std::uint64_t row) const {
    return before_[row / block] + count(row / block * block, row);
  }

 private:
  [[nodiscard]] std::uint64_t count(std::uint64_t first, std::uint64_t end) const {
    return rows_.visit([&](const auto* begins) {
      std::uint64_t n = 0;
      for (std::uint64_t row = first; row < end; ++row) n += begins[row + 1] != begins[row] ? 1 : 0;
      return n;
    });
  }

  const Offsets& rows_;
  std::vector<std::uint64_t> before_;
};

/// HOCSR: the device sums all rows, the result has those that are not empty.
class RowCutter final : public BucketCutter {
 public:
  RowCutter(const Hocsr& h, std::shared_ptr<const RowCounts> counts, std::uint32_t group)
      : BucketCutter(h.tensor_shape, h.rows, h.indices, h.values, group), counts_(std::move(counts)) {}

  bool next(std::uint64_t most_bytes, TtvPart& part) override {
    if (!BucketCutter::next(most_bytes, part)) return false;
    part.row = part.first;
    part.first = counts_->before(part.row);
    return true;
  }
  void place(const TtvPart& part, std::uint64_t bytes, const std::byte* out, std::byte* values,
             std::byte* shared) const override {
    std::copy_n(out, part.shared * bytes, shared);
    std::byte* to = values + (part.first + part.shared) * bytes;
    begins_.visit([&](const auto* begins) {
      for (std::uint64_t i = part.shared; i < part.out; ++i) {
        if (begins[part.row + i + 1] == begins[part.row + i]) continue;
        std::copy_n(out + i * bytes, bytes, to);
        to += bytes;
      }
    });
  }

 private:
  std::shared_ptr<const RowCounts> counts_;
};

/// Begins of the innermost slices, in fibres; those of a matrix are made up.
class SliceBegins {
 public:
  SliceBegins(const SlicesOfSlices& tree, std::uint32_t group)
      : tree_(tree),
        matrix_{0, tree.fibres()},
        narrow_matrix_{0, static_cast<std::uint32_t>(tree.fibres())},
        items_{std::min(group, 32U), std::max(group / 32, 1U)} {}

  [[nodiscard]] std::uint64_t width() const {
    return tree_.levels() == 0 ? Offsets::width_of(tree_.fibres()) : width_of(tree_.slice_begins.back());
  }
  [[nodiscard]] Bytes view(std::uint64_t first, std::uint64_t end) const {
    if (tree_.levels() > 0) return view_of(tree_.slice_begins.back(), first, end + 1);
    return width() == 4 ? Bytes(std::as_bytes(std::span(narrow_matrix_))) : Bytes(std::as_bytes(std::span(matrix_)));
  }
  [[nodiscard]] const std::array<std::uint32_t, 2>& items() const { return items_; }

  /// Slices over groups in the first direction; in the second as many as the longest slice has work for, unless there
  /// are plenty already.
  void set_groups(TtvPart& part, std::uint64_t first, std::uint64_t end) const {
    constexpr std::uint64_t plenty = 65536;
    constexpr std::uint64_t most = 1024;
    std::uint64_t longest = 1;
    for (std::uint64_t s = first; s < end; ++s)
      longest = std::max(longest, tree_.first_fibre(s + 1) - tree_.first_fibre(s));
    part.part.groups = (end - first + items_[1] - 1) / items_[1];
    const std::uint64_t useful = (std::min(longest, part.out) + items_[0] - 1) / items_[0];
    part.groups_1 = std::min({useful, most, std::max<std::uint64_t>(1, plenty / part.part.groups)});
  }

 private:
  const SlicesOfSlices& tree_;
  std::array<std::uint64_t, 2> matrix_;
  std::array<std::uint32_t, 2> narrow_matrix_;
  std::array<std::uint32_t, 2> items_;
};

TtvDeviceKernel slice_kernel(std::string_view function, const Widths& widths, std::uint64_t offset,
                             const SliceBegins& slices) {
  return {"ttv_hocfs",
          function,
          {},
          slices.items(),
          {{"PD_INDEX", type_of(widths.index)},
           {"PD_OFFSET", type_of(offset)},
           {"PD_SLICE_OFFSET", type_of(slices.width())}}};
}

class SliceCutter final : public FibreCutter {
 public:
  SliceCutter(const HocfsCsr& h, std::uint32_t group)
      : FibreCutter(h.tensor_shape, h.parts.begins, h.parts.indices, h.parts.values),
        tree_(h.parts.tree),
        slices_(h.parts.tree, group) {}

  [[nodiscard]] TtvDeviceKernel kernel() const override {
    return slice_kernel("ttv_hocfs_csr", widths_, width_of(begins_), slices_);
  }
  bool next(std::uint64_t most_bytes, TtvPart& part) override {
    FibreRange r;
    if (!next_range(most_bytes, slices_.width(), r)) return false;
    set(part, r);
    const std::uint64_t first = tree_.slice_of(r.first);
    const std::uint64_t end = tree_.slice_of(r.end - 1) + 1;
    part.part.numbers = {end - first, r.first, r.end, r.nonzero, r.nonzero_end};
    part.part.arrays.insert(part.part.arrays.begin(), slices_.view(first, end));
    slices_.set_groups(part, first, end);
    return true;
  }

 protected:
  [[nodiscard]] std::uint64_t cut_before(std::uint64_t fibre) const override {
    return tree_.first_fibre(tree_.slice_of(fibre));
  }

 private:
  const SlicesOfSlices& tree_;
  SliceBegins slices_;
};

/// Padded slices: cut at slices, else at groups of rows, else between the elements of a group.
class EllCutter final : public TtvCutter {
 public:
  EllCutter(const HocfsEll& ell, std::uint32_t group)
      : ell_(ell), widths_(ell.tensor_shape), slices_(ell.tree, group) {}

  [[nodiscard]] TtvDeviceKernel kernel() const override {
    return slice_kernel("ttv_hocfs_ell", widths_, width_of(ell_.slice_elements), slices_);
  }
  bool next(std::uint64_t most_bytes, TtvPart& part) override {
    const std::uint64_t first = element_;
    if (first >= ell_.elements()) return false;
    // There are at most as many fibres and slices as elements.
    const std::uint64_t fixed = 16 * gpu::slot_alignment;
    const std::uint64_t each = widths_.index + 2 * widths_.value + slices_.width() + width_of(ell_.slice_elements);
    const std::uint64_t room = (most_bytes > fixed ? most_bytes - fixed : 0) / each;
    const std::uint64_t end = cut_at(first, std::min(first + std::max<std::uint64_t>(room, 1), ell_.elements()));
    const Place from = place_of(first);
    const Place to = end == ell_.elements() ? Place{ell_.tree.fibres(), 0} : place_of(end);
    const std::uint64_t fibre_end = to.fibre + to.begun;
    part = {};
    part.part.nnz = end - first;  // padding is work as well
    part.first = from.fibre;
    part.out = fibre_end - from.fibre;
    part.shared = from.begun;
    const std::uint64_t slice = ell_.tree.slice_of(from.fibre);
    const std::uint64_t slice_end = ell_.tree.slice_of(fibre_end - 1) + 1;
    part.part.numbers = {slice_end - slice, from.fibre, fibre_end, first, end};
    part.part.arrays = {slices_.view(slice, slice_end), view_of(ell_.slice_elements, slice, slice_end + 1),
                        view_of(ell_.indices, first, end), view_of(ell_.values, first, end)};
    slices_.set_groups(part, slice, slice_end);
    element_ = end;
    return true;
  }
  [[nodiscard]] CollectionSize rest() const override {
    const auto elements = static_cast<double>(ell_.elements() - element_);
    const double fibres = static_cast<double>(ell_.tree.fibres()) * elements / static_cast<double>(ell_.elements());
    return {
        elements * static_cast<double>(widths_.index + widths_.value) + fibres * static_cast<double>(slices_.width()),
        elements, fibres * static_cast<double>(widths_.value)};
  }
  [[nodiscard]] Position position() const override { return {element_, 0}; }
  void go(const Position& position) override { element_ = position[0]; }

 private:
  /// The group of rows that an element lies in.
  struct Group {
    std::uint64_t begin = 0;  // its first element
    std::uint64_t fibre = 0;  // its first row
    std::uint64_t width = 0;  // rows
  };
  [[nodiscard]] Group group_of(std::uint64_t element) const {
    const std::uint64_t slice = ell_.slice_elements.group_of(element);
    const std::uint64_t begin = ell_.slice_elements[slice];
    const std::uint64_t size = HocfsEll::group_rows * ell_.row_length(slice);
    const std::uint64_t group = (element - begin) / size;
    const std::uint64_t fibre = ell_.tree.first_fibre(slice) + group * HocfsEll::group_rows;
    return {begin + group * size, fibre, std::min(HocfsEll::group_rows, ell_.tree.first_fibre(slice + 1) - fibre)};
  }
  /// The first fibre that has elements from there on, and how many fibres from it on have some before.
  struct Place {
    std::uint64_t fibre = 0;
    std::uint64_t begun = 0;
  };
  [[nodiscard]] Place place_of(std::uint64_t element) const {
    const Group g = group_of(element);
    return {g.fibre, element > g.begin ? g.width : 0};
  }
  /// A good place to cut at that is after `first` and, if possible, not after `end`.
  [[nodiscard]] std::uint64_t cut_at(std::uint64_t first, std::uint64_t end) const {
    if (end == ell_.elements()) return end;
    if (const std::uint64_t slice = ell_.slice_elements[ell_.slice_elements.group_of(end)]; slice > first) return slice;
    const Group g = group_of(end);
    if (g.begin > first) return g.begin;
    return std::max(g.begin + (end - g.begin) / g.width * g.width, first + g.width);
  }

  const HocfsEll& ell_;
  Widths widths_;
  SliceBegins slices_;
  std::uint64_t element_ = 0;
};

/// Sorted coordinates in chunks.
class ChunkCutter final : public TtvCutter {
 public:
  /// \param begins [chunks + 1] runs that begin before a chunk
  ChunkCutter(const CooTensor& x, int mode, const Offsets& begins, std::uint32_t group)
      : x_(x),
        mode_(mode),
        begins_(begins),
        index_(bytes_in(x.indices[0]) / x.nnz()),
        value_(bytes_in(x.values) / x.nnz()),
        items_(std::min(group, 128U)) {}

  [[nodiscard]] TtvDeviceKernel kernel() const override {
    return {"ttv_hocoo",
            "ttv_hocoo",
            "ttv_hocoo_seams",
            {items_, 1},
            {{"PD_INDEX", type_of(index_)},
             {"PD_OFFSET", type_of(width_of(begins_))},
             {"PD_ORDER", std::to_string(x_.order())},
             {"PD_CHUNK", std::to_string(hocoo_chunk)}}};
  }
  bool next(std::uint64_t most_bytes, TtvPart& part) override {
    if (chunk_ >= begins_.groups()) return false;
    const auto order = static_cast<std::uint64_t>(x_.order());
    const std::uint64_t each = hocoo_chunk * (order * index_ + 2 * value_) + width_of(begins_) + value_;
    const std::uint64_t fixed = (order + 8) * gpu::slot_alignment;
    const std::uint64_t room = (most_bytes > fixed ? most_bytes - fixed : 0) / each;
    const std::uint64_t end_chunk = std::min(begins_.groups(), chunk_ + std::max<std::uint64_t>(1, room));
    const std::uint64_t first = chunk_ * hocoo_chunk;
    const std::uint64_t end = std::min(x_.nnz(), end_chunk * hocoo_chunk);
    part = {};
    part.part.nnz = end - first;
    part.part.chunks = end_chunk - chunk_;
    part.part.groups = part.part.chunks;
    part.shared = begins_run(first) ? 0 : 1;
    part.first = begins_[chunk_] - part.shared;
    part.out = begins_[end_chunk] - part.first;
    part.part.numbers = {part.part.nnz, part.part.chunks, part.first};
    part.part.arrays = {view_of(begins_, chunk_, end_chunk + 1), view_of(x_.values, first, end),
                        view_of(x_.indices[static_cast<std::size_t>(mode_)], first, end)};
    for (const int m : modes_without(x_.order(), mode_))
      part.part.arrays.push_back(view_of(x_.indices[static_cast<std::size_t>(m)], first, end));
    chunk_ = end_chunk;
    return true;
  }
  [[nodiscard]] CollectionSize rest() const override {
    const auto nnz = static_cast<double>(x_.nnz() - std::min(x_.nnz(), chunk_ * hocoo_chunk));
    const double runs = static_cast<double>(begins_[begins_.groups()] - begins_[chunk_]);
    return {nnz * static_cast<double>(static_cast<std::uint64_t>(x_.order()) * index_ + value_), nnz,
            runs * static_cast<double>(value_)};
  }
  [[nodiscard]] Position position() const override { return {chunk_, 0}; }
  void go(const Position& position) override { chunk_ = position[0]; }

 private:
  [[nodiscard]] bool begins_run(std::uint64_t k) const {
    if (k == 0) return true;
    for (const int m : modes_without(x_.order(), mode_))
      if (x_.index(m, k) != x_.index(m, k - 1)) return true;
    return false;
  }

  const CooTensor& x_;
  int mode_;
  const Offsets& begins_;
  std::uint64_t index_;
  std::uint64_t value_;
  std::uint32_t items_;
  std::uint64_t chunk_ = 0;
};

/// What the parts of HOCOO view.
struct SortedRuns {
  CooTensor sorted;  // empty when the fibres are runs already
  Offsets begins;    // [chunks + 1]
};

}  // namespace

void TtvCutter::place(const TtvPart& part, std::uint64_t bytes, const std::byte* out, std::byte* values,
                      std::byte* shared) const {
  std::copy_n(out, part.shared * bytes, shared);
  std::copy_n(out + part.shared * bytes, (part.out - part.shared) * bytes, values + (part.first + part.shared) * bytes);
}

TtvJob hocoo_job(const TtvRequest& r) {
  return runs_job(r, get_if<Hocoo>(r.tensor)->x, r.mode + 1 == r.shape().order());
}

TtvJob runs_job(const TtvRequest& r, const CooTensor& stored, bool are_runs) {
  auto runs = std::make_shared<SortedRuns>();
  if (!are_runs) {
    runs->sorted = narrowest_copy(stored, r.context);
    sort_nonzeros(runs->sorted, mode_last(r.shape().order(), r.mode), r.context);
  }
  const CooTensor& x = are_runs ? stored : runs->sorted;
  const std::uint64_t nnz = x.nnz();
  const std::uint64_t chunks = (nnz + hocoo_chunk - 1) / hocoo_chunk;
  runs->begins = Offsets(r.context, chunks + 1, nnz, "the runs of ttv");
  TtvJob job;
  with_types(r.shape(), [&]<class Index, class T>() {
    std::array<const Index*, max_order> indices = {};
    std::size_t modes = 0;
    for (const int m : modes_without(x.order(), r.mode))
      indices[modes++] = typed<Index>(x.indices[static_cast<std::size_t>(m)]);
    const auto begins_run = [&](std::uint64_t k) {
      bool differs = k == 0;
      for (std::size_t m = 0; k > 0 && m < modes; ++m) differs |= indices[m][k] != indices[m][k - 1];
      return differs;
    };
    cpu::for_each_chunk(r.threads(), chunks, [&](std::uint64_t c, int) {
      std::uint64_t count = 0;
      for (std::uint64_t k = c * hocoo_chunk; k < std::min(nnz, (c + 1) * hocoo_chunk); ++k)
        count += begins_run(k) ? 1 : 0;
      runs->begins.set(c + 1, count);
    });
    for (std::uint64_t c = 1; c <= chunks; ++c) runs->begins.set(c, runs->begins[c] + runs->begins[c - 1]);
    job.result = ttv_result(r, runs->begins[chunks]);
    const std::array<Index*, max_order> out = index_arrays<Index>(job.result, 0);
    cpu::for_each_chunk(r.threads(), chunks, [&](std::uint64_t c, int) {
      std::uint64_t run = runs->begins[c];
      for (std::uint64_t k = c * hocoo_chunk; k < std::min(nnz, (c + 1) * hocoo_chunk); ++k) {
        if (!begins_run(k)) continue;
        for (std::size_t m = 0; m < modes; ++m) out[m][run] = indices[m][k];
        ++run;
      }
    });
  });
  if (nnz > 0) job.cutter = std::make_unique<ChunkCutter>(x, r.mode, runs->begins, group_size(r));
  job.keeps = std::move(runs);
  return job;
}

TtvJob hocsr_job(const TtvRequest& r) {
  const Hocsr& h = *get_if<Hocsr>(r.tensor);
  const auto counts = std::make_shared<const RowCounts>(h.rows, r.threads());
  TtvJob job;
  job.result = ttv_result(r, counts->all());
  with_types(r.shape(), [&]<class Index, class T>() {
    const std::uint64_t rows = h.rows.groups();
    cpu::for_each_chunk(r.threads(), (rows + RowCounts::block - 1) / RowCounts::block, [&](std::uint64_t b, int) {
      const std::uint64_t first = b * RowCounts::block;
      const std::uint64_t end = std::min(first + RowCounts::block, rows);
      const std::array<Index*, max_order> out = index_arrays<Index>(job.result, counts->before(first));
      RowIndices at(r.shape().dims, r.mode);
      std::uint64_t n = 0;
      for (std::uint64_t row = first; row < end; ++row) {
        if (h.rows.count(row) == 0) continue;
        at.go(row);
        for (std::size_t m = 0; m < at.size(); ++m) out[m][n] = static_cast<Index>(at[m]);
        ++n;
      }
    });
  });
  if (r.shape().nnz > 0) job.cutter = std::make_unique<RowCutter>(h, counts, group_size(r));
  return job;
}

TtvJob cfb_job(const TtvRequest& r) {
  const Cfb& c = *get_if<Cfb>(r.tensor);
  TtvJob job;
  job.result = ttv_result(r, c.fibres());
  with_types(r.shape(), [&]<class Index, class T>() {
    cpu::parallel_ranges(r.threads(), c.fibres(), [&](std::uint64_t begin, std::uint64_t end) {
      c.fibre_indices(begin, end, index_arrays<Index>(job.result, begin));
    });
  });
  if (r.shape().nnz > 0)
    job.cutter = std::make_unique<BucketCutter>(c.tensor_shape, c.begins, c.indices, c.values, group_size(r));
  return job;
}

namespace {

/// The indices of all fibres of slices of slices; the order of the result is put right at the end.
TtvJob slices_job(const TtvRequest& r, const SlicesOfSlices& tree) {
  TtvJob job;
  job.result = ttv_result(r, tree.fibres());
  with_types(r.shape(), [&]<class Index, class T>() {
    cpu::parallel_ranges(r.threads(), tree.fibres(), [&](std::uint64_t begin, std::uint64_t end) {
      tree.fibre_indices(begin, end, by_tensor_mode<Index>(job.result, r.mode, begin));
    });
  });
  job.finish = [&tree, &r](CooTensor& y) { sort_result(y, tree.modes, r.context); };
  return job;
}

}  // namespace

TtvJob hocfs_csr_job(const TtvRequest& r) {
  const HocfsCsr& h = *get_if<HocfsCsr>(r.tensor);
  TtvJob job = slices_job(r, h.parts.tree);
  if (r.shape().nnz > 0) job.cutter = std::make_unique<SliceCutter>(h, group_size(r));
  return job;
}

TtvJob hocfs_ell_job(const TtvRequest& r) {
  const HocfsEll& ell = *get_if<HocfsEll>(r.tensor);
  TtvJob job = slices_job(r, ell.tree);
  if (r.shape().nnz > 0) job.cutter = std::make_unique<EllCutter>(ell, group_size(r));
  return job;
}

}  // namespace polyad
