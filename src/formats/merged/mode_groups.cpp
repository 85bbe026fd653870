// SPDX-License-Identifier: MIT
#include "formats/merged/mode_groups.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "backends/cpu/threads.hpp"
#include "core/format.hpp"
#include "core/sorted_nonzeros.hpp"
#include "polyad/matrix.hpp"

namespace polyad {

ModeGroups ModeGroups::choose(const CooTensor& x, std::uint64_t rank) {
  ModeGroups g;
  for (int m = 0; m < x.order(); ++m) g.modes.push_back({m});
  g.dims = x.dims;
  if (rank > most_table_bytes) return g;
  const std::uint64_t row_bytes = padded_columns(rank) * bytes_of(x.precision());
  const std::uint64_t most = std::min({most_rows, most_table_bytes / row_bytes, x.nnz() / 2});
  while (g.count() > 2) {
    std::size_t best = 0;
    std::uint64_t fewest = most + 1;
    for (std::size_t a = 0; a + 1 < g.modes.size(); ++a) {
      const std::uint64_t first = std::max<std::uint64_t>(1, g.dims[a]);
      const std::uint64_t second = std::max<std::uint64_t>(1, g.dims[a + 1]);
      if (first > most / second || first * second >= fewest) continue;
      best = a;
      fewest = first * second;
    }
    if (fewest > most) break;
    g.dims[best] = fewest;
    const std::vector<int> taken = std::move(g.modes[best + 1]);
    g.modes[best].insert(g.modes[best].end(), taken.begin(), taken.end());
    const auto behind = static_cast<std::ptrdiff_t>(best) + 1;
    g.modes.erase(g.modes.begin() + behind);
    g.dims.erase(g.dims.begin() + behind);
  }
  return g;
}

int ModeGroups::of_mode(int mode) const {
  return static_cast<int>(std::ranges::find_if(modes, [&](const auto& of) { return of.back() >= mode; }) -
                          modes.begin());
}

bool ModeGroups::merges() const {
  return std::ranges::any_of(modes, [](const auto& of) { return of.size() > 1; });
}

CooTensor merge_modes(const CooTensor& x, const ModeGroups& groups, const Context& context) {
  CooTensor whole = view_of(x);
  CooTensor merged;
  merged.dims = groups.dims;
  merged.duplicates_merged = x.duplicates_merged;
  merged.values = std::move(whole.values);
  const auto merge = [&]<class Index>(const std::vector<int>& modes, std::type_identity<Index>) {
    Buffer<Index> to(context, x.nnz(), "the indices of merged modes", Paging::plain, Content::any);
    cpu::parallel_ranges(context.thread_count(), x.nnz(), [&](std::uint64_t begin, std::uint64_t end) {
      std::copy(typed<Index>(x.indices[static_cast<std::size_t>(modes[0])]) + begin,
                typed<Index>(x.indices[static_cast<std::size_t>(modes[0])]) + end, to.data() + begin);
      for (std::size_t k = 1; k < modes.size(); ++k) {
        const auto m = static_cast<std::size_t>(modes[k]);
        const Index* digits = typed<Index>(x.indices[m]);
        const auto length = static_cast<Index>(x.dims[m]);
        for (std::uint64_t z = begin; z < end; ++z) to[z] = to[z] * length + digits[z];
      }
    });
    return to;
  };
  for (const std::vector<int>& modes : groups.modes) {
    if (modes.size() == 1) {
      merged.indices.push_back(std::move(whole.indices[static_cast<std::size_t>(modes[0])]));
    } else if (x.index_width() == IndexWidth::u64) {
      merged.indices.emplace_back(merge(modes, std::type_identity<std::uint64_t>{}));
    } else {
      merged.indices.emplace_back(merge(modes, std::type_identity<std::uint32_t>{}));
    }
  }
  return merged;
}

}  // namespace polyad
