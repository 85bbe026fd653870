// SPDX-License-Identifier: MIT
/// \file Loops over fibres that lie side by side by length (formats/sweep).
///
///   gather    per fibre f   P(f) = sum of value * table(leaf)      then out(i_n) += P(f) * rows of its other modes
///   products  per fibre f   out(i_n) += P(f) * rows of its other modes, P kept from a gather
///   scatter   per fibre f   q = rows of all its modes              then sums(leaf) += value * q
///
/// A table of merged leaf modes is made from their factors (fill_table) and summed back to one of them (fold_table).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "backends/cpu/threads.hpp"
#include "kernels/mttkrp/request.hpp"
#include "polyad/types.hpp"

namespace polyad {

/// One mode of the fibres.
template <class T>
struct FibreMode {
  const void* ids = nullptr;  // [fibres]
  const T* factor = nullptr;  // [rows][stride]
  bool prefetched = false;    // the matrix does not stay in the L2 cache by itself
};

/// Everything a loop needs.
template <class T>
struct FibreLoop {
  const std::uint16_t* short_leaves = nullptr;  // [nnz], or null
  const std::uint32_t* leaves = nullptr;        // [nnz], or null
  const T* values = nullptr;                    // [nnz]
  std::array<FibreMode<T>, max_order> inputs;   // the modes that are multiplied
  int input_count = 0;
  const void* output_ids = nullptr;  // [fibres]; not for scatter
  bool short_ids = false;            // indices of fibres have 16 bits, else 32
  const T* table = nullptr;          // gather: [leaf rows][stride]
  bool prefetch_leaves = false;
  bool prefetch_output = false;
  T* products = nullptr;             // [fibres from first_product on][stride]: gather writes them unless it is null
  std::uint64_t first_product = 0;   // the fibre whose product comes first
  bool products_past_cache = false;  // nobody reads them soon
  std::uint64_t stride = 0;          // of all matrices
};

/// Fibres of one chunk.
struct FibreChunk {
  std::span<const std::uint16_t> lengths;  // fibres of each length, from 1 on
  std::uint64_t first_fibre = 0;
  std::uint64_t first_nonzero = 0;
};

/// \param out [rows of the output][stride], or where its first row would be if all that are used are kept elsewhere
void gather_fibres(const FibreLoop<float>& loop, const FibreChunk& chunk, float* out);
void gather_fibres(const FibreLoop<double>& loop, const FibreChunk& chunk, double* out);
/// Fibres begin .. end.
void add_products(const FibreLoop<float>& loop, std::uint64_t begin, std::uint64_t end, float* out);
void add_products(const FibreLoop<double>& loop, std::uint64_t begin, std::uint64_t end, double* out);
/// \param sums [leaf rows][stride]
void scatter_fibres(const FibreLoop<float>& loop, const FibreChunk& chunk, float* sums);
void scatter_fibres(const FibreLoop<double>& loop, const FibreChunk& chunk, double* sums);

/// The modes whose indices are the digits of a merged index, the first the highest.
template <class T>
struct LeafTable {
  std::array<const T*, max_order> factors = {};       // [rows of the mode][stride]
  std::array<std::uint64_t, max_order> lengths = {};  // of the modes
  int modes = 0;
  std::uint64_t stride = 0;
};

/// The table of some modes of a tensor.
template <class T>
[[nodiscard]] LeafTable<T> table_of(std::span<const int> modes, const MttkrpRequest<T>& r) {
  LeafTable<T> table;
  table.stride = r.stride();
  for (const int m : modes) {
    const auto at = static_cast<std::size_t>(table.modes++);
    table.factors[at] = r.factors[static_cast<std::size_t>(m)].data();
    table.lengths[at] = r.tensor.shape().dims[static_cast<std::size_t>(m)];
  }
  return table;
}

/// rows(k) = product over the modes of their rows, for the merged indices begin .. end.
void fill_table(const LeafTable<float>& table, std::uint64_t begin, std::uint64_t end, float* rows);
void fill_table(const LeafTable<double>& table, std::uint64_t begin, std::uint64_t end, double* rows);
/// out(i) = sum over merged indices k whose digit `position` is i of sums(k) * product of the other modes' rows, for i
/// in begin .. end. \param occupied [merged indices] 0 where there is no nonzero: rows there do not matter, even if
/// infinite
void fold_table(const LeafTable<float>& table, const float* sums, const std::uint8_t* occupied, int position,
                std::uint64_t begin, std::uint64_t end, float* out);
void fold_table(const LeafTable<double>& table, const double* sums, const std::uint8_t* occupied, int position,
                std::uint64_t begin, std::uint64_t end, double* out);

/// All of the table, by all threads. \param rows [merged indices][stride]
template <class T>
void fill_whole_table(const LeafTable<T>& table, std::uint64_t merged_indices, int threads, T* rows) {
  cpu::parallel_ranges(
      threads, merged_indices, [&](std::uint64_t begin, std::uint64_t end) { fill_table(table, begin, end, rows); },
      1024);
}
/// The MTTKRP of the mode at `position` among the merged ones from the sums of them all, by all threads.
template <class T>
void fold_to_output(const LeafTable<T>& table, const T* sums, std::span<const std::uint8_t> occupied, int position,
                    const MttkrpRequest<T>& r) {
  cpu::parallel_ranges(
      r.threads(), r.out.rows(),
      [&](std::uint64_t begin, std::uint64_t end) {
        fold_table(table, sums, occupied.data(), position, begin, end, r.out.data());
      },
      std::max<std::uint64_t>(1, 1024 * r.out.rows() / occupied.size()));
}

}  // namespace polyad
