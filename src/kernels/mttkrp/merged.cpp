// SPDX-License-Identifier: MIT
/// \file MTTKRP on copies of a tensor with merged modes. For a merged mode the rows of the others are the products of
/// their modes' rows, made once for all nonzeros; its own sums serve all its modes, as long as the factors of the other
/// groups stay as they are (Workspace::keep_products).
#include "formats/merged/merged.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/mttkrp/fibre_loop.hpp"
#include "kernels/mttkrp/output.hpp"
#include "kernels/mttkrp/owner.hpp"
#include "kernels/mttkrp/row_loop.hpp"
#include "kernels/mttkrp/tile_loop.hpp"

namespace polyad {

namespace {

/// One request on one tensor.
template <class T>
class MergedRun {
 public:
  explicit MergedRun(const MttkrpRequest<T>& r)
      : r_(r), m_(*get_if<Merged>(r.tensor)), group_(m_.groups.of_mode(r.mode)) {}

  void run() {
    if (r_.nnz() == 0) return clear(r_.out, r_.threads());
    // Where the same bits are promised, what else is in memory must not decide how sums are made.
    if (!r_.context.deterministic && !affordable()) return add_by_owner(r_);
    if (!m_.groups.is_merged(group_)) return sum_group(r_.out, r_.pending);
    FactorMatrix<T> sums = matrix_in(leaf_sums, group_);
    const std::vector<int> others = modes_of_others();
    const std::array<std::uint64_t, 2> maker = {r_.tensor.serial(), r_.stride() * sizeof(T) << 8U | group_bits()};
    if (!r_.workspace.holds(leaf_sums, others, maker)) {
      PendingUpdate<T> none;
      sum_group(sums, none);
      r_.workspace.set_held(leaf_sums, others, maker);
    }
    fold_to_output<T>(factors_of(group_), sums.data(), m_.occupied[static_cast<std::size_t>(group_)].span(),
                      m_.groups.position(r_.mode), r_);
  }

 private:
  [[nodiscard]] std::uint64_t rows_of(int group) const { return m_.groups.dims[static_cast<std::size_t>(group)]; }
  [[nodiscard]] std::uint64_t bytes_of_rows(int group) const { return rows_of(group) * r_.stride() * sizeof(T); }
  [[nodiscard]] std::uint64_t group_bits() const { return static_cast<std::uint64_t>(group_); }

  /// Bytes of the tables of all merged groups but that of the output.
  [[nodiscard]] std::uint64_t table_bytes() const {
    std::uint64_t sum = 0;
    for (int g = 0; g < m_.groups.count(); ++g)
      if (g != group_ && m_.groups.is_merged(g)) sum += bytes_of_rows(g);
    return sum;
  }
  /// Whether there is memory for all that is needed at once: tables, sums, and the rows that chunks share.
  [[nodiscard]] bool affordable() const {
    const Tiles& copy = m_.copies[static_cast<std::size_t>(group_)];
    const std::uint64_t sides = copy.plain ? 2 * copy.plain->chunks() * r_.stride() * sizeof(T) : 0;
    const std::uint64_t sums = m_.groups.is_merged(group_) ? bytes_of_rows(group_) : 0;
    return r_.workspace.affords(leaf_table, table_bytes() + sums + sides, r_.context);
  }

  [[nodiscard]] std::vector<int> modes_of_others() const {
    std::vector<int> modes;
    for (int m = 0; m < r_.order(); ++m)
      if (m_.groups.of_mode(m) != group_) modes.push_back(m);
    return modes;
  }

  /// The matrices whose rows are multiplied to those of a merged group.
  [[nodiscard]] LeafTable<T> factors_of(int group) const {
    return table_of(m_.groups.modes[static_cast<std::size_t>(group)], r_);
  }

  /// A matrix with a row for each index of a group, in the room of a purpose.
  [[nodiscard]] FactorMatrix<T> matrix_in(WorkspacePurpose purpose, int group) const {
    return FactorMatrix<T>::view(static_cast<T*>(r_.workspace.room(purpose, bytes_of_rows(group), r_.context)),
                                 rows_of(group), r_.out.cols());
  }

  /// The MTTKRP of the merged tensor for the group of the output.
  void sum_group(FactorMatrix<T>& out, PendingUpdate<T>& pending) const {
    T* tables = static_cast<T*>(r_.workspace.room(leaf_table, table_bytes(), r_.context));
    std::vector<FactorMatrix<T>> factors;
    for (int g = 0; g < m_.groups.count(); ++g) {
      if (g == group_) {
        factors.emplace_back();  // not read
      } else if (!m_.groups.is_merged(g)) {
        const FactorMatrix<T>& f =
            r_.factors[static_cast<std::size_t>(m_.groups.modes[static_cast<std::size_t>(g)][0])];
        factors.push_back(FactorMatrix<T>::view(const_cast<T*>(f.data()), f.rows(), f.cols()));
      } else {
        fill_whole_table(factors_of(g), rows_of(g), r_.threads(), tables);
        factors.push_back(FactorMatrix<T>::view(tables, rows_of(g), r_.out.cols()));
        tables += rows_of(g) * r_.stride();
      }
    }
    const MttkrpRequest<T> in_merged{r_.tensor, factors, group_, out, r_.workspace, r_.context, pending};
    sum_tiles(in_merged, m_.copies[static_cast<std::size_t>(group_)]);
  }

  const MttkrpRequest<T>& r_;
  const Merged& m_;
  int group_;
};

template <class T>
void run_merged(const MttkrpRequest<T>& r) {
  MergedRun<T>(r).run();
}

}  // namespace

extern const MttkrpKernel mttkrp_merged_groups;
const MttkrpKernel mttkrp_merged_groups = {
    {{"mttkrp/merged/groups",
      "products of merged modes' rows are made once; sums of a merged mode serve all its modes"},
     "mttkrp",
     "merged",
     true},
    [](const MttkrpQuestion& q) {
      const auto* m = get_if<Merged>(q.tensor);
      if (m == nullptr) return cannot("it works on merged");
      for (const Tiles& t : m->copies)
        if (t.plain && !sums_rows(*t.plain)) return cannot("it reads indices of up to 32 bits");
      return can(0.5 * row_cost(q), "sums of merged modes: a row for each group in place of one for each mode");
    },
    run_merged<float>,
    run_merged<double>};

}  // namespace polyad
