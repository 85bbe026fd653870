// SPDX-License-Identifier: MIT
#include "kernels/ttv/gpu_run.hpp"

#include <fmt/format.h>

#include <deque>
#include <limits>
#include <optional>

#include "backends/cpu/threads.hpp"
#include "kernels/gpu/pipeline.hpp"
#include "polyad/error.hpp"
#include "polyad/sizes.hpp"

namespace polyad {

namespace {

/// Parts are not larger: what is copied to pinned memory while nothing else can run yet should not be long.
constexpr std::uint64_t most_part_bytes = std::uint64_t{256} << 20U;
/// With the same bits every time, parts may not depend on what was measured.
constexpr std::uint64_t fixed_part_bytes = std::uint64_t{32} << 20U;
/// Less than this goes in one part per device: measuring would take longer.
constexpr double worth_measuring = 4 << 20U;
/// Parts are not made smaller than this when memory is short.
constexpr std::uint64_t least_part_bytes = 4096;

/// A device in use.
struct Worker {
  gpu::DevicePtr device;
  gpu::View vector;
  gpu::KernelPtr kernel;
  gpu::KernelPtr second;
  std::vector<gpu::Collection> collections;
  std::unique_ptr<gpu::Pipeline> pipeline;

  [[nodiscard]] const gpu::Facts& facts() const { return device->facts(); }
  /// Memory besides the vector.
  [[nodiscard]] std::uint64_t available() const {
    const std::uint64_t taken = vector.memory == nullptr ? 0 : vector.memory->bytes();
    return facts().memory_bytes - std::min(taken, facts().memory_bytes);
  }
};

template <class T>
class DeviceTtv final : public TtvDevices {
 public:
  DeviceTtv(const TtvRequest& r, PipelineReport* report) : r_(r), report_(report), vector_(vector_as<T>(r)) {
    for (const auto& device : r.context.devices) open(device);
  }

  CooTensor run(TtvJob job) override {
    job_ = &job;
    parts_.clear();
    shared_.clear();
    if (job.cutter != nullptr) {
      kernel_ = job.cutter->kernel();
      for (Worker& w : workers_) compile(w);
      std::uint64_t most = most_part_bytes;
      for (const Worker& w : workers_)
        most = std::min({most, w.available() / fewest_queues, w.facts().largest_allocation});
      if (const std::uint64_t limit = r_.context.memory->limit(); limit > 0)
        most = std::min(most, (limit - std::min(limit, r_.context.memory->used())) / (3 * workers_.size()));
      cut_and_run(part_bytes(most));
      add_shared();
    }
    if (job.finish) job.finish(job.result);
    return std::move(job.result);
  }

 private:
  void open(const gpu::DevicePtr& device) {
    Worker& w = workers_.emplace_back();
    w.device = device;
    gpu::check_numbers(w.facts(), sizeof(T));
    w.vector.memory = device->allocate(std::max<std::uint64_t>(vector_.bytes(), gpu::slot_alignment));
    if (w.vector.memory == nullptr)
      throw Error(ErrorKind::limit,
                  fmt::format("{} has no room for the vector: {} of {} that may be used", w.facts().name,
                              readable_bytes(vector_.bytes()), readable_bytes(w.facts().memory_bytes)));
    const std::unique_ptr<gpu::Queue> queue = device->make_queue();
    queue->write(w.vector, std::as_bytes(vector_.span()), {}, "vector in");
    queue->finish();
  }

  void compile(Worker& w) {
    std::vector<gpu::Define> defines = kernel_.defines;
    defines.emplace_back("PD_REAL_BITS", std::to_string(8 * sizeof(T)));
    defines.emplace_back("PD_ITEMS_0", std::to_string(kernel_.items[0]));
    defines.emplace_back("PD_ITEMS_1", std::to_string(kernel_.items[1]));
    w.kernel = w.device->kernel(kernel_.unit, kernel_.function, defines);
    if (!kernel_.second.empty()) w.second = w.device->kernel(kernel_.unit, kernel_.second, defines);
  }

  /// A collection that computes a part on a device and puts its sums into the result.
  gpu::Collection collection_of(Worker& w, std::size_t number) {
    const TtvPart& p = parts_[number];
    gpu::Collection c;
    c.part = &p.part;
    c.out_bytes = p.out * sizeof(T);
    c.seam_bytes = p.part.chunks * sizeof(T);
    c.compute = [this, &w, &p](gpu::Queue& queue, const gpu::Stage& stage, std::span<const gpu::Event> after) {
      const std::array<gpu::Argument, 5> arguments = {stage.slot, stage.head, w.vector, stage.out, stage.seams};
      gpu::Event last =
          queue.launch(*w.kernel, {{p.part.groups, p.groups_1}, kernel_.items}, arguments, after, kernel_.function);
      if (w.second != nullptr && p.part.chunks > 1) {
        const std::uint64_t groups = (p.part.chunks + kernel_.items[0] - 1) / kernel_.items[0];
        last = queue.launch(*w.second, {{groups, 1}, kernel_.items}, arguments, {}, kernel_.second);
      }
      return last;
    };
    c.take = [this, number](std::span<const std::byte> out) {
      job_->cutter->place(parts_[number], sizeof(T), out.data(), reinterpret_cast<std::byte*>(values()),
                          reinterpret_cast<std::byte*>(shared_[number].data()));
    };
    return c;
  }
  T* values() { return typed<T>(job_->result.values); }

  /// The next part; false when there is none.
  bool next(std::uint64_t most_bytes) {
    TtvPart part;
    if (!job_->cutter->next(most_bytes, part)) return false;
    shared_.emplace_back(part.shared);
    parts_.push_back(std::move(part));
    return true;
  }

  /// How large parts should be, by the model from what the first small ones take on the first device.
  std::uint64_t part_bytes(std::uint64_t most) {
    const CollectionSize rest = job_->cutter->rest();
    const double all = rest.in_bytes + rest.out_bytes;
    if (r_.context.deterministic) return std::min(most, fixed_part_bytes);
    if (all >= worth_measuring || report_ != nullptr) {
      if (!rates_) measure(most);
      const CollectionSize left = job_->cutter->rest();
      const std::uint64_t k = best_collections(*rates_, left, static_cast<double>(most));
      return std::min(most, each_of(left, std::max<std::uint64_t>(k, workers_.size())));
    }
    return std::min(most, each_of(rest, workers_.size()));
  }
  static std::uint64_t each_of(const CollectionSize& all, std::uint64_t n) {
    // A little more, for the ends of arrays: the last collection should not be a rest of a few nonzeros.
    return static_cast<std::uint64_t>(1.02 * (all.in_bytes + all.out_bytes) / static_cast<double>(n)) + 8192;
  }

  /// Runs a small part and a larger one; the rates explain what they took.
  void measure(std::uint64_t most) {
    Worker& w = workers_.front();
    const CollectionSize rest = job_->cutter->rest();
    const double all = rest.in_bytes + rest.out_bytes;
    for (const std::uint64_t of : gpu::measured_shares)
      next(std::min(most, std::clamp(static_cast<std::uint64_t>(all) / of, least_part_bytes, fixed_part_bytes)));
    std::vector<gpu::Collection> collections;
    for (std::size_t k = 0; k < parts_.size(); ++k) collections.push_back(collection_of(w, k));
    rates_ = gpu::measured_rates(*w.device, collections, r_.context);
    if (rates_) return;
    rates_.emplace();  // parts of the smallest size
    job_->cutter->go({});
    parts_.clear();
    shared_.clear();
  }

  /// Cuts what is left and runs it; with smaller parts when the devices have no room for these.
  void cut_and_run(std::uint64_t bytes) {
    const TtvCutter::Position begin = job_->cutter->position();
    const std::size_t measured = parts_.size();
    for (;; bytes = bytes / 4 * 3) {
      job_->cutter->go(begin);
      parts_.resize(measured);
      shared_.resize(measured);
      while (next(bytes)) {
      }
      share_parts(measured);
      const bool smallest = bytes < least_part_bytes;
      if (std::ranges::all_of(workers_, [&](Worker& w) { return make_pipeline(w, smallest); })) break;
      if (smallest) {
        const gpu::Facts& f = workers_.front().facts();
        throw Error(ErrorKind::limit,
                    fmt::format("{} has no room for a piece of the tensor beside the vector of {}: {} may be used",
                                f.name, readable_bytes(vector_.bytes()), readable_bytes(f.memory_bytes)));
      }
    }
    std::vector<PipelineReport> reports(workers_.size());
    if (report_ != nullptr)
      at_once([&](Worker& w, std::size_t d) {
        reports[d] =
            gpu::report_of(rates_.value_or(StepRates{}), w.collections, w.pipeline->run_synchronously(w.collections),
                           w.pipeline->queues(), gpu::largest_slot(w.collections, w.facts()));
      });
    at_once([&](Worker& w, std::size_t d) { reports[d].measured_tp = w.pipeline->run(w.collections, false); });
    if (report_ == nullptr) return;
    PipelineReport all;
    for (const PipelineReport& device : reports) gpu::add_beside(all, device);
    gpu::add_after(*report_, all);
  }

  /// Calls f for every device that has collections, all at the same time.
  template <class F>
  void at_once(const F& f) {
    cpu::run_team(static_cast<int>(workers_.size()), [&](int rank, int) {
      const auto d = static_cast<std::size_t>(rank);
      if (!workers_[d].collections.empty()) f(workers_[d], d);
    });
  }

  /// Parts from `first` on to devices by nonzeros, each a range of them.
  void share_parts(std::size_t first) {
    std::vector<std::uint64_t> nnz;
    for (std::size_t k = first; k < parts_.size(); ++k) nnz.push_back(parts_[k].part.nnz);
    const std::vector<std::size_t> device_of = gpu::share_out(nnz, workers_.size());
    for (Worker& w : workers_) w.collections.clear();
    for (std::size_t k = 0; k < nnz.size(); ++k) {
      Worker& w = workers_[device_of[k]];
      w.collections.push_back(collection_of(w, first + k));
    }
  }

  /// False when there is no room. Fewer than three slots cannot overlap all steps, smaller parts can: fewer are taken
  /// only when these are the smallest.
  bool make_pipeline(Worker& w, bool smallest) {
    if (w.collections.empty()) return true;
    const std::uint64_t slot = gpu::largest_slot(w.collections, w.facts());
    const int fewest = std::min<int>(fewest_queues, static_cast<int>(w.collections.size()));
    if (w.pipeline != nullptr && w.pipeline->slot_bytes() >= slot && w.pipeline->queues() >= fewest) return true;
    w.pipeline.reset();
    std::vector<CollectionTimes> times;
    for (const gpu::Collection& c : w.collections) times.push_back(rates_.value_or(StepRates{}).of(c.size()));
    const std::uint64_t allowed = std::min<std::uint64_t>(w.available() / slot, w.collections.size());
    for (int queues = best_queues(times, static_cast<int>(std::min<std::uint64_t>(allowed, most_queues))); queues > 0;
         --queues) {
      w.pipeline = gpu::Pipeline::make(*w.device, slot, queues, r_.context);
      if (w.pipeline == nullptr) continue;
      return smallest || queues >= fewest;
    }
    return false;
  }

  /// What later parts have of fibres that earlier ones began, in the order of parts.
  void add_shared() {
    for (std::size_t k = 0; k < parts_.size(); ++k)
      for (std::size_t i = 0; i < shared_[k].size(); ++i) values()[parts_[k].first + i] += shared_[k][i];
  }

  const TtvRequest& r_;
  TtvJob* job_ = nullptr;  // that is being run
  PipelineReport* report_;
  TtvDeviceKernel kernel_;
  Buffer<T> vector_;
  std::deque<TtvPart> parts_;
  std::deque<std::vector<T>> shared_;  // [parts][shared]
  std::deque<Worker> workers_;
  std::optional<StepRates> rates_;
};

}  // namespace

std::unique_ptr<TtvDevices> TtvDevices::open(const TtvRequest& r, PipelineReport* report) {
  if (r.shape().precision == Precision::f32) return std::make_unique<DeviceTtv<float>>(r, report);
  return std::make_unique<DeviceTtv<double>>(r, report);
}

}  // namespace polyad
