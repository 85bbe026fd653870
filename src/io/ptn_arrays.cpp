// SPDX-License-Identifier: MIT
#include "io/ptn_arrays.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <type_traits>

#include "backends/cpu/threads.hpp"

namespace polyad::io::ptn {

namespace {

/// Calls f with a value of the unsigned type of that width: one dispatch per chunk, then typed loops.
template <class F>
decltype(auto) with_width(std::uint32_t width, F&& f) {
  switch (width) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      assert(width == 8);
      return f(std::uint64_t{});
  }
}

/// Sections begin at multiples of 4096 and chunks at multiples of 1 MiB, so every element is aligned.
template <class T>
const T* typed(const std::byte* data) {
  return reinterpret_cast<const T*>(data);
}

/// Bits of the exponent: all set in infinities and NaNs only.
template <class Bits>
constexpr Bits exponent = sizeof(Bits) == 4 ? Bits{0x7f800000U} : static_cast<Bits>(0x7ff0000000000000ULL);

template <class Bits>
std::optional<std::size_t> first_with_full_exponent(const Bits* bits, std::size_t n) {
  // The loop has no exit, so that the compiler makes vectors of it; a second look finds the place.
  Bits found = 0;
  for (std::size_t i = 0; i < n; ++i) found |= static_cast<Bits>((bits[i] & exponent<Bits>) == exponent<Bits>);
  if (found == 0) return std::nullopt;
  const Bits* at = std::find_if(bits, bits + n, [](Bits b) { return (b & exponent<Bits>) == exponent<Bits>; });
  return static_cast<std::size_t>(at - bits);
}

/// Narrows the set of nonzeros whose coordinate still equals their predecessor's by one mode.
/// \param equal [n] 1 while all modes so far are equal
/// \return whether a nonzero of the set comes before its predecessor
template <class T>
bool compare_to_predecessor(const T* a, std::size_t n, std::uint8_t* equal) {
  std::uint8_t bad = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const T before = a[static_cast<std::ptrdiff_t>(i) - 1];
    bad |= static_cast<std::uint8_t>(equal[i] & static_cast<std::uint8_t>(before > a[i]));
    equal[i] &= static_cast<std::uint8_t>(before == a[i]);
  }
  return bad != 0;
}

/// Is nonzero k (k > 0) out of order? The definition, for one nonzero.
bool is_out_of_order(std::span<const NumberArray> modes, std::uint64_t k, bool strictly) {
  for (const NumberArray& a : modes) {
    const std::uint64_t before = a[k - 1];
    const std::uint64_t here = a[k];
    if (before != here) return before > here;
  }
  return strictly;
}

/// First nonzero out of order in [begin, end), begin > 0; `end` when there is none.
std::uint64_t out_of_order_within(std::span<const NumberArray> modes, std::uint64_t begin, std::uint64_t end,
                                  bool strictly) {
  constexpr std::size_t block = 4096;  // its indices of one mode stay in the first cache
  std::array<std::uint8_t, block> equal;
  for (std::uint64_t at = begin; at < end; at += block) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(block, end - at));
    std::fill_n(equal.begin(), n, std::uint8_t{1});
    bool bad = false;
    for (const NumberArray& a : modes) {
      bad |= with_width(a.width,
                        [&]<class T>(T) { return compare_to_predecessor(typed<T>(a.from(at).data), n, equal.data()); });
    }
    if (strictly) bad |= std::find(equal.begin(), equal.begin() + n, std::uint8_t{1}) != equal.begin() + n;
    if (!bad) continue;
    for (std::uint64_t k = at; k < at + n; ++k)
      if (is_out_of_order(modes, k, strictly)) return k;
  }
  return end;
}

}  // namespace

std::uint64_t NumberArray::operator[](std::uint64_t k) const noexcept {
  return with_width(width, [&]<class T>(T) { return static_cast<std::uint64_t>(typed<T>(data)[k]); });
}

std::optional<std::size_t> first_not_below(NumberArray a, std::size_t n, std::uint64_t limit) {
  return with_width(a.width, [&]<class T>(T) -> std::optional<std::size_t> {
    const T* p = typed<T>(a.data);
    T most = 0;
    for (std::size_t i = 0; i < n; ++i) most = std::max(most, p[i]);
    if (n == 0 || most < limit) return std::nullopt;
    return static_cast<std::size_t>(std::find_if(p, p + n, [&](T v) { return v >= limit; }) - p);
  });
}

void convert_numbers(NumberArray from, std::size_t n, void* to, std::uint32_t to_width) {
  with_width(from.width, [&]<class From>(From) {
    with_width(to_width, [&]<class To>(To) {
      const From* source = typed<From>(from.data);
      To* target = static_cast<To*>(to);
      for (std::size_t i = 0; i < n; ++i) target[i] = static_cast<To>(source[i]);
    });
  });
}

std::optional<std::size_t> first_not_finite(const std::byte* values, std::uint32_t width, std::size_t n) {
  if (width == 4) return first_with_full_exponent(typed<std::uint32_t>(values), n);
  return first_with_full_exponent(typed<std::uint64_t>(values), n);
}

namespace {

// A float cannot hold it: a finite number became infinite, or one that is not 0 became 0.
bool is_lost(double source, float target) {
  return (std::isinf(target) && !std::isinf(source)) || (target == 0 && source != 0);
}

}  // namespace

std::optional<std::size_t> convert_values(const std::byte* from, std::uint32_t width, std::size_t n, void* to) {
  if (width == 4) {
    std::copy_n(typed<float>(from), n, static_cast<double*>(to));
    return std::nullopt;
  }
  const double* source = typed<double>(from);
  auto* target = static_cast<float*>(to);
  int lost = 0;
  for (std::size_t i = 0; i < n; ++i) {
    target[i] = static_cast<float>(source[i]);
    lost |= static_cast<int>(is_lost(source[i], target[i]));
  }
  if (lost == 0) return std::nullopt;
  for (std::size_t i = 0; i < n; ++i)
    if (is_lost(source[i], target[i])) return i;
  return std::nullopt;
}

std::optional<std::uint64_t> first_out_of_order(std::span<const NumberArray> modes, std::uint64_t nnz, bool strictly,
                                                int threads) {
  if (nnz < 2) return std::nullopt;
  std::mutex guard;
  std::uint64_t first = nnz;
  cpu::parallel_ranges(threads, nnz - 1, [&](std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t k = out_of_order_within(modes, begin + 1, end + 1, strictly);
    if (k == end + 1) return;
    const std::lock_guard lock(guard);
    first = std::min(first, k);
  });
  if (first == nnz) return std::nullopt;
  return first;
}

ChunkList::ChunkList(std::span<const Section> sections) : sections_(sections), firsts_(1, 0) {
  firsts_.reserve(sections.size() + 1);
  for (const Section& s : sections) {
    firsts_.push_back(firsts_.back() + s.chunks());
    bytes_ += s.bytes;
  }
}

Chunk ChunkList::operator[](std::uint64_t i) const {
  const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), i);
  Chunk c;
  c.section = static_cast<std::size_t>(after - firsts_.begin()) - 1;
  c.number = i - firsts_[c.section];
  c.offset = c.number * chunk_bytes;
  c.bytes = std::min(chunk_bytes, sections_[c.section].bytes - c.offset);
  return c;
}

void for_each_chunk(std::span<const Section> sections, std::string_view phase, const Context& context,
                    const std::function<void(const Chunk&, std::vector<std::byte>&)>& body) {
  const ChunkList chunks(sections);
  std::atomic<std::uint64_t> done{0};
  std::atomic<int> failed{std::numeric_limits<int>::max()};  // lowest rank that failed
  const auto threads = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(context.thread_count()),
                                                                std::max<std::uint64_t>(chunks.size(), 1)));
  // Shares are contiguous and run_team rethrows by rank, so the failure that comes first in the file wins; only ranks
  // after the failed one may stop early.
  cpu::run_team(threads, [&](int rank, int size) {
    try {
      std::vector<std::byte> scratch;
      const cpu::Share share = cpu::share_of(chunks.size(), rank, size);
      for (std::uint64_t i = share.begin; i < share.end && failed.load() > rank; ++i) {
        const Chunk chunk = chunks[i];
        body(chunk, scratch);
        const std::uint64_t now = done.fetch_add(chunk.bytes) + chunk.bytes;
        if (rank == 0) context.report({phase, now, chunks.bytes(), "bytes"});
      }
    } catch (...) {
      int lowest = failed.load();
      while (rank < lowest && !failed.compare_exchange_weak(lowest, rank)) {
      }
      throw;
    }
  });
}

}  // namespace polyad::io::ptn
