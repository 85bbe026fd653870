// SPDX-License-Identifier: MIT
/// \file The dot products of fibres with a vector, in pieces of equal work whatever the lengths of the fibres.
///
/// The work is a path through fibres and nonzeros, one step per fibre and per nonzero (Merrill and Garland 2016,
/// "Merge-based parallel sparse matrix-vector multiplication"): position d of the path lies in the fibre f, at nonzero
/// k, with f + k = d. Pieces of `piece_steps` steps are as good as equal, also when one fibre has most of the nonzeros
/// or most fibres (rows of HOCSR) are empty. A fibre that goes over the end of a piece leaves a carry, which is added
/// afterwards in the order of pieces. Pieces do not depend on the number of threads, so neither does any sum.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/offsets.hpp"
#include "kernels/mttkrp/output.hpp"

namespace polyad {

/// Steps of a piece: long enough that finding it (two binary searches) does not count, short enough for a thousand of
/// them per thread in a tensor of ten million nonzeros.
inline constexpr std::uint64_t piece_steps = 4096;

/// The fibres that end in a piece.
struct PieceFibres {
  std::size_t count = 0;
  std::array<std::uint32_t, piece_steps> ends;     // [count] counted from the first nonzero of the piece
  std::array<std::uint32_t, piece_steps> numbers;  // [count] counted from the first fibre of the piece
};

/// One piece for the loop.
template <class Index, class T>
struct FibrePiece {
  const Index* indices = nullptr;   // [nonzeros]
  const T* values = nullptr;        // [nonzeros]
  const T* vector = nullptr;        // [vector_length]
  std::uint64_t vector_length = 0;  // for those who gather with signed indices
  std::uint64_t nonzeros = 0;
  std::span<const std::uint32_t> ends;  // of the fibres that end in the piece
  T* out = nullptr;                     // [ends]
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

  /// Sums all fibres: collect(from, to, fibres) lists the fibres of a piece that want a sum, before(p, from) is the
  /// number of those before it, name(from, fibres, at) writes their indices to the result from position `at` on.
  template <class Index, class T, class Collect, class Before, class Name>
  void sum(const FibrePiece<Index, T>& whole, int threads, const Collect& collect, const Before& before,
           const Name& name) const {
    std::vector<T> carries(pieces_);
    cpu::for_each_chunk(threads, pieces_, [&](std::uint64_t p, int) {
      const Position from = begin(p);
      const Position to = begin(p + 1);
      PieceFibres fibres;
      collect(from, to, fibres);
      const std::uint64_t at = before(p, from);
      FibrePiece<Index, T> piece = whole;
      piece.indices += from.nonzero;
      piece.values += from.nonzero;
      piece.nonzeros = to.nonzero - from.nonzero;
      piece.ends = std::span<const std::uint32_t>(fibres.ends).first(fibres.count);
      piece.out += at;
      carries[p] = sum_fibres(piece);
      name(from, fibres, at);
    });
    for (std::uint64_t p = 0; p + 1 < pieces_; ++p) {
      const Position next = begin(p + 1);
      if (next.nonzero > begins_[next.fibre]) whole.out[before(p + 1, next)] += carries[p];
    }
  }

  /// The same for formats without empty fibres: sum f is that of fibre f, and name(first, end) writes the indices.
  template <class Index, class T, class Name>
  void sum(const FibrePiece<Index, T>& whole, int threads, const Name& name) const {
    sum(
        whole, threads,
        [&](const Position& from, const Position& to, PieceFibres& fibres) {
          fibres.count = to.fibre - from.fibre;
          begins_.visit([&](const auto* begins) {
            for (std::size_t i = 0; i < fibres.count; ++i)
              fibres.ends[i] = static_cast<std::uint32_t>(begins[from.fibre + i + 1] - from.nonzero);
          });
        },
        [](std::uint64_t, const Position& from) { return from.fibre; },
        [&](const Position& from, const PieceFibres& fibres, std::uint64_t) {
          name(from.fibre, from.fibre + fibres.count);
        });
  }

 private:
  const Offsets& begins_;
  std::uint64_t steps_;
  std::uint64_t pieces_;
};

}  // namespace polyad
