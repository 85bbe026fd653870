// SPDX-License-Identifier: MIT
#include "kernels/gpu/dense.hpp"

#include <algorithm>
#include <bit>
#include <string>

namespace polyad::gpu {

namespace {

constexpr std::uint64_t depth = 2;  // PD_DENSE_DEPTH
constexpr const char* numbers_room = "the solution";
constexpr const char* sums_room = "sums over rows";
/// Enough groups for large devices at small ranks.
constexpr std::uint64_t enough_chunks = 256;
/// Partial sums beyond so many bytes would take longer to copy than they save.
constexpr std::uint64_t most_sum_bytes = std::uint64_t{1} << 22U;

/// A square group, no wider than a row, but of 64 work-items where the device has as many: fewer leave it idle.
std::uint64_t tile_of(std::uint64_t stride, const Facts& facts) {
  std::uint64_t tile = 1;
  const std::uint64_t most = std::clamp<std::uint32_t>(facts.largest_group, 1, 256);
  while (4 * tile * tile <= most && tile < std::max<std::uint64_t>(stride, 8)) tile *= 2;
  return tile;
}

}  // namespace

template <class T>
DenseRows<T>::DenseRows(Workspace& workspace, const Context& context, std::span<const std::uint64_t> dims, int mode,
                        std::uint64_t rank)
    : workspace_(workspace),
      state_(*states_of(workspace, context).all.at(0)),
      mode_(mode),
      rows_(dims[static_cast<std::size_t>(mode)]),
      longest_(*std::ranges::max_element(dims)),
      rank_(rank),
      stride_(padded_columns(rank)),
      tile_(tile_of(stride_, state_.facts())) {
  for (std::size_t m = 0; m < dims.size(); ++m) {
    if (m == static_cast<std::size_t>(mode)) first_row_ = all_rows_;
    all_rows_ += dims[m];
  }
  head_ = {rows_, stride_, first_row_, chunk_rows()};
}

template <class T>
std::uint64_t DenseRows<T>::block() const {
  return depth * tile_;
}

template <class T>
std::uint64_t DenseRows<T>::most_chunks() const {
  return std::clamp<std::uint64_t>(most_sum_bytes / (numbers_of_chunk() * sizeof(T)), 1, enough_chunks);
}

template <class T>
std::uint64_t DenseRows<T>::chunk_rows() const {
  const std::uint64_t blocks = (rows_ + block() - 1) / block();
  return std::max<std::uint64_t>(1, (blocks + most_chunks() - 1) / most_chunks()) * block();
}

template <class T>
bool DenseRows<T>::reserve() {
  const std::scoped_lock lock(state_.in_use);
  const std::uint64_t numbers = state_.alignment() + stride_ * stride_ * sizeof(T);
  const std::uint64_t sums =
      std::min((longest_ + block() - 1) / block(), most_chunks()) * numbers_of_chunk() * sizeof(T);
  const std::uint64_t others = (all_rows_ + longest_) * stride_ * sizeof(T);
  const std::uint64_t memory = state_.facts().memory_bytes;
  if (others > memory || 4 * (numbers + sums) > memory - others) return false;
  if (state_.try_room(numbers_room, numbers) && state_.try_room(sums_room, sums)) return true;
  state_.drop_room(numbers_room);
  state_.drop_room(sums_room);
  return false;
}

template <class T>
KernelPtr DenseRows<T>::kernel(std::string_view function) {
  const std::array<Define, 3> defines = {Define{"PD_REAL_BITS", std::to_string(8 * sizeof(T))},
                                         Define{"PD_ITEMS_0", std::to_string(tile_)},
                                         Define{"PD_ITEMS_1", std::to_string(tile_)}};
  return state_.kernel("solve_rows", function, defines);
}

/// Copies the head and, behind it, W or the scale.
template <class T>
void DenseRows<T>::put_numbers(std::span<const T> numbers) {
  const View room = state_.room(numbers_room, state_.alignment() + stride_ * stride_ * sizeof(T));
  state_.compute().write(room, std::as_bytes(std::span(head_)), {}, "solution in");
  state_.compute().write({room.memory, state_.alignment()}, std::as_bytes(numbers), {}, "solution in");
}

template <class T>
void DenseRows<T>::run(std::string_view function, const Grid& grid) {
  const View room = state_.room(numbers_room, 0);
  const std::array<Argument, 5> arguments = {View{room.memory, state_.alignment()}, room, output(), factors(),
                                             state_.room(sums_room, state_.alignment())};
  const KernelPtr k = kernel(function);
  state_.compute().launch(*k, grid, arguments, {}, function);
}

/// Waits also when something failed: copies run from and to memory that goes away then.
template <class T>
template <class F>
void DenseRows<T>::finished(const F& put_into_queue) {
  const std::scoped_lock lock(state_.in_use);
  try {
    if (rows_ > 0) put_into_queue();
    state_.finish();
  } catch (...) {
    try {
      state_.finish();
    } catch (...) {  // the first failure is the one to tell
    }
    throw;
  }
}

template <class T>
DenseSums DenseRows<T>::solve(std::span<const double> w, std::uint64_t columns) {
  std::vector<T> rounded(stride_ * stride_);
  for (std::uint64_t r = 0; r < rank_; ++r)
    for (std::uint64_t s = 0; s < rank_; ++s) rounded[r * stride_ + s] = static_cast<T>(w[r * columns + s]);
  std::vector<T> partial(chunks() * numbers_of_chunk());
  const auto side = static_cast<std::uint32_t>(tile_);
  finished([&] {
    const View sums = state_.room(sums_room, partial.size() * sizeof(T));
    put_numbers(rounded);
    run("solve_rows", {{(rows_ + block() - 1) / block(), tiles()}, {side, side}});
    run("gram_rows", {{pairs(), chunks()}, {side, side}});
    state_.compute().read(std::as_writable_bytes(std::span(partial)), sums, {}, "sums out");
  });
  return add_up(partial);
}

template <class T>
DenseSums DenseRows<T>::add_up(std::span<const T> partial) const {
  DenseSums sums{std::vector<double>(rank_ * rank_), std::vector<double>(rank_)};
  const std::uint64_t items = tile_ * tile_;
  const auto at = [&](std::uint64_t entry, std::uint64_t worker, std::uint64_t lane) {
    double sum = 0;
    for (std::uint64_t begin = entry * 2 * items; begin < partial.size(); begin += numbers_of_chunk()) {
      const std::uint64_t k = begin + worker * tile_ + lane;
      sum += static_cast<double>(partial[k]) + static_cast<double>(partial[k + items]);
    }
    return sum;
  };
  for (std::uint64_t r = 0; r < rank_; ++r) {
    const std::uint64_t p = r / tile_;
    for (std::uint64_t s = 0; s <= r; ++s)
      sums.gram[r * rank_ + s] = sums.gram[s * rank_ + r] = at(p * (p + 1) / 2 + s / tile_, r % tile_, s % tile_);
    for (std::uint64_t worker = 0; worker < tile_; ++worker) sums.inner[r] += at(pairs() + p, worker, r % tile_);
  }
  return sums;
}

template <class T>
void DenseRows<T>::scale(std::span<const double> scale) {
  std::vector<T> rounded(stride_);
  std::ranges::transform(scale, rounded.begin(), [](double x) { return static_cast<T>(x); });
  const auto side = static_cast<std::uint32_t>(tile_);
  finished([&] {
    put_numbers(rounded);
    run("scale_columns", {{(rows_ + block() - 1) / block(), tiles()}, {side, side}});
  });
}

template <class T>
void DenseRows<T>::read_output(FactorMatrix<T>& to) {
  finished([&] {
    state_.compute().read(std::as_writable_bytes(std::span(to.data(), rows_ * stride_)), output(), {}, "output out");
  });
}

template <class T>
void DenseRows<T>::read_factor(FactorMatrix<T>& to) {
  finished([&] {
    state_.compute().read(std::as_writable_bytes(std::span(to.data(), rows_ * stride_)), factor(), {}, "factor out");
  });
}

template <class T>
void DenseRows<T>::write_factor(const FactorMatrix<T>& from) {
  finished([&] {
    state_.compute().write(factor(), std::as_bytes(std::span(from.data(), rows_ * stride_)), {}, "factor in");
  });
}

template <class T>
void DenseRows<T>::set_current() {
  state_.factors.versions.at(static_cast<std::size_t>(mode_)) = workspace_.version(mode_);
}

template class DenseRows<float>;
template class DenseRows<double>;

}  // namespace polyad::gpu
