// SPDX-License-Identifier: MIT
/// \file The dot products of fibres with a vector, in pieces of equal work whatever the lengths of the fibres.
///
/// The work is a path through fibres and nonzeros, one step per fibre and per nonzero (Merrill and Garland 2016,
/// "Merge-based parallel sparse matrix-vector multiplication"): position d of the path lies in the fibre f, at nonzero
/// k, with f + k = d. Pieces of `piece_steps` steps are as good as equal, also when one fibre has most of the nonzeros
/// or most fibres (rows of HOCSR) are empty. A fibre that goes over the end of a piece leaves a carry, which is added
/// afterwards in the order of pieces. Pieces do not depend on the number of threads, so neither does any sum.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/offsets.hpp"
#include "kernels/mttkrp/output.hpp"

namespace polyad {

/// One piece for the loop.
template <class Index, class T>
struct FibrePiece {
  const Offsets* begins = nullptr;  // [fibres + 1]
  const Index* indices = nullptr;   // [nnz]
  const T* values = nullptr;        // [nnz]
  const T* vector = nullptr;        // [length]
  std::uint64_t vector_length = 0;  // for those who gather with signed indices
  std::uint64_t first_fibre = 0;    // fibres that end in the piece
  std::uint64_t end_fibre = 0;
  std::uint64_t first_nonzero = 0;
  std::uint64_t end_nonzero = 0;
  bool skip_empty = false;  // write no sum for a fibre without nonzeros
  T* out = nullptr;         // [sums]
};

/// Writes the sums of the fibres that end in a piece; returns what belongs to the fibre that goes on.
float sum_fibres(const FibrePiece<std::uint32_t, float>& piece);
double sum_fibres(const FibrePiece<std::uint32_t, double>& piece);
float sum_fibres(const FibrePiece<std::uint64_t, float>& piece);
double sum_fibres(const FibrePiece<std::uint64_t, double>& piece);

/// A group of up to 16 interleaved rows of hocfs-ell: element e of row r is at e * rows + r; an index with all bits set
/// is padding.
template <class Index, class T>
struct EllGroup {
  const Index* indices = nullptr;
  const T* values = nullptr;
  const T* vector = nullptr;
  std::uint64_t vector_length = 0;
  std::uint64_t rows = 0;
  std::uint64_t length = 0;
  T* out = nullptr;  // [rows]
};

/// out[r] = sum over e of values * vector[indices].
void sum_rows(const EllGroup<std::uint32_t, float>& group);
void sum_rows(const EllGroup<std::uint32_t, double>& group);
void sum_rows(const EllGroup<std::uint64_t, float>& group);
void sum_rows(const EllGroup<std::uint64_t, double>& group);

/// Steps of a piece: long enough that finding it (two binary searches) does not count, short enough for a thousand of
/// them per thread in a tensor of ten million nonzeros.
inline constexpr std::uint64_t piece_steps = 4096;

/// How the path is cut.
class FibrePath {
 public:
  FibrePath(const Offsets& begins, std::uint64_t nnz)
      : begins_(begins), steps_(begins.groups() + nnz), pieces_((steps_ + piece_steps - 1) / piece_steps) {}

  struct Position {
    std::uint64_t fibre = 0;
    std::uint64_t nonzero = 0;
  };

  [[nodiscard]] std::uint64_t pieces() const { return pieces_; }
  /// Where piece p begins: the largest f with begins[f] + f <= d, and k = d - f.
  [[nodiscard]] Position begin(std::uint64_t p) const {
    const std::uint64_t d = std::min(p * piece_steps, steps_);
    std::uint64_t low = 0;
    std::uint64_t high = std::min(d, begins_.groups()) + 1;
    while (high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      (begins_[middle] + middle <= d ? low : high) = middle;
    }
    return {low, d - low};
  }

  /// Sums all fibres. before(p) is the number of sums that fibres before piece p give (for formats without empty
  /// fibres: the fibre); also(piece, before) is called for each piece by the thread that did it.
  template <class Index, class T, class Before, class Also>
  void sum(FibrePiece<Index, T> whole, int threads, const Before& before, const Also& also) const {
    std::vector<T> carries(pieces_);
    T* const out = whole.out;
    for_each_chunk(threads, pieces_, [&](std::uint64_t p, int) {
      FibrePiece<Index, T> piece = whole;
      const Position from = begin(p);
      const Position to = begin(p + 1);
      piece.first_fibre = from.fibre;
      piece.end_fibre = to.fibre;
      piece.first_nonzero = from.nonzero;
      piece.end_nonzero = to.nonzero;
      const std::uint64_t at = before(p, from);
      piece.out = out + at;
      carries[p] = sum_fibres(piece);
      also(piece, at);
    });
    for (std::uint64_t p = 0; p + 1 < pieces_; ++p) {
      const Position next = begin(p + 1);
      if (next.nonzero > begins_[next.fibre]) out[before(p + 1, next)] += carries[p];
    }
  }

 private:
  const Offsets& begins_;
  std::uint64_t steps_;
  std::uint64_t pieces_;
};

}  // namespace polyad
