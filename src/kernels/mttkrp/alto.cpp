// SPDX-License-Identifier: MIT
/// \file MTTKRP along ALTO's line: every thread takes a contiguous part, so its rows of a long mode lie in an interval.
#include "formats/alto/alto.hpp"

#include "kernels/mttkrp/key_loop.hpp"
#include "kernels/mttkrp/local_plan.hpp"
#include "kernels/mttkrp/owner.hpp"

namespace polyad {

namespace {

/// Who adds where: parts of the line whose rows no other part writes directly add to the output, the others to private
/// copies of their interval of rows.
template <class T>
class IntervalOutput {
 public:
  IntervalOutput(const MttkrpRequest<T>& r, const Alto& alto, int parts) : r_(r) {
    for (int t = 0; t < parts; ++t) {
      const cpu::Share s = cpu::share_of(alto.segments(), t, parts);
      Part p{alto.span_of(r.mode, s.begin, s.end), true, 0};
      for (const Part& other : parts_)
        p.direct &= !other.direct || p.rows.last < other.rows.first || other.rows.last < p.rows.first;
      if (!p.direct) {
        p.copy = copied_rows_;
        copied_rows_ += p.rows.last - p.rows.first + 1;
      }
      parts_.push_back(p);
    }
  }

  /// Rows of all private copies.
  [[nodiscard]] std::uint64_t copied_rows() const noexcept { return copied_rows_; }

  /// Takes the memory and clears the output.
  void prepare() {
    clear(r_.out, r_.threads());
    if (copied_rows_ > 0)
      copies_ = static_cast<T*>(r_.workspace.room(private_outputs, copied_rows_ * r_.stride() * sizeof(T), r_.context));
  }

  /// What a part adds to; called by its thread, which clears its copy.
  [[nodiscard]] Sink<T> sink(int part) const {
    const Part& p = parts_[static_cast<std::size_t>(part)];
    Sink<T> s;
    s.stride = r_.stride();
    s.out = r_.out.data();
    if (p.direct) return s;
    T* copy = copies_ + p.copy * s.stride;
    std::fill_n(copy, (p.rows.last - p.rows.first + 1) * s.stride, T{0});
    s.out = copy - p.rows.first * s.stride;  // row numbers stay those of the output
    return s;
  }

  /// Adds the copies, in the order of the parts.
  void finish() const {
    if (copied_rows_ == 0) return;
    const std::uint64_t stride = r_.stride();
    cpu::parallel_ranges(
        r_.threads(), r_.out.rows(),
        [&](std::uint64_t begin, std::uint64_t end) {
          for (const Part& p : parts_) {
            if (p.direct) continue;
            const std::uint64_t first = std::max(begin, p.rows.first);
            const std::uint64_t last = std::min(end, p.rows.last + 1);
            if (first >= last) continue;
            T* out = r_.out.row(first);
            const T* copy = copies_ + (p.copy + first - p.rows.first) * stride;
            for (std::uint64_t i = 0; i < (last - first) * stride; ++i) out[i] += copy[i];
          }
        },
        256);
  }

 private:
  struct Part {
    Alto::Span rows;
    bool direct;
    std::uint64_t copy;  // first row in copies_
  };

  const MttkrpRequest<T>& r_;
  std::vector<Part> parts_;
  std::uint64_t copied_rows_ = 0;
  T* copies_ = nullptr;  // [copied_rows][stride]
};

template <class T>
void run_ordered(const MttkrpRequest<T>& r) {
  const auto& alto = *get_if<Alto>(r.tensor);
  with_types(r.tensor.shape(), [&]<class Index, class Value>() {
    if constexpr (std::is_same_v<Value, T>) {
      const auto plan = local_plan<Index, T>(r, alto);
      const bool by_keys = sizeof(Index) == 4 && alto.key_words == 1 && alto.layout.native();
      const int parts = static_cast<int>(
          std::min(static_cast<std::uint64_t>(r.threads()), std::max<std::uint64_t>(alto.segments(), 1)));
      if (r.nnz() == 0) return clear(r.out, r.threads());
      IntervalOutput<T> output(r, alto, parts);
      // The rule of SharedOutput.
      const std::uint64_t bytes = output.copied_rows() * r.stride() * sizeof(T);
      if (bytes / 100 > r.nnz() || !r.workspace.affords(private_outputs, bytes, r.context)) return add_by_owner(r);
      output.prepare();
      cpu::run_team(parts, [&](int rank, int size) {
        const cpu::Share s = cpu::share_of(alto.segments(), rank, size);
        const std::uint64_t begin = s.begin * Alto::segment_nonzeros;
        const std::uint64_t end = std::min(s.end * Alto::segment_nonzeros, r.nnz());
        const Sink<T> sink = output.sink(rank);
        if (by_keys) {
          KeyLoop<T> loop = key_loop_for(plan, alto.layout, r.mode);
          loop.out = sink.out;
          return add_keys(loop, alto.keys.data(), typed<T>(alto.values), begin, end, r.nnz());
        }
        NonzeroBlock<Index, T> block(r.order());
        add_range(alto, r.mode, plan, begin, end, r.nnz(), sink, block);
      });
      output.finish();
    }
  });
}

}  // namespace

extern const MttkrpKernel mttkrp_alto_ordered;
const MttkrpKernel mttkrp_alto_ordered = {
    {{"mttkrp/alto/ordered",
      "a part of the line per thread; private copies of the rows that parts share, or every thread its own rows"},
     "mttkrp",
     "alto",
     false},
    [](const MttkrpQuestion& q) {
      if (get_if<Alto>(q.tensor) == nullptr) return cannot("it works on alto");
      return can(row_cost(q), "equal parts of the line; copies only of rows that several parts write");
    },
    run_ordered<float>,
    run_ordered<double>};

}  // namespace polyad
