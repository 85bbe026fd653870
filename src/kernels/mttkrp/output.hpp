// SPDX-License-Identifier: MIT
/// \file How loops add to the output: the sinks. One loop, different sinks.
///
///   own        the rows belong to this thread: load, add, store
///   atomic     several threads may add to a row: one atomic addition per number (GenTen's MTTKRP-A and -B)
///   boundary   own, but the first and the last row of the thread's chunk, which its neighbours share, go to side rows
///              that are added in order afterwards: no atomics, the same bits for any number of threads
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/threads.hpp"
#include "kernels/mttkrp/request.hpp"
#include "kernels/mttkrp/update_rows.hpp"

namespace polyad {

enum class SinkKind : std::uint8_t { own, atomic, boundary };

/// Where one thread adds rows.
template <class T>
struct Sink {
  SinkKind kind = SinkKind::own;
  T* out = nullptr;             // [rows][stride]
  std::uint64_t stride = 0;     // elements
  std::uint64_t first_row = 0;  // boundary
  std::uint64_t last_row = 0;
  T* first = nullptr;  // [stride]
  T* last = nullptr;   // [stride]

  /// Where to add to a row that only this thread writes.
  [[nodiscard]] T* at(std::uint64_t row) const {
    if (kind == SinkKind::boundary) {
      if (row == first_row) return first;
      if (row == last_row) return last;
    }
    return out + row * stride;
  }
};

/// Threads that are worth starting: each gets about a thousand nonzeros or more.
template <class T>
[[nodiscard]] int useful_team(const MttkrpRequest<T>& r) {
  return static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(r.threads()), r.nnz() / 1024 + 1));
}

/// Sets every row to zero, in parallel.
template <class T>
void clear(FactorMatrix<T>& m, int threads) {
  cpu::parallel_ranges(threads, m.rows() * m.stride(),
                       [&](std::uint64_t b, std::uint64_t e) { std::fill(m.data() + b, m.data() + e, T{0}); });
}

/// out = tables[0] + tables[1] + ..., in this order; the first may be the output itself. The caller's update gets rows
/// when they are summed, while they are near.
template <class T>
void sum_tables(const MttkrpRequest<T>& r, std::span<const T* const> tables) {
  T* out = r.out.data();
  const RowParts parts(r.out.rows(), r.pending.update == nullptr ? r.out.rows() : r.pending.update->most_parts());
  RowUpdate<T>* update = r.pending.take_on(parts.count);
  if (update == nullptr && tables.size() == 1 && tables[0] == out) return;
  const std::uint64_t stride = r.stride();
  const bool many = r.out.rows() * stride >= std::uint64_t{1} << 14U;
  cpu::for_each_chunk(many ? r.threads() : 1, parts.count, [&](std::uint64_t part, int) {
    constexpr std::uint64_t few_rows = 1024;  // they stay near
    for (std::uint64_t first = parts.begin(part); first < parts.end(part); first += few_rows) {
      const std::uint64_t last = std::min(parts.end(part), first + few_rows);
      for (std::size_t t = 1; t < tables.size(); ++t) {
        const T* so_far = t == 1 ? tables[0] : out;
        const T* other = tables[t];
        for (std::uint64_t i = first * stride; i < last * stride; ++i) out[i] = so_far[i] + other[i];
      }
      if (tables.size() == 1 && tables[0] != out)
        std::copy(tables[0] + first * stride, tables[0] + last * stride, out + first * stride);
      if (update != nullptr) update->take(part, first, last, out + first * stride);
    }
  });
}

/// Memory for the rows of a chunk, one for each thread: an output that does not fit the caches would be read before it
/// is written, and the caller's update writes it anyway.
template <class T>
class NearRows {
 public:
  /// Rows of a thread.
  static constexpr std::uint64_t most_rows = std::uint64_t{1} << 14U;

  /// \param large whether the output is out of reach of the caches
  NearRows(const MttkrpRequest<T>& r, const RowUpdate<T>* update, bool large) : elements_(most_rows * r.stride()) {
    const std::uint64_t bytes = elements_ * sizeof(T) * static_cast<std::uint64_t>(r.threads());
    if (large && update != nullptr && update->reads_rows() && r.workspace.affords(near_rows, bytes, r.context))
      memory_ = static_cast<T*>(r.workspace.room(near_rows, bytes, r.context));
  }

  /// A thread's, for so many rows; null if that is not for them.
  [[nodiscard]] T* of(int rank, std::uint64_t rows) const {
    return memory_ == nullptr || rows > most_rows ? nullptr : memory_ + static_cast<std::uint64_t>(rank) * elements_;
  }
  /// Where row 0 would be if `first` is the one that `rows` begins with.
  [[nodiscard]] static T* as_if_first(T* rows, std::uint64_t first, std::uint64_t stride) {
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(rows) - first * stride * sizeof(T));
  }

 private:
  std::uint64_t elements_;
  T* memory_ = nullptr;  // [threads][most_rows][stride]
};

/// Outputs above this have left the caches before anybody reads them.
inline constexpr std::uint64_t past_cache_bytes = std::uint64_t{64} << 20U;

/// An output that several threads add to at arbitrary rows: private copies that are summed at the end, in the order of
/// the threads. With a fixed share of the work for each thread the result is the same for every run with as many
/// threads.
template <class T>
class SharedOutput {
 public:
  /// Whether private copies fit the memory and cost less than what replaces them, every thread reading all nonzeros
  /// (add_by_owner): a private row costs 3 passes over its bytes.
  /// \param adds how many rows will be added, by all threads
  [[nodiscard]] static bool affordable(const MttkrpRequest<T>& r, int threads, std::uint64_t adds) {
    if (threads == 1) return true;
    const std::uint64_t bytes = copy_bytes(r) * static_cast<std::uint64_t>(threads - 1);
    return bytes / 100 <= adds && r.workspace.affords(private_outputs, bytes, r.context);
  }

  /// \param kind own: private copies; atomic: the threads add to the output itself
  SharedOutput(const MttkrpRequest<T>& request, int threads, SinkKind kind = SinkKind::own)
      : request_(request), threads_(threads), kind_(threads == 1 ? SinkKind::own : kind) {
    clear(request.out, threads);
    if (threads > 1 && kind_ == SinkKind::own)
      copies_ = static_cast<T*>(request.workspace.room(
          private_outputs, copy_bytes(request) * static_cast<std::size_t>(threads - 1), request.context));
  }

  /// What thread `rank` adds to. Each thread calls it once, from within the team: it clears its own copy.
  [[nodiscard]] Sink<T> sink(int rank) const {
    Sink<T> s;
    s.kind = kind_;
    s.stride = request_.stride();
    s.out = request_.out.data();
    if (kind_ == SinkKind::own && rank > 0) {
      const std::uint64_t elements = request_.out.rows() * request_.stride();
      s.out = copies_ + static_cast<std::uint64_t>(rank - 1) * elements;
      std::fill_n(s.out, elements, T{0});
    }
    return s;
  }

  /// Adds the private copies, in the order of the threads.
  void finish() const {
    const std::uint64_t elements = request_.out.rows() * request_.stride();
    std::vector<const T*> tables = {request_.out.data()};
    if (kind_ == SinkKind::own)
      for (int t = 1; t < threads_; ++t) tables.push_back(copies_ + static_cast<std::uint64_t>(t - 1) * elements);
    sum_tables<T>(request_, tables);
  }

 private:
  [[nodiscard]] static std::uint64_t copy_bytes(const MttkrpRequest<T>& r) {
    return r.out.rows() * r.stride() * sizeof(T);
  }

  const MttkrpRequest<T>& request_;
  int threads_;
  SinkKind kind_;
  T* copies_ = nullptr;  // [threads - 1][rows][stride]
};

/// Work cut into chunks whose first and last output rows neighbours may share (nonzeros sorted by the output mode):
/// side rows per chunk, added in the order of chunks. The chunks do not depend on the number of threads, so neither
/// does the result.
template <class T>
class BoundaryRows {
 public:
  /// \param cleared false: the caller clears the output, every row before a side row is added to it
  BoundaryRows(const MttkrpRequest<T>& request, std::uint64_t chunks, bool cleared = true)
      : request_(request), rows_(2 * chunks) {
    if (cleared) clear(request.out, request.threads());
    side_ = static_cast<T*>(
        request.workspace.room(boundary_rows, 2 * chunks * request.stride() * sizeof(T), request.context));
  }

  /// The sink of a chunk whose nonzeros go to rows first_row .. last_row.
  [[nodiscard]] Sink<T> sink(std::uint64_t chunk, std::uint64_t first_row, std::uint64_t last_row) {
    Sink<T> s;
    s.kind = SinkKind::boundary;
    s.out = request_.out.data();
    s.stride = request_.stride();
    s.first_row = first_row;
    s.last_row = last_row;
    s.first = side_ + 2 * chunk * s.stride;
    s.last = s.first + s.stride;
    std::fill_n(s.first, 2 * s.stride, T{0});
    rows_[2 * chunk] = first_row;
    rows_[2 * chunk + 1] = last_row;
    return s;
  }

  /// Adds the side rows; every chunk must have had its sink.
  void finish() const {
    const std::uint64_t stride = request_.stride();
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      T* out = request_.out.row(rows_[i]);
      const T* side = side_ + i * stride;
      for (std::uint64_t r = 0; r < stride; ++r) out[r] += side[r];
    }
  }

 private:
  const MttkrpRequest<T>& request_;
  std::vector<std::uint64_t> rows_;  // [chunks][2]
  T* side_ = nullptr;                // [chunks][2][stride]
};

}  // namespace polyad
