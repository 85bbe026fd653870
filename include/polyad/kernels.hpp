// SPDX-License-Identifier: MIT
/// \file The operations on a tensor in any storage format.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/cp_model.hpp"
#include "polyad/matrix.hpp"
#include "polyad/registry.hpp"
#include "polyad/tensor.hpp"

namespace polyad {

/// Memory that kernels keep from one call to the next: private copies of an output, partial rows. Belongs to one
/// computation at a time.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// At least `bytes` bytes, aligned for any type, for one of the purposes of a kernel; the content is whatever was
  /// left.
  [[nodiscard]] void* room(int purpose, std::size_t bytes, const Context& context);
  /// Whether the context's memory limit lets the room of a purpose have so many bytes: what it holds already counts
  /// once.
  [[nodiscard]] bool affords(int purpose, std::size_t bytes, const Context& context) const;
  /// Bytes held.
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  /// Gives everything back.
  void clear() noexcept;

  /// Kernels may from now on keep products of factors from one call to the next: the caller promises that the factors
  /// it passes are those of the call before but for the modes that it names by `changed`. Without this promise every
  /// call starts anew.
  void keep_products();
  /// Whether that was promised.
  [[nodiscard]] bool keeps_products() const noexcept;
  /// The factor of a mode (0-based) will have other numbers than at the last call.
  void changed(int mode);
  /// All factors will.
  void changed();
  /// The factor of a mode (0-based) will not change any more: what is made from it is worth keeping for good.
  void set_fixed(int mode);
  /// Whether that was said.
  [[nodiscard]] bool is_fixed(int mode) const;

  /// For kernels: whether the room of a purpose holds what was made from the factors of `modes` as they are now.
  /// \param maker what tells one tensor and number of columns from another
  [[nodiscard]] bool holds(int purpose, std::span<const int> modes, const std::array<std::uint64_t, 2>& maker) const;
  /// For kernels: the room of a purpose now holds what was made from them.
  /// \param about_to_change a mode whose new factor was used already: it holds when the caller has said once that the
  /// factor changed
  void set_held(int purpose, std::span<const int> modes, const std::array<std::uint64_t, 2>& maker,
                int about_to_change = -1);
  /// For kernels: how often the factor of a mode was said to have changed.
  [[nodiscard]] std::uint64_t version(int mode) const;
  /// For kernels: what they keep on devices, theirs to make; given back by clear().
  [[nodiscard]] std::shared_ptr<void>& on_devices();

 private:
  struct Rooms;
  std::unique_ptr<Rooms> rooms_;
};

/// Which kernel ran, or would run.
struct KernelChoice {
  std::string_view name;  ///< its line in the registry, e.g. "mttkrp/csf/root"
  std::string why;        ///< why this one
};

/// What the caller makes of the rows of an MTTKRP, as soon as they are complete and still near the processor: CP-ALS
/// solves them and adds up their Gram matrix, without a pass of its own over millions of rows. A row that was taken may
/// serve the next mode at once, so that two modes need one pass over the nonzeros.
template <class T>
class RowUpdate {
 public:
  RowUpdate() = default;
  RowUpdate(const RowUpdate&) = delete;
  RowUpdate& operator=(const RowUpdate&) = delete;
  virtual ~RowUpdate() = default;

  /// Rows come in parts that are worked on at the same time. Whoever adds something up does so part by part, and can
  /// say here how many are too many.
  [[nodiscard]] virtual std::uint64_t most_parts() const = 0;
  /// Rows will come in so many parts, at most most_parts().
  virtual void begin(std::uint64_t parts) = 0;
  /// Rows begin .. end of the output are complete. Every row comes once; those of one part come one after the other, in
  /// an order that depends on the tensor and the number of threads alone.
  /// \param rows where they are, padded as in the output: there, to be changed in place; or, if reads_rows(), in memory
  /// that the kernel uses again afterwards, and then the output holds nothing for them
  virtual void take(std::uint64_t part, std::uint64_t begin, std::uint64_t end, T* rows) = 0;
  /// Whether `take` looks at the rows: then they are near.
  [[nodiscard]] virtual bool reads_rows() const { return true; }
  /// Where the factor is that other modes will see: row i is there once it was taken.
  [[nodiscard]] virtual const FactorMatrix<T>& factor() const = 0;

  /// The mode (0-based) that will be asked for next, when no factor but this one's changes before; -1: not known.
  int next_mode = -1;
};

/// V(k,:) = sum over nonzeros with i_mode = k of x * Hadamard product over m != mode of factors[m](i_m,:).
/// `factors` has one matrix per mode (the one of `mode` is not read), `out` dims[mode] x rank; it is overwritten.
/// \param kernel the name of a kernel to force; empty: the cheapest that can
/// \param mode 0-based
/// \param update is given every row of `out`; may be null
template <class T>
KernelChoice mttkrp(Tensor& x, std::span<const FactorMatrix<T>> factors, int mode, FactorMatrix<T>& out,
                    Workspace& workspace, const Context& context = {}, std::string_view kernel = {},
                    RowUpdate<T>* update = nullptr);

/// The kernel that mttkrp would take.
[[nodiscard]] KernelChoice mttkrp_choice(const Tensor& x, int mode, std::uint64_t rank, const Context& context = {},
                                         std::string_view kernel = {});

/// Y(i without i_mode) = sum of x * vector[i_mode]: a sparse tensor of order N-1 without duplicates, sorted by its
/// modes. Entries that cancel to 0 stay. f32 tensors give f32 results. \param vector dims[mode] numbers
[[nodiscard]] CooTensor ttv(const Tensor& x, int mode, std::span<const double> vector, const Context& context = {},
                            std::string_view kernel = {}, KernelChoice* choice = nullptr);

/// A tensor that is dense in one mode: per non-empty fibre of that mode a row.
struct SemiSparseTensor {
  int dense_mode = 0;         ///< 0-based position of the dense mode
  CooTensor fibres;           ///< coordinates of the rows in the other modes, sorted; its values are all 1
  FactorMatrix<double> rows;  ///< [fibres][length of the dense mode]
};

/// Y(.., j, ..) = sum over i_mode of x * matrix(j, i_mode): every fibre of the mode becomes a dense row.
/// \param matrix J x dims[mode]
[[nodiscard]] SemiSparseTensor ttm(const Tensor& x, int mode, const Matrix& matrix, const Context& context = {});

/// Frobenius norm of the stored values; those of one coordinate are not summed first. The same bits for any number of
/// threads.
[[nodiscard]] double norm(const Tensor& x, const Context& context = {});

/// Frobenius norm of a model: sqrt(weights' (Hadamard over modes of factor' factor) weights).
[[nodiscard]] double norm(const CpModel& model);

/// <X, M> = sum over nonzeros of x times the model's value there. The same bits for any number of threads.
[[nodiscard]] double innerprod(const Tensor& x, const CpModel& model, const Context& context = {});

}  // namespace polyad
