// SPDX-License-Identifier: MIT
#include "kernels/mttkrp/gpu/run.hpp"

#include <algorithm>
#include <limits>

#include "backends/cpu/threads.hpp"
#include "kernels/gpu/runner.hpp"
#include "kernels/mttkrp/output.hpp"
#include "polyad/error.hpp"
#include "polyad/sizes.hpp"

namespace polyad::gpu {

Answer ask(const MttkrpQuestion& q, bool fits, std::string_view format, double cost, const char* reason) {
  if (!fits) return cannot(fmt::format("it works on {}", format));
  if (q.tensor.shape().order() < 2) return cannot("it works on tensors of order 2 and above");
  return can(cost * row_cost(q), reason);
}

namespace {

/// Parts that pass through the pipeline are not larger.
constexpr std::uint64_t most_passing_bytes = std::uint64_t{256} << 20U;
/// What cutters do not count: the numbers in front of the arrays.
constexpr std::uint64_t head_room = 8192;

/// All that a call needs to know.
template <class T>
class Run {
 public:
  Run(const MttkrpRequest<T>& r, Cutter cutter)
      : r_(r),
        cut_(cutter),
        states_(states_of(r.workspace, r.context)),
        key_(fmt::format("{} {} {} {} {}", r.tensor.serial(), r.mode, r.stride(), r.context.deterministic,
                         reinterpret_cast<std::uintptr_t>(cutter))) {
    std::uint64_t rows = 0;
    for (const std::uint64_t d : r.tensor.shape().dims) {
      factor_rows_.push_back(rows);
      rows += d;
    }
    all_rows_ = rows;
  }

  void operator()() {
    const auto locks = states_.lock();
    for (const auto& state : states_.all) check_numbers(state->facts(), sizeof(T));
    try {
      compute();
    } catch (...) {
      // Copies may still run from and to memory that goes away now; which of them were made is not known.
      for (const auto& state : states_.all) {
        try {
          state->finish();
        } catch (...) {  // the first failure is the one to tell
        }
        state->factors = {};
        state->residents.clear();
        state->heads.clear();
        state->pipeline.reset();
      }
      throw;
    }
  }

 private:
  [[nodiscard]] std::size_t devices() const { return states_.all.size(); }
  [[nodiscard]] std::uint64_t row_bytes() const { return r_.stride() * sizeof(T); }
  [[nodiscard]] std::uint64_t out_bytes() const { return std::max<std::uint64_t>(r_.out.rows(), 1) * row_bytes(); }
  [[nodiscard]] std::uint64_t slot_bytes(const DeviceState& state, const Part& p) const {
    return p.bytes() + 2 * state.alignment();  // and its heads
  }
  [[nodiscard]] std::uint64_t seam_bytes(const Part& p) const {
    return r_.context.deterministic ? 2 * p.chunks * (sizeof(std::uint64_t) + row_bytes()) : 0;
  }
  [[nodiscard]] std::vector<PartGroup> cut(std::uint64_t most_bytes, bool stays) const {
    return cut_(r_.tensor, {r_.mode, r_.stride(), most_bytes, devices(), r_.context.deterministic, stays});
  }

  void compute() {
    for (const auto& state : states_.all) uploads_.push_back(upload_factors(*state));
    Plan& plan = ready_plan();
    if (states_.report) run_synchronously(plan);
    std::vector<Buffer<T>> partial(devices());  // of devices but the first
    cpu::run_team(static_cast<int>(devices()), [&](int rank, int) {
      const auto d = static_cast<std::size_t>(rank);
      T* to = r_.out.data();
      if (d > 0) {
        partial[d] = Buffer<T>(r_.context, r_.out.rows() * r_.stride(), "the output of a device");
        to = partial[d].data();
      }
      run_device(*states_.all[d], plan, d, to);
    });
    for (std::size_t d = 1; d < devices(); ++d)
      cpu::parallel_ranges(r_.threads(), partial[d].size(), [&](std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t k = begin; k < end; ++k) r_.out.data()[k] += partial[d][k];
      });
    for (const PipelineReport& report : reports_) add_beside(*states_.report, report);
  }

  /// Copies the factors that are not on the device as they are now.
  Event upload_factors(DeviceState& state) {
    const View all = state.room("the factors", std::max<std::uint64_t>(all_rows_, 1) * row_bytes());
    DeviceState::Factors& there = state.factors;
    const std::array<std::uint64_t, 2> row = {r_.stride(), sizeof(T)};
    const std::vector<std::uint64_t>& dims = r_.tensor.shape().dims;
    if (there.memory != all.memory.get() || there.dims != dims || there.row != row)
      there = {all.memory.get(), dims, row, std::vector<std::uint64_t>(dims.size())};
    Event last;
    for (int m = 0; m < r_.order(); ++m) {
      const auto at = static_cast<std::size_t>(m);
      const FactorMatrix<T>& f = r_.factors[at];
      const std::uint64_t version = r_.workspace.keeps_products() ? r_.workspace.version(m) : 0;
      if (m == r_.mode || f.rows() == 0 || (version != 0 && there.versions[at] == version)) continue;
      last = state.copies().write({all.memory, factor_rows_[at] * row_bytes()},
                                  std::as_bytes(std::span(f.data(), f.rows() * f.stride())), {}, "factor in");
      there.versions[at] = version;
    }
    state.copies().flush();
    return last;
  }

  /// Parts for devices by nonzeros, in order.
  void share_parts(Plan& plan) const {
    std::vector<Plan::Place> places;
    std::vector<std::uint64_t> nnz;
    for (std::size_t g = 0; g < plan.groups.size(); ++g)
      for (std::size_t k = 0; k < plan.groups[g].parts.size(); ++k) {
        places.push_back({g, k});
        nnz.push_back(plan.groups[g].parts[k].nnz);
      }
    const std::vector<std::size_t> device_of = share_out(nnz, devices());
    plan.of_device.assign(devices(), {});
    for (std::size_t k = 0; k < places.size(); ++k) plan.of_device[device_of[k]].push_back(places[k]);
  }

  [[nodiscard]] const Part& part_at(const Plan& plan, const Plan::Place& place) const {
    return plan.groups[place.group].parts[place.part];
  }

  /// The arrays of all parts of a device and their heads, there to stay; false when there is no room. Other tensors
  /// make room, the same one for other modes does not: modes in turn would drive each other out.
  bool settle(DeviceState& state, const Plan& plan, std::size_t d) {
    const std::string kept = fmt::format("{} ", r_.tensor.serial());
    std::vector<std::string> added;
    std::vector<const Part*> parts;
    const auto room_for = [&](const Part& part) {
      const std::string name = resident_name(r_.tensor.serial(), part);
      if (state.residents.contains(name)) return true;
      MemoryPtr memory = state.try_allocate(part.bytes(), false);
      if (!memory) {
        state.pipeline.reset();
        memory = state.try_allocate(part.bytes(), true, kept);
      }
      if (!memory) return false;
      state.residents[name].memory = std::move(memory);
      added.push_back(name);
      return true;
    };
    bool fits = true;
    for (const Plan::Place& place : plan.of_device[d]) {
      parts.push_back(&part_at(plan, place));
      fits = fits && room_for(*parts.back());
    }
    if (fits && !state.heads.contains(key_)) {
      Heads heads;
      fits = parts.empty() || state.put_heads(heads, parts, factor_rows_, r_.stride(), kept);
      if (fits) state.heads[key_] = std::move(heads);
    }
    if (!fits) {
      for (const std::string& name : added) state.residents.erase(name);
      return false;
    }
    for (const Part* part : parts) state.fill(state.residents[resident_name(r_.tensor.serial(), *part)], *part);
    return true;
  }

  /// A pipeline for the parts of a device; false when there is no room for two slots.
  bool make_pipeline(DeviceState& state, const Plan& plan, std::size_t d) {
    if (plan.of_device[d].empty()) return true;
    std::uint64_t bytes = 0;
    std::vector<CollectionTimes> times;
    const std::uint64_t alignment = state.alignment();
    for (const Plan::Place& place : plan.of_device[d]) {
      Collection c;
      c.part = &part_at(plan, place);
      c.factor_begins = factor_rows_;
      c.second_head = {0, 0};
      bytes = std::max(bytes, c.slot_bytes(alignment));
      times.push_back(plan.rates.of(c.size()));
    }
    if (state.pipeline && state.pipeline_bytes >= bytes) return true;
    state.pipeline.reset();
    state.pipeline_bytes = bytes;
    const std::uint64_t taken = std::min(state.room_bytes(), state.facts().memory_bytes);
    const std::uint64_t allowed = (state.facts().memory_bytes - taken) / std::max<std::uint64_t>(bytes, 1);
    const int best = best_queues(times, static_cast<int>(std::min<std::uint64_t>(allowed, most_queues)));
    for (const bool may_evict : {false, true}) {
      if (may_evict) {
        state.residents.clear();
        while (state.device().tenants().others_give_up(state)) {
        }
      }
      for (int queues = best; queues >= (may_evict ? 2 : best); --queues) {
        state.pipeline = Pipeline::make(state.device(), bytes, queues, r_.context);
        if (state.pipeline) return true;
      }
    }
    return false;
  }

  /// Makes the memory that a plan needs; false when there is no room.
  bool make_room(const Plan& plan) {
    for (std::size_t d = 0; d < devices(); ++d) {
      DeviceState& state = *states_.all[d];
      std::uint64_t seams = slot_alignment;
      for (const Plan::Place& place : plan.of_device[d]) seams = std::max(seams, seam_bytes(part_at(plan, place)));
      if (!state.try_room("side rows", seams)) return false;
      if (plan.stays ? !settle(state, plan, d) : !make_pipeline(state, plan, d)) return false;
    }
    return true;
  }

  /// How the tensor is cut and which parts stay on the devices; what this needs is there.
  Plan& ready_plan() {
    for (const auto& state : states_.all) static_cast<void>(state->room("the output", out_bytes()));
    const auto known = states_.plans.find(key_);
    if (known != states_.plans.end() && make_room(known->second)) return known->second;
    for (const auto& state : states_.all) state->heads.erase(key_);
    if (states_.plans.size() > 256) {  // of tensors that are long gone
      states_.plans.clear();
      for (const auto& state : states_.all) state->heads.clear();
    }
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    for (const auto& state : states_.all) most = std::min(most, state->facts().largest_allocation);
    Plan plan;
    if (!states_.report) {
      plan.groups = cut(most - std::min(most, head_room), true);
      share_parts(plan);
    }
    if (states_.report || !make_room(plan)) plan = passing_plan();
    return states_.plans[key_] = std::move(plan);
  }

  /// Parts that pass through the pipeline, as large as the model says from what the first ones take.
  Plan passing_plan() {
    std::uint64_t most = most_passing_bytes;
    for (const auto& state : states_.all) {
      state->finish();  // what was being copied to memory that is given up
      state->residents.clear();
      state->heads.erase(key_);
      state->pipeline.reset();
      state->drop_room("side rows");
      const std::uint64_t taken = std::min(state->room_bytes(), state->facts().memory_bytes);
      most = std::min({most, (state->facts().memory_bytes - taken) / fewest_queues, state->facts().largest_allocation});
    }
    uploads_.assign(devices(), nullptr);  // they are over too
    StepRates rates;
    if (!r_.context.deterministic) {
      CollectionSize whole;
      rates = measured_rates(most, whole);
      const auto k = static_cast<double>(best_collections(rates, whole, static_cast<double>(most)));
      most = std::min(most, static_cast<std::uint64_t>(1.02 * whole.in_bytes / k) + head_room);
    }
    for (;; most = most / 4 * 3) {
      Plan plan;
      plan.stays = false;
      plan.rates = rates;
      plan.groups = cut(most - std::min(most, head_room), false);
      share_parts(plan);
      if (make_room(plan)) return plan;
      std::uint64_t largest = 0;
      for (const PartGroup& g : plan.groups)
        for (const Part& p : g.parts) largest = std::max(largest, slot_bytes(*states_.all[0], p));
      for (const auto& state : states_.all) state->drop_room("side rows");
      if (most == 0 || largest > 2 * most)  // pieces do not become smaller
        throw Error(
            ErrorKind::limit,
            fmt::format("{} has no room for two pieces of the tensor of {} each beside {} for the factors and the "
                        "output; {} may be used",
                        states_.all[0]->facts().name, readable_bytes(largest),
                        readable_bytes(states_.all[0]->room_bytes()),
                        readable_bytes(states_.all[0]->facts().memory_bytes)));
    }
  }

  /// Runs a small and a larger part on the first device; what comes out is not used.
  /// \param whole how much all parts are
  StepRates measured_rates(std::uint64_t most, CollectionSize& whole) {
    Plan plan;
    std::uint64_t bytes = 0;
    plan.groups = cut(most - std::min(most, head_room), false);
    for (const PartGroup& g : plan.groups)
      for (const Part& p : g.parts) {
        whole.in_bytes += static_cast<double>(p.bytes());
        whole.nnz += static_cast<double>(p.nnz);
        bytes += p.bytes();
      }
    plan.groups.clear();
    plan.of_device.assign(devices(), {});
    for (const std::uint64_t of : measured_shares) {
      std::vector<PartGroup> groups = cut(std::min(most, std::max<std::uint64_t>(bytes / of, head_room)), false);
      std::erase_if(groups, [](const PartGroup& g) { return g.parts.empty(); });
      if (groups.empty()) return {};
      groups[0].parts.resize(1);
      plan.of_device[0].push_back({plan.groups.size(), 0});
      plan.groups.push_back(std::move(groups[0]));
    }
    DeviceState& state = *states_.all[0];
    const Launches launches(*this, state, plan, 0);
    const StepRates rates =
        gpu::measured_rates(state.device(), DeviceState::collections(launches.jobs, factor_rows_, launches.target),
                            r_.context)
            .value_or(StepRates{});
    state.drop_room("side rows");
    return rates;
  }

  /// What the kernels of a plan are launched with on a device.
  struct Launches {
    Launches(Run& run, DeviceState& state, const Plan& plan, std::size_t d) : target(run.target_of(state)) {
      for (const Plan::Place& place : plan.of_device[d]) {
        jobs.push_back(run.job_of(state, plan.groups[place.group], run.part_at(plan, place), target));
        if (jobs.back().seam_bytes > 0 && !target.add_seams)
          target.add_seams = state.kernel("add_seams", "add_seams", run.defines(target));
      }
    }
    Target target;
    std::vector<Job> jobs;
  };

  Target target_of(DeviceState& state) const {
    Target target;
    target.factors = state.room("the factors", 0);
    target.out = state.room("the output", out_bytes());
    target.stride = r_.stride();
    target.items = group_items(r_.stride(), state.facts());
    target.column_groups = (r_.stride() + target.items[0] - 1) / target.items[0];
    target.seams = state.room("side rows", 0);
    return target;
  }

  void run_device(DeviceState& state, const Plan& plan, std::size_t d, T* to) {
    const Launches launches(*this, state, plan, d);
    std::vector<Event> after = {state.compute().clear(launches.target.out, out_bytes())};
    if (uploads_[d]) after.push_back(uploads_[d]);
    if (plan.stays) {
      run_residents(state, plan, d, launches, after);
    } else if (!launches.jobs.empty()) {
      const std::vector<Collection> all = DeviceState::collections(launches.jobs, factor_rows_, launches.target);
      state.compute().flush();
      const double seconds = state.pipeline->run(all, true, after);
      if (states_.report) reports_[d].measured_tp = seconds;
    }
    if (r_.out.rows() > 0 && !states_.output_stays)
      state.compute().read(std::as_writable_bytes(std::span(to, r_.out.rows() * r_.stride())), launches.target.out);
    state.finish();
    for (auto& [name, resident] : state.residents) resident.written = nullptr;  // the copies are over
    for (auto& [key, heads] : state.heads) heads.written = nullptr;
  }

  void run_residents(DeviceState& state, const Plan& plan, std::size_t d, const Launches& launches,
                     std::vector<Event>& after) {
    const Heads& heads = state.heads[key_];
    if (heads.written) after.push_back(heads.written);
    std::vector<Stage> stages;
    ++state.calls;
    for (std::size_t k = 0; k < launches.jobs.size(); ++k) {
      Resident& resident = state.residents[resident_name(r_.tensor.serial(), part_at(plan, plan.of_device[d][k]))];
      resident.used = state.calls;
      if (resident.written) after.push_back(resident.written);
      Stage& stage = stages.emplace_back();
      stage.slot = {resident.memory, 0};
      stage.head = {heads.memory, heads.begins[k]};
      stage.second_head = {heads.memory, heads.begins[k + 1] - state.alignment()};
    }
    state.run(launches.jobs, stages, launches.target, after);
  }

  /// One step after the other, and what the model says; on all devices at the same time.
  void run_synchronously(const Plan& plan) {
    reports_.resize(devices());
    cpu::run_team(static_cast<int>(devices()), [&](int rank, int) {
      const auto d = static_cast<std::size_t>(rank);
      DeviceState& state = *states_.all[d];
      const Launches launches(*this, state, plan, d);
      if (launches.jobs.empty()) return;
      state.compute().clear(launches.target.out, out_bytes());
      state.finish();
      const std::vector<Collection> all = DeviceState::collections(launches.jobs, factor_rows_, launches.target);
      reports_[d] = report_of(plan.rates, all, state.pipeline->run_synchronously(all), state.pipeline->queues(),
                              state.pipeline_bytes);
    });
  }

  [[nodiscard]] std::vector<Define> defines(const Target& target) const {
    return {{"PD_REAL_BITS", std::to_string(8 * sizeof(T))},
            {"PD_ITEMS_0", std::to_string(target.items[0])},
            {"PD_ITEMS_1", std::to_string(target.items[1])}};
  }

  Job job_of(DeviceState& state, const PartGroup& group, const Part& part, const Target& target) const {
    std::vector<Define> all = defines(target);
    all.emplace_back("PD_ORDER", std::to_string(r_.order()));
    all.insert(all.end(), group.defines.begin(), group.defines.end());
    Job job;
    job.part = &part;
    job.seam_bytes = seam_bytes(part);
    if (part.chunks > 0) all.emplace_back("PD_SEAMS", job.seam_bytes > 0 ? "1" : "0");
    const std::uint64_t columns =
        group.columns == Columns::registers ? std::min<std::uint64_t>(4, target.column_groups) : 1;
    if (group.unit == "mttkrp_coo") all.emplace_back("PD_COLUMNS", std::to_string(columns));
    job.kernel = state.kernel(group.unit, group.function, all);
    job.name = group.function;
    job.grid.items = target.items;
    job.grid.groups = {part.groups,
                       group.columns == Columns::loop ? 1 : (target.column_groups + columns - 1) / columns};
    return job;
  }

  const MttkrpRequest<T>& r_;
  Cutter cut_;
  DeviceStates& states_;
  std::string key_;
  std::vector<std::uint64_t> factor_rows_;  // where each begins
  std::uint64_t all_rows_ = 0;
  std::vector<Event> uploads_;           // of the factors, per device; none when it is over
  std::vector<PipelineReport> reports_;  // per device, when they are wanted
};

}  // namespace

template <class T>
void run_parts_of(const MttkrpRequest<T>& r, Cutter cut) {
  Run<T>(r, cut)();
}

template void run_parts_of(const MttkrpRequest<float>&, Cutter);
template void run_parts_of(const MttkrpRequest<double>&, Cutter);

}  // namespace polyad::gpu

namespace polyad {

template <class T>
PipelineReport mttkrp_pipeline(Tensor& x, std::span<const FactorMatrix<T>> factors, int mode, FactorMatrix<T>& out,
                               const Context& context, std::string_view kernel) {
  if (context.devices.empty()) throw usage_error("the pipeline is that of a device: name one with --device");
  PipelineReport report;
  Workspace workspace;
  gpu::states_of(workspace, context).report = &report;
  report.kernel = mttkrp<T>(x, factors, mode, out, workspace, context, kernel);
  return report;
}

template PipelineReport mttkrp_pipeline(Tensor&, std::span<const FactorMatrix<float>>, int, FactorMatrix<float>&,
                                        const Context&, std::string_view);
template PipelineReport mttkrp_pipeline(Tensor&, std::span<const FactorMatrix<double>>, int, FactorMatrix<double>&,
                                        const Context&, std::string_view);

}  // namespace polyad
