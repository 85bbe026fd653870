// SPDX-License-Identifier: MIT
#include "solvers/cp_als/dense_part.hpp"

#include <fmt/format.h>

#include <chrono>

#include "kernels/gpu/dense.hpp"
#include "kernels/mttkrp/update_rows.hpp"
#include "polyad/error.hpp"

namespace polyad::cp_als_detail {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// What the MTTKRP gives is on the host.
template <class T>
class OnHost final : public DensePart<T> {
 public:
  OnHost(Tensor& x, Workspace& workspace, const Context& context) : x_(x), workspace_(workspace), context_(context) {}

  [[nodiscard]] RowSums update(std::span<const FactorMatrix<T>> factors, int mode, FactorMatrix<T>& out,
                               const RowTask<T>& task) override {
    (void)mttkrp<T>(x_, factors, mode, out, workspace_, context_, {}, task.on_host.get());
    const auto begin = Clock::now();
    RowSums sums = task.on_host->sums();
    this->seconds_ += task.on_host->seconds() / context_.thread_count() + seconds_since(begin);
    return sums;
  }
  void scale(FactorMatrix<T>& factor, int mode, const std::vector<double>& scale) override {
    scale_columns(factor, scale, context_);
    workspace_.changed(mode);  // once more: what was begun for the next mode is of the factor as it was
  }
  void finish(const FactorMatrix<T>& /*factor*/, int mode) override { workspace_.changed(mode); }
  void bring(std::span<FactorMatrix<T>> /*factors*/) override {}
  void replaced() override { workspace_.changed(); }
  [[nodiscard]] std::vector<std::string_view> places() const override {
    return std::vector<std::string_view>(x_.dims().size(), "host");
  }

 private:
  Tensor& x_;
  Workspace& workspace_;
  const Context& context_;
};

/// What the MTTKRP gives is on the only device.
template <class T>
class BesideDevice final : public DensePart<T> {
 public:
  BesideDevice(Tensor& x, const CpAlsOptions& options, Workspace& workspace, const Context& context)
      : x_(x), rank_(options.rank), workspace_(workspace), context_(context), modes_(x.dims().size()) {
    // Sums differ in the last digits between the two: what was measured must not show where bits are promised.
    const bool measures = options.dense == "auto" && !context.deterministic && options.checkpoint.empty();
    const bool device = options.dense == "device" || (options.dense == "auto" && context.devices[0]->facts().is_gpu);
    must_ = options.dense == "device";
    if (!measures)
      for (Mode& m : modes_) m.choice = device ? Way::device : Way::host;
  }

  [[nodiscard]] RowSums update(std::span<const FactorMatrix<T>> factors, int mode, FactorMatrix<T>& out,
                               const RowTask<T>& task) override {
    measured_ = task.solution != nullptr;
    way_ = measured_ ? next_way(mode) : Way::host;
    {
      const gpu::OutputStays stays(workspace_, context_);
      (void)mttkrp<T>(x_, factors, mode, out, workspace_, context_);
    }
    begin_ = Clock::now();
    RowSums sums = way_ == Way::host ? solve_on_host(mode, out, *task.on_host) : solve_there(mode, *task.solution);
    this->seconds_ += seconds_since(begin_);
    return sums;
  }

  void scale(FactorMatrix<T>& factor, int mode, const std::vector<double>& scale) override {
    if (way_ == Way::host) return scale_columns(factor, scale, context_);
    rows_of(mode).scale(scale);
  }

  void finish(const FactorMatrix<T>& factor, int mode) override {
    gpu::DenseRows<T> rows = rows_of(mode);
    if (way_ == Way::host) rows.write_factor(factor);
    workspace_.changed(mode);
    rows.set_current();
    Mode& m = of(mode);
    m.only_there = way_ == Way::device;
    m.last = way_;
    if (measured_ && m.choice == Way::unknown) decide(m);
  }

  void bring(std::span<FactorMatrix<T>> factors) override {
    for (std::size_t m = 0; m < modes_.size(); ++m) {
      if (!modes_[m].only_there) continue;
      rows_of(static_cast<int>(m)).read_factor(factors[m]);
      modes_[m].only_there = false;
    }
  }

  void replaced() override {
    workspace_.changed();
    for (Mode& m : modes_) m.only_there = false;
  }

  [[nodiscard]] std::vector<std::string_view> places() const override {
    std::vector<std::string_view> all;
    for (const Mode& m : modes_) all.push_back(m.last == Way::device ? "device" : "host");
    return all;
  }

 private:
  enum class Way : std::uint8_t { unknown, host, device };
  struct Mode {
    Way choice = Way::unknown;
    Way last = Way::host;
    int updates = 0;  // without a choice
    double host_seconds = 0;
    bool only_there = false;  // the factor on the host is an old one
  };

  [[nodiscard]] RowSums solve_on_host(int mode, FactorMatrix<T>& out, RowSolver<T>& solver) {
    rows_of(mode).read_output(out);
    update_rows(out, solver, context_);
    return solver.sums();
  }
  [[nodiscard]] RowSums solve_there(int mode, const Small& solution) {
    gpu::DenseSums found = rows_of(mode).solve(solution.values, solution.columns);
    RowSums sums{Small(rank_), std::move(found.inner)};
    for (std::uint64_t r = 0; r < rank_; ++r)
      for (std::uint64_t s = 0; s < rank_; ++s) sums.gram(r, s) = found.gram[r * rank_ + s];
    return sums;
  }

  [[nodiscard]] Mode& of(int mode) { return modes_[static_cast<std::size_t>(mode)]; }
  [[nodiscard]] gpu::DenseRows<T> rows_of(int mode) { return {workspace_, context_, x_.dims(), mode, rank_}; }

  /// The first update of a mode compiles kernels; then each way is measured once. Memory is taken here, before the
  /// tensor takes what is left.
  [[nodiscard]] Way next_way(int mode) {
    Mode& m = of(mode);
    Way way = m.choice;
    if (way == Way::unknown) way = m.updates == 1 ? Way::host : Way::device;
    if (way == Way::host || rows_of(mode).reserve()) return way;
    if (must_)
      throw Error(ErrorKind::limit, fmt::format("{} has no room to solve rows there; 'dense' can be host",
                                                context_.devices[0]->facts().name));
    return m.choice = Way::host;
  }

  void decide(Mode& m) {
    const double seconds = seconds_since(begin_);
    if (m.updates == 1) m.host_seconds = seconds;
    if (m.updates == 2) m.choice = seconds <= m.host_seconds ? Way::device : Way::host;
    ++m.updates;
  }

  Tensor& x_;
  std::uint64_t rank_;
  Workspace& workspace_;
  const Context& context_;
  std::vector<Mode> modes_;
  bool must_ = false;
  // Of the update that is under way.
  Way way_ = Way::host;
  bool measured_ = false;
  Clock::time_point begin_;
};

}  // namespace

template <class T>
std::unique_ptr<DensePart<T>> make_dense_part(Tensor& x, const CpAlsOptions& options, Workspace& workspace,
                                              const Context& context) {
  if (context.devices.size() == 1) return std::make_unique<BesideDevice<T>>(x, options, workspace, context);
  return std::make_unique<OnHost<T>>(x, workspace, context);
}

template std::unique_ptr<DensePart<float>> make_dense_part(Tensor&, const CpAlsOptions&, Workspace&, const Context&);
template std::unique_ptr<DensePart<double>> make_dense_part(Tensor&, const CpAlsOptions&, Workspace&, const Context&);

}  // namespace polyad::cp_als_detail
