// SPDX-License-Identifier: MIT
#include "kernels/gpu/estimate.hpp"

#include <fmt/format.h>

#include <array>
#include <numeric>

#include "core/tensor_sample.hpp"
#include "polyad/error.hpp"
#include "polyad/matrix.hpp"
#include "polyad/planner.hpp"
#include "polyad/registry.hpp"

namespace polyad {

namespace {

constexpr auto models = std::to_array<DeviceModel>({
#define POLYAD_DEVICE_MODEL(name, description, memory, f32, f64, cache, size, copy) \
  {#name, description, memory, f32, f64, cache, size, copy},
#include "lists/device_models.list"
});

/// Which of its arrays a kernel reads for one mode.
enum class Arrays : std::uint8_t { all, own_share, permuted, second_tree };

/// How the device kernels of a format work.
struct Behaviour {
  std::string_view format;
  Arrays arrays;
  bool tree;     // rows of inner levels are read once per node, not per nonzero
  bool atomics;  // sums do not stay in registers, in modes that are not the root of a tree
};
constexpr auto behaviours = std::to_array<Behaviour>({{"coo", Arrays::all, false, true},
                                                      {"stream", Arrays::all, false, true},
                                                      {"coo-perm", Arrays::permuted, false, false},
                                                      {"f-coo", Arrays::own_share, false, false},
                                                      {"hicoo", Arrays::all, false, true},
                                                      {"csf-one", Arrays::all, true, true},
                                                      {"csf-two", Arrays::second_tree, true, true},
                                                      {"csf-all", Arrays::own_share, true, false},
                                                      {"b-csf", Arrays::own_share, true, false},
                                                      {"hb-csf", Arrays::own_share, true, false}});

/// Counts the work of MTTKRPs.
class Counter {
 public:
  Counter(const CooTensor& x, std::uint64_t rank, const Context& context)
      : x_(x), sample_(x, context), rank_(rank), by_length_(x.dims.size()) {
    std::iota(by_length_.begin(), by_length_.end(), 0);
    std::ranges::stable_sort(by_length_, {}, [&](int m) { return x.dims[static_cast<std::size_t>(m)]; });
  }

  [[nodiscard]] double row_bytes() const {
    return static_cast<double>(padded_columns(rank_) * bytes_of(x_.precision()));
  }
  /// Factors and an output.
  [[nodiscard]] double model_bytes() const {
    double rows = sample_.dim(by_length_.back());
    for (int m = 0; m < x_.order(); ++m) rows += sample_.dim(m);
    return rows * row_bytes();
  }

  /// \param bytes of the format's arrays for all modes
  [[nodiscard]] gpu::MttkrpWork of(const Behaviour& b, int mode, double bytes) const {
    const auto order = static_cast<double>(x_.order());
    gpu::MttkrpWork w;
    w.row_bytes = row_bytes();
    w.flops = sample_.nnz() * static_cast<double>(rank_) * order;
    w.output_rows = sample_.dim(mode);
    w.array_bytes = array_bytes(b, bytes);
    const std::vector<int> levels = b.tree ? tree_for(b, mode) : std::vector<int>();
    for (int m = 0; m < x_.order(); ++m) {
      const bool adds = m == mode;
      if (adds && (!b.atomics || (b.tree && levels[0] == mode))) continue;
      w.rows.push_back({b.tree ? nodes(levels, m) : sample_.nnz(), sample_.dim(m), adds ? 2.0 : 1.0});
    }
    return w;
  }

 private:
  [[nodiscard]] double array_bytes(const Behaviour& b, double bytes) const {
    const auto order = static_cast<double>(x_.order());
    if (b.arrays == Arrays::own_share) return bytes / order;
    if (b.arrays == Arrays::second_tree) return bytes / 2;
    if (b.arrays == Arrays::permuted) {
      const double coordinates = coordinate_bytes(x_);
      return coordinates + (bytes - coordinates) / order;
    }
    return bytes;
  }

  /// The levels of the tree that serves a mode.
  [[nodiscard]] std::vector<int> tree_for(const Behaviour& b, int mode) const {
    std::vector<int> levels = by_length_;
    const bool at_root = !b.atomics || (b.arrays == Arrays::second_tree && mode == by_length_.back());
    if (at_root) {
      std::erase(levels, mode);
      levels.insert(levels.begin(), mode);
    }
    return levels;
  }

  /// Nodes of the level of a mode.
  [[nodiscard]] double nodes(const std::vector<int>& levels, int mode) const {
    std::vector<int> prefix;
    for (const int m : levels) {
      prefix.push_back(m);
      if (m == mode) break;
    }
    if (prefix.size() == levels.size()) return sample_.nnz();
    return sample_.distinct(prefix);
  }

  const CooTensor& x_;
  TensorSample sample_;
  std::uint64_t rank_;
  std::vector<int> by_length_;
};

}  // namespace

std::span<const DeviceModel> device_models() { return models; }

const DeviceModel& device_model(std::string_view name) {
  std::string names;
  for (const DeviceModel& d : models) {
    if (d.name == name) return d;
    names += (names.empty() ? "" : ", ") + std::string(d.name);
  }
  throw usage_error(fmt::format("there is no model of a device '{}'; there are {}", name, names));
}

std::vector<DeviceEstimate> estimate_on_device(const CooTensor& x, std::uint64_t rank, const DeviceModel& device,
                                               const Context& context) {
  const Counter counter(x, rank, context);
  const double peak = 1e12 * (x.precision() == Precision::f32 ? device.f32_tflops : device.f64_tflops);
  std::vector<DeviceEstimate> all;
  for (const Behaviour& b : behaviours) {
    DeviceEstimate e;
    e.format = b.format;
    e.tensor_bytes = estimate_format(x, b.format, rank, context).bytes;
    e.upload_seconds = e.tensor_bytes / (1e9 * device.copy_gbs);
    e.fits = e.tensor_bytes + counter.model_bytes() <= 1e9 * device.memory_gb;
    e.factors_fit = counter.model_bytes() <= 1e9 * device.memory_gb;
    double memory = 0;
    double arithmetic = 0;
    double copies = 0;
    for (int mode = 0; mode < x.order(); ++mode) {
      const gpu::MttkrpWork w = counter.of(b, mode, e.tensor_bytes);
      const double moved = w.moved_bytes(device);
      e.moved_bytes += moved;
      e.flops += w.flops;
      const double in_memory = moved / (1e9 * device.memory_gbs);
      const double in_units = w.flops / peak;
      const double in_copies = e.fits ? 0 : w.array_bytes / (1e9 * device.copy_gbs);
      e.seconds += std::max({in_memory, in_units, in_copies});
      memory += in_memory;
      arithmetic += in_units;
      copies += in_copies;
    }
    e.bound = copies > std::max(memory, arithmetic) ? "copies" : memory >= arithmetic ? "memory" : "arithmetic";
    all.push_back(e);
  }
  std::ranges::stable_sort(all, {}, &DeviceEstimate::seconds);
  return all;
}

}  // namespace polyad
