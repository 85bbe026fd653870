// SPDX-License-Identifier: MIT
#include "formats/sweep/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "backends/cpu/threads.hpp"
#include "core/sorted_nonzeros.hpp"
#include "formats/padded_buffer.hpp"

namespace polyad {

namespace {

/// Elements that are copied at a time.
constexpr std::size_t copy_step = 8;

[[nodiscard]] constexpr std::size_t in_steps(std::size_t count) {
  return (count + copy_step - 1) / copy_step * copy_step;
}

/// Copies at least `count` elements, and at most in_steps(count): where most fibres are no longer than a step there is
/// no branch that could be foreseen wrongly, nor a call of memcpy or the `rep movs` that compilers make of a loop.
template <class T>
void copy_in_steps(const T* from, std::size_t count, T* to) {
  std::memcpy(to, from, copy_step * sizeof(T));
  if (count > copy_step) [[unlikely]]
    std::memcpy(to + copy_step, from + copy_step, (in_steps(count) - copy_step) * sizeof(T));
}

/// The chunks of sorted nonzeros, arranged by one thread each. Levels: the fibre modes, then the leaf modes.
template <class Nonzeros, class Index>
struct Arranger {
  using Value = typename Nonzeros::value_type;
  const Sweep& to;
  const Nonzeros& nonzeros;

  [[nodiscard]] std::uint64_t chunk_begin(std::uint64_t chunk) const { return to.begin[chunk]; }
  [[nodiscard]] std::uint64_t chunk_end(std::uint64_t chunk) const { return to.begin[chunk + 1]; }
  [[nodiscard]] std::uint64_t root_of(std::uint64_t z) const { return nonzeros.template index<std::uint64_t>(0, z); }

  /// The first nonzero of begin .. end whose root is not below `root`.
  [[nodiscard]] std::uint64_t first_from(std::uint64_t root, std::uint64_t begin, std::uint64_t end) const {
    while (begin < end) {
      const std::uint64_t middle = begin + (end - begin) / 2;
      if (root_of(middle) < root) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin;
  }

  /// Where chunks begin, and the end of the last one: every chunk_nonzeros nonzeros, moved back to where a root begins.
  [[nodiscard]] std::vector<std::uint64_t> cut_chunks() const {
    const std::uint64_t nnz = to.tensor_shape.nnz;
    std::vector<std::uint64_t> bounds = {0};
    bool inside = false;  // the last bound is in the middle of a root
    for (std::uint64_t at = Sweep::chunk_nonzeros; at < nnz; at += Sweep::chunk_nonzeros) {
      if (inside) {
        const std::uint64_t end = first_from(root_of(bounds.back()) + 1, bounds.back(), at);
        if (end < at || root_of(at) != root_of(bounds.back())) {  // what is left of the root
          bounds.push_back(end);
          inside = false;
        }
      }
      const std::uint64_t begin = first_from(root_of(at), bounds.back(), at);
      if (begin > bounds.back()) {
        bounds.push_back(begin);
        inside = false;
      } else if (at - bounds.back() >= Sweep::chunk_nonzeros) {
        bounds.push_back(at);
        inside = true;
      }
    }
    if (inside) {
      const std::uint64_t end = first_from(root_of(bounds.back()) + 1, bounds.back(), nnz);
      if (end < nnz) bounds.push_back(end);
    }
    if (nnz > 0) bounds.push_back(nnz);
    return bounds;
  }

  /// 64 bytes that are 0 or 1 as bits, the first one the lowest.
  [[nodiscard]] static std::uint64_t bits_of(const std::uint8_t* bytes) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, bytes + 8 * i, 8);  // the first one the lowest, as codes of values want it too (NarrowValues)
      bits |= (eight * 0x0102040810204080U >> 56U) << (8 * i);  // byte k becomes bit 56 + k of the product
    }
    return bits;
  }

  /// Counts the fibres of a chunk by length. \param fibre_lengths [nonzeros of the chunk] gets their lengths
  void count(std::uint64_t chunk, Sweep::Lengths& lengths, std::uint8_t* fibre_lengths) const {
    lengths.fill(0);
    const auto take = [&](std::uint64_t length) {
      *fibre_lengths++ = static_cast<std::uint8_t>(length);
      ++lengths[length - 1];
    };
    const std::uint64_t end = chunk_end(chunk);
    std::uint64_t begin = chunk_begin(chunk);
    const auto take_to = [&](std::uint64_t next) {
      for (; next - begin > Sweep::longest_fibre; begin += Sweep::longest_fibre) take(Sweep::longest_fibre);
      take(next - begin);
      begin = next;
    };
    std::array<std::uint8_t, 1024> is_new;
    for (std::uint64_t block = begin + 1; block < end; block += is_new.size()) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(is_new.size(), end - block));
      nonzeros.new_tuples(block, count, to.split.fibres.size(), is_new.data());
      std::fill(is_new.begin() + count, is_new.end(), std::uint8_t{0});
      // By the bits of a word: a branch for every nonzero would be foreseen wrongly once a fibre.
      for (std::size_t i = 0; i < count; i += 64)
        for (std::uint64_t bits = bits_of(is_new.data() + i); bits != 0; bits &= bits - 1)
          take_to(block + i + static_cast<std::size_t>(std::countr_zero(bits)));
    }
    take_to(end);
  }

  [[nodiscard]] Sweep::Roots roots(std::uint64_t chunk) const {
    return {root_of(chunk_begin(chunk)), root_of(chunk_end(chunk) - 1)};
  }

  /// The merged leaves of nonzeros begin .. begin + count. \param room as much again
  template <class Leaf>
  void copy_leaves(std::uint64_t begin, std::size_t count, Leaf* leaves, Leaf* room) const {
    const std::size_t level = to.split.fibres.size();
    nonzeros.copy_indices(level, begin, count, leaves);
    for (std::size_t l = 1; l < to.split.leaves.size(); ++l) {
      const auto dim = static_cast<Leaf>(to.tensor_shape.dims[static_cast<std::size_t>(to.split.leaves[l])]);
      nonzeros.copy_indices(level + l, begin, count, room);
      for (std::size_t i = 0; i < count; ++i) leaves[i] = static_cast<Leaf>(leaves[i] * dim + room[i]);
    }
  }

  /// Writes a chunk whose fibres are counted. \param fibre_lengths what count gave
  template <class Leaf>
  void write(std::uint64_t chunk, const std::uint8_t* fibre_lengths, Leaf* leaves, Value* values,
             const std::vector<Index*>& ids) const {
    const Sweep::Lengths& lengths = to.lengths[chunk];
    std::array<std::uint64_t, Sweep::longest_fibre> fibre;  // next of each length
    std::array<std::uint64_t, Sweep::longest_fibre> nonzero;
    std::array<std::uint64_t, Sweep::longest_fibre> nonzeros_end;
    std::uint64_t f = to.first[chunk];
    std::uint64_t z = chunk_begin(chunk);
    for (std::size_t l = 0; l < lengths.size(); ++l) {
      fibre[l] = f;
      nonzero[l] = z;
      f += lengths[l];
      z += lengths[l] * (l + 1);
      nonzeros_end[l] = z;
    }
    const std::size_t fibre_modes = ids.size();
    const std::uint64_t end = chunk_end(chunk);
    // Leaves and values some at a time, which stay in the first-level cache.
    constexpr std::size_t block = 2048;
    static_assert(Sweep::longest_fibre <= block && Sweep::longest_fibre <= std::numeric_limits<std::uint8_t>::max());
    std::array<Leaf, block + copy_step> of_leaves;
    std::array<Leaf, block> room;
    std::array<Value, block + copy_step> of_values;
    for (std::uint64_t begin = chunk_begin(chunk); begin < end;) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(block, end - begin));
      copy_leaves(begin, count, of_leaves.data(), room.data());
      for (std::size_t i = 0; i < count; ++i) of_values[i] = nonzeros.value(begin + i);
      std::size_t done = 0;
      for (; done < count && done + *fibre_lengths <= count; ++fibre_lengths) {  // whole fibres
        const std::size_t length = *fibre_lengths;
        const std::uint64_t at = fibre[length - 1]++;
        for (std::size_t h = 0; h < fibre_modes; ++h) ids[h][at] = nonzeros.template index<Index>(h, begin + done);
        const std::uint64_t next = std::exchange(nonzero[length - 1], nonzero[length - 1] + length);
        if (next + in_steps(length) <= nonzeros_end[length - 1]) [[likely]] {  // the next of this length comes over it
          copy_in_steps(of_leaves.data() + done, length, leaves + next);
          copy_in_steps(of_values.data() + done, length, values + next);
        } else {
          std::copy_n(of_leaves.data() + done, length, leaves + next);
          std::copy_n(of_values.data() + done, length, values + next);
        }
        done += length;
      }
      begin += done;
    }
  }
};

/// Bytes of the narrowest type that holds indices below `rows`.
std::uint64_t narrow_bytes(std::uint64_t rows) {
  return rows <= std::uint64_t{1} << 16U ? 2 : rows <= std::uint64_t{1} << 32U ? 4 : 8;
}

/// Bytes of an index of the fibres' modes: one type for all of them.
std::uint64_t id_bytes(const std::vector<std::uint64_t>& dims, const ModeSplit& split) {
  std::uint64_t most = 0;
  for (const int m : split.fibres) most = std::max(most, dims[static_cast<std::size_t>(m)]);
  return narrow_bytes(most);
}

/// A buffer of the narrowest type that holds indices below `rows`.
Sweep::NarrowBuffer leaf_buffer(std::uint64_t rows, std::size_t count, const Context& context) {
  constexpr std::string_view purpose = "the leaves of sweep";
  if (rows <= std::uint64_t{1} << 16U) return padded_buffer<std::uint16_t>(count, Sweep::padding, purpose, context);
  if (rows <= std::uint64_t{1} << 32U) return padded_buffer<std::uint32_t>(count, Sweep::padding, purpose, context);
  return padded_buffer<std::uint64_t>(count, Sweep::padding, purpose, context);
}

}  // namespace

std::optional<int> Sweep::fibre_position(int mode) const {
  const auto at = std::ranges::find(split.fibres, mode);
  if (at == split.fibres.end()) return std::nullopt;
  return static_cast<int>(at - split.fibres.begin());
}

std::optional<int> Sweep::leaf_position(int mode) const {
  const auto at = std::ranges::find(split.leaves, mode);
  if (at == split.leaves.end()) return std::nullopt;
  return static_cast<int>(at - split.leaves.begin());
}

std::uint64_t Sweep::bytes() const {
  std::uint64_t sum = bytes_in(leaves) + bytes_in(values) + lengths.bytes() + begin.bytes() + first.bytes() +
                      roots.bytes() + occupied.bytes() + cut.size() * sizeof(std::uint64_t);
  for (const NarrowBuffer& b : ids) sum += bytes_in(b);
  return sum + (leaf_copy ? leaf_copy->bytes() : 0);
}

Sweep Sweep::build(const CooTensor& x, const FormatOptions& options, bool leaf_copy, const Context& context) {
  Sweep s;
  s.tensor_shape = shape_of(x);
  s.split = options.leaf_modes.empty() ? choose_split(TensorSample(x, context), options.rank, leaf_copy)
                                       : split_with_leaves(x, options.leaf_modes);
  if (leaf_copy && s.split.leaves.size() > 1) throw usage_error("sweep-two has one leaf mode");
  s.split.leaf_copy = leaf_copy;
  std::vector<int> order = s.split.fibres;
  order.insert(order.end(), s.split.leaves.begin(), s.split.leaves.end());
  s.leaf_rows = polyad::leaf_rows(x, s.split.leaves);
  // By the modes of the fibres alone: the leaves of a fibre may come in any order.
  radix::Scratch scratch;
  const SortedNonzeros sorted(x, order, s.split.fibres.size(), context, scratch);
  const std::uint64_t nnz = x.nnz();
  s.leaves = leaf_buffer(s.leaf_rows, nnz, context);
  if (s.split.leaves.size() > 1)
    s.occupied = Buffer<std::uint8_t>(context, s.leaf_rows, "the occupied leaves", Paging::plain);
  const auto arrange = [&]<class Index, class Nonzeros>(const Nonzeros& nonzeros) {
    using Value = typename Nonzeros::value_type;
    const Arranger<Nonzeros, Index> arranger{s, nonzeros};
    const std::vector<std::uint64_t> bounds = arranger.cut_chunks();
    const std::uint64_t chunks = bounds.size() - 1;
    s.begin = Buffer<std::uint64_t>(context, chunks + 1, "where chunks begin", Paging::plain);
    std::ranges::copy(bounds, s.begin.data());
    s.lengths = Buffer<Lengths>(context, chunks, "the lengths of fibres", Paging::plain);
    s.first = Buffer<std::uint64_t>(context, chunks + 1, "the first fibres of chunks", Paging::plain);
    s.roots = Buffer<Roots>(context, chunks, "the roots of chunks", Paging::plain);
    Buffer<std::uint8_t> fibre_lengths(context, nnz, "the lengths of single fibres", Paging::plain, Content::any);
    cpu::for_each_chunk(context.thread_count(), chunks, [&](std::uint64_t c, int) {
      arranger.count(c, s.lengths[c], fibre_lengths.data() + s.begin[c]);
      s.roots[c] = arranger.roots(c);
    });
    s.first[0] = 0;
    for (std::uint64_t c = 0; c < chunks; ++c) {
      s.first[c + 1] = s.first[c];
      for (const std::uint16_t count : s.lengths[c]) s.first[c + 1] += count;
      const bool goes_on = c + 1 < chunks && s.roots[c + 1].first == s.roots[c].last;
      if (goes_on || (c > 0 && s.roots[c - 1].last == s.roots[c].first)) s.cut.push_back(c);
    }
    std::vector<Index*> fibre_ids;
    for (std::size_t h = 0; h < s.split.fibres.size(); ++h) {
      s.ids.emplace_back(padded_buffer<Index>(s.first[chunks], padding, "the indices of fibres", context));
      fibre_ids.push_back(typed<Index>(s.ids.back()));
    }
    Buffer<Value> sorted_values(context, nnz, "the values of sweep", Paging::plain, Content::any);
    std::visit(
        [&](auto& places) {
          cpu::for_each_chunk(context.thread_count(), chunks, [&](std::uint64_t c, int) {
            arranger.write(c, fibre_lengths.data() + s.begin[c], places.data(), sorted_values.data(), fibre_ids);
            if (s.occupied.empty()) return;
            const std::uint64_t end = arranger.chunk_end(c);
            for (std::uint64_t z = arranger.chunk_begin(c); z < end; ++z) {  // several threads may say it
              const std::atomic_ref is_occupied(s.occupied[places[z]]);
              if (is_occupied.load(std::memory_order_relaxed) == 0) is_occupied.store(1, std::memory_order_relaxed);
            }
          });
        },
        s.leaves);
    s.values = std::move(sorted_values);
  };
  sorted.visit([&](const auto& nonzeros) {
    switch (id_bytes(x.dims, s.split)) {
      case 2:
        return arrange.template operator()<std::uint16_t>(nonzeros);
      case 4:
        return arrange.template operator()<std::uint32_t>(nonzeros);
      default:
        return arrange.template operator()<std::uint64_t>(nonzeros);
    }
  });
  if (!leaf_copy) return s;
  FormatOptions leaf_options = options;
  leaf_options.mode = s.split.leaves[0];
  s.leaf_copy =
      Tiling::choose(TensorSample(x, context), s.split.leaves[0], options).tiles > 1
          ? Tiles::build(x, leaf_options, context)
          : Tiles::uncut(SortedCopy::sorted(sorted, s.split.leaves[0], x, value_code(x, options, context), context));
  return s;
}

namespace {

/// Long fibres are cut, others by the ends of chunks.
double stored_fibres(const CooTensor& x, const ModeSplit& split) {
  const auto nnz = static_cast<double>(x.nnz());
  const double chunks = std::ceil(nnz / static_cast<double>(Sweep::chunk_nonzeros));
  return std::min(nnz, split.fibre_count + nnz / static_cast<double>(Sweep::longest_fibre) + chunks);
}

StoragePrediction storage_of(const TensorSample& sample, const ModeSplit& split, const FormatOptions& options) {
  const CooTensor& x = sample.tensor();
  const std::uint64_t rows = leaf_rows(x, split.leaves);
  const auto nnz = static_cast<double>(x.nnz());
  const double chunks = std::ceil(nnz / static_cast<double>(Sweep::chunk_nonzeros));
  const double fibres = stored_fibres(x, split);
  const auto modes = static_cast<double>(split.fibres.size());
  const auto leaf = static_cast<double>(narrow_bytes(rows));
  const auto index = static_cast<double>(id_bytes(x.dims, split));
  StoragePrediction p;
  p.words = leaf / 4 * nnz + modes * index / 4 * fibres;
  p.formula = "leaf/4*nnz + |H|*index/4*F (an estimate)";
  p.bytes = (split.leaves.size() > 1 ? static_cast<double>(rows) : 0) +
            nnz * (leaf + static_cast<double>(bytes_of(x.precision()))) + modes * fibres * index +
            chunks * (sizeof(Sweep::Lengths) + sizeof(Sweep::Roots) + 16) + 16 +
            static_cast<double>(Sweep::padding) * (leaf + modes * index);
  if (split.leaf_copy) {
    const int mode = split.leaves[0];
    const double most = std::min(nnz, static_cast<double>(rows));
    p.words += nnz * modes * static_cast<double>(SortedCopy::index_bytes(x.dims, mode)) / 4 +
               std::min(2 * most, static_cast<double>(rows));
    p.formula = "leaf/4*nnz + |H|*index/4*(F + nnz) + min(2*S, I) (an estimate)";
    p.bytes += Tiles::predicted_bytes(sample, Tiling::choose(sample, mode, options), sample.value_code());
  }
  return p;
}

template <bool leaf_copy>
StoragePrediction predict_sweep(const CooTensor& x, const TensorStatistics&, const FormatOptions& options,
                                const Context& context) {
  const TensorSample sample(x, context);
  return storage_of(sample, choose_split(sample, options.rank, leaf_copy), options);
}

/// "modes 3+4"
std::string listed(const std::vector<int>& modes) {
  std::string text = modes.size() == 1 ? "mode " : "modes ";
  for (std::size_t k = 0; k < modes.size(); ++k) text += fmt::format("{}{}", k == 0 ? "" : "+", modes[k] + 1);
  return text;
}

/// For a nonzero of 64-bit indices, which the generic kernels decode.
constexpr double decode_wide_ns = 4;

template <bool leaf_copy>
SweepEstimate estimate_sweep(const EstimateRequest& q) {
  // What is built is chosen by fixed costs, so that it does not depend on measurements.
  const ModeSplit split = choose_split(q.sample, q.rank, leaf_copy);
  const CooTensor& x = q.sample.tensor();
  const double fibres = stored_fibres(x, split);
  SweepEstimate e;
  // 64-bit indices are for the generic kernels.
  e.ns = width_for(x.dims) == IndexWidth::u32 ? sweep_ns(q, split) : coordinates_ns(q, decode_wide_ns);
  e.build_ns = ((lie_in_order(x, split.fibres, q.sample.context()) ? 8 : 20) + (leaf_copy ? 18 : 0)) * q.sample.nnz();
  FormatOptions options;
  options.rank = q.rank;
  e.bytes = storage_of(q.sample, split, options).bytes;
  e.build_bytes = bytes_from_sorted(q, e.bytes, leaf_copy ? 2 : 1);
  const bool with_next = gathers_with_next(x, split);
  // With two modes of the fibres one gather serves both, and none is kept.
  const double next_bytes = q.sample.dim((split.fibres[0] + 1) % x.order()) * q.row_bytes();
  const bool serves_next =
      with_next && worth_adding_for_next(next_bytes, q.threads, fibres) && cut_share(q.sample, split) <= 0.5;
  const bool keeps = split.fibres.size() > (serves_next ? 2 : 1) && worth_keeping(fibres, q.sample.nnz());
  e.kept = keeps ? fibres * q.row_bytes() : 0;
  if (with_next) {
    const double next = q.sample.dim((split.fibres[0] + 1) % x.order());
    const double cut =
        std::min(0.5, 4 * cut_share(q.sample, split)) * fibres;  // at most half of them, else they are kept
    const double near = std::min(fibres, 2.0 * static_cast<double>(Sweep::chunk_nonzeros)) * q.threads;
    e.kept = std::max(e.kept, (cut + near) * q.row_bytes()) + next * q.row_bytes() * q.threads;
  }
  // Of merged leaves a table of products, and sums for each thread.
  if (split.leaves.size() > 1)
    e.kept += static_cast<double>(leaf_rows(x, split.leaves)) * q.row_bytes() * (1 + q.threads);
  e.leaf_modes = split.leaves;
  e.why = fmt::format("two passes for all modes: leaves of {}, {:.1f} per fibre{}{}", listed(split.leaves),
                      q.sample.nnz() / std::max(1.0, split.fibre_count),
                      with_next ? ", sums near"
                      : keeps   ? ", sums kept"
                                : "",
                      leaf_copy ? ", a copy by leaf" : "");
  return e;
}

}  // namespace

extern const FormatClass sweep_format;
const FormatClass sweep_format = {
    {{"sweep", "fibres of equal length side by side; short modes merged into one"},
     "polyad's own, after the dimension trees of Kaya and Ucar, SIAM J. Sci. Comput. 2018",
     false,
     "all modes in turn: two passes over the nonzeros whatever the order; one small copy"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(sweep_format, options, Sweep::build(x, options, false, context));
    },
    predict_sweep<false>,
    estimate_sweep<false>};

extern const FormatClass sweep_two_format;
const FormatClass sweep_two_format = {
    {{"sweep-two", "sweep, and a narrow copy sorted by the mode of the leaves"},
     "polyad's own, after the dimension trees of Kaya and Ucar, SIAM J. Sci. Comput. 2018",
     false,
     "all modes in turn, one of them long: nothing is added to rows out of reach of the caches"},
    [](const CooTensor& x, const FormatOptions& options, const Context& context) {
      return erased(sweep_two_format, options, Sweep::build(x, options, true, context));
    },
    predict_sweep<true>,
    estimate_sweep<true>};

}  // namespace polyad
