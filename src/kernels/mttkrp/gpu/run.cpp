// SPDX-License-Identifier: MIT
#include "kernels/mttkrp/gpu/run.hpp"

#include <limits>
#include <numeric>

#include "backends/cpu/threads.hpp"
#include "kernels/gpu/runner.hpp"
#include "kernels/mttkrp/output.hpp"
#include "polyad/error.hpp"

namespace polyad::gpu {

Answer ask(const MttkrpQuestion& q, bool fits, std::string_view format, double cost, const char* reason) {
  if (!fits) return cannot(fmt::format("it works on {}", format));
  if (q.tensor.shape().order() < 2) return cannot("it works on tensors of order 2 and above");
  return can(cost * row_cost(q), reason);
}

namespace {

/// Slots that parts pass through: one is filled while the kernel reads another, and a third takes up the differences.
constexpr std::size_t passing_slots = 3;
/// What cutters do not count: the numbers in front of the arrays.
constexpr std::uint64_t head_room = 4096;

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
    for (const auto& state : states_.all)
      if (sizeof(T) == 8 && !state->facts().has_f64)
        throw usage_error(fmt::format("{} ({}) has no double precision; take --precision f32, or another device",
                                      state->facts().name, state->facts().description));
    try {
      compute();
    } catch (...) {
      // Copies may still run from and to memory that goes away now.
      for (const auto& state : states_.all) {
        try {
          state->finish();
        } catch (...) {  // the first failure is the one to tell
        }
      }
      throw;
    }
  }

 private:
  [[nodiscard]] std::size_t devices() const { return states_.all.size(); }
  [[nodiscard]] std::uint64_t row_bytes() const { return r_.stride() * sizeof(T); }
  [[nodiscard]] std::uint64_t out_bytes() const { return std::max<std::uint64_t>(r_.out.rows(), 1) * row_bytes(); }
  [[nodiscard]] std::uint64_t slot_bytes(const Part& p) const { return p.bytes() + head_bytes(p, factor_rows_.size()); }
  [[nodiscard]] std::uint64_t seam_bytes(const Part& p) const {
    return r_.context.deterministic ? 2 * p.chunks * (sizeof(std::uint64_t) + row_bytes()) : 0;
  }
  [[nodiscard]] std::vector<PartGroup> cut(std::uint64_t most_bytes) const {
    return cut_(r_.tensor, {r_.mode, r_.stride(), most_bytes, devices(), r_.context.deterministic});
  }

  void compute() {
    std::vector<Event> uploads;
    for (const auto& state : states_.all) uploads.push_back(upload_factors(*state));
    Plan& plan = ready_plan();
    std::vector<Buffer<T>> partial(devices());  // of devices but the first
    cpu::run_team(static_cast<int>(devices()), [&](int rank, int) {
      const auto d = static_cast<std::size_t>(rank);
      T* to = r_.out.data();
      if (d > 0) {
        partial[d] = Buffer<T>(r_.context, r_.out.rows() * r_.stride(), "the output of a device");
        to = partial[d].data();
      }
      run_device(*states_.all[d], plan, d, uploads[d], to);
    });
    for (std::size_t d = 1; d < devices(); ++d)
      cpu::parallel_ranges(r_.threads(), partial[d].size(), [&](std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t k = begin; k < end; ++k) r_.out.data()[k] += partial[d][k];
      });
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
  void share_out(Plan& plan) const {
    std::uint64_t nnz = 0;
    for (const PartGroup& g : plan.groups)
      for (const Part& p : g.parts) nnz += p.nnz;
    plan.of_device.assign(devices(), {});
    std::uint64_t before = 0;
    for (std::size_t g = 0; g < plan.groups.size(); ++g)
      for (std::size_t k = 0; k < plan.groups[g].parts.size(); ++k) {
        const std::uint64_t own = plan.groups[g].parts[k].nnz;
        const auto middle = static_cast<double>(before) + static_cast<double>(own) / 2;
        const auto d = static_cast<std::size_t>(middle / static_cast<double>(nnz) * static_cast<double>(devices()));
        plan.of_device[std::min(d, devices() - 1)].push_back({g, k});
        before += own;
      }
  }

  [[nodiscard]] const Part& part_at(const Plan& plan, const Plan::Place& place) const {
    return plan.groups[place.group].parts[place.part];
  }

  /// Slots of their own for all parts of a device, filled; false when there is no room.
  bool settle(DeviceState& state, const Plan& plan, std::size_t d) {
    if (state.residents.contains(key_)) return true;
    std::vector<Slot> slots;
    for (const bool may_evict : {false, true}) {
      slots.clear();
      if (may_evict) state.passing.clear();
      for (const Plan::Place& place : plan.of_device[d]) {
        MemoryPtr memory = state.try_allocate(slot_bytes(part_at(plan, place)), may_evict);
        if (!memory) break;
        slots.push_back({std::move(memory), nullptr, nullptr, nullptr});
      }
      if (slots.size() == plan.of_device[d].size()) break;
    }
    if (slots.size() != plan.of_device[d].size()) return false;
    for (std::size_t k = 0; k < slots.size(); ++k)
      state.fill(slots[k], part_at(plan, plan.of_device[d][k]), factor_rows_, r_.stride());
    state.residents[key_].slots = std::move(slots);
    return true;
  }

  /// A few slots that all parts pass through; false when there is no room for two.
  static bool make_passing(DeviceState& state, std::uint64_t bytes) {
    if (state.passing.size() >= 2 && state.passing_bytes >= bytes) return true;
    state.passing.clear();
    state.passing_bytes = bytes;
    for (std::size_t k = 0; k < passing_slots; ++k) {
      MemoryPtr memory = state.try_allocate(bytes, true);
      if (!memory) break;
      state.passing.push_back({std::move(memory), state.device().pin(bytes), nullptr, nullptr});
    }
    if (state.passing.size() >= 2) return true;
    state.passing.clear();
    return false;
  }

  /// Makes the memory that a plan needs; false when there is no room.
  bool make_room(const Plan& plan) {
    for (std::size_t d = 0; d < devices(); ++d) {
      DeviceState& state = *states_.all[d];
      std::uint64_t largest = 0;
      std::uint64_t seams = slot_alignment;
      for (const Plan::Place& place : plan.of_device[d]) {
        largest = std::max(largest, slot_bytes(part_at(plan, place)));
        seams = std::max(seams, seam_bytes(part_at(plan, place)));
      }
      if (!state.try_room("side rows", seams)) return false;
      if (plan.stays ? !settle(state, plan, d) : !make_passing(state, largest)) return false;
    }
    return true;
  }

  /// How the tensor is cut and which parts stay on the devices; what this needs is there.
  Plan& ready_plan() {
    for (const auto& state : states_.all) static_cast<void>(state->room("the output", out_bytes()));
    const auto known = states_.plans.find(key_);
    if (known != states_.plans.end() && make_room(known->second)) return known->second;
    if (states_.plans.size() > 256) states_.plans.clear();  // of tensors that are long gone
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    for (const auto& state : states_.all) most = std::min(most, state->facts().largest_allocation);
    Plan plan;
    plan.groups = cut(most - std::min(most, head_room));
    share_out(plan);
    if (!make_room(plan)) plan = passing_plan();
    return states_.plans[key_] = std::move(plan);
  }

  /// Parts that pass through slots: as large as memory allows.
  Plan passing_plan() {
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    for (const auto& state : states_.all) {
      state->finish();  // what was being copied to slots that are given up
      state->residents.clear();
      state->drop_room("side rows");
      const std::uint64_t taken = std::min(state->room_bytes(), state->facts().memory_bytes);
      most = std::min({most, (state->facts().memory_bytes - taken) / passing_slots, state->facts().largest_allocation});
    }
    for (;; most = most / 4 * 3) {
      Plan plan;
      plan.stays = false;
      plan.groups = cut(most - std::min(most, head_room));
      share_out(plan);
      if (make_room(plan)) return plan;
      std::uint64_t largest = 0;
      for (const PartGroup& g : plan.groups)
        for (const Part& p : g.parts) largest = std::max(largest, slot_bytes(p));
      for (const auto& state : states_.all) state->drop_room("side rows");
      if (largest > 2 * most)  // pieces do not become smaller
        throw Error(
            ErrorKind::limit,
            fmt::format("{} has no room for two pieces of the tensor of {:.2f} MB each beside {:.2f} MB for the "
                        "factors and the output; {:.2f} MB may be used",
                        states_.all[0]->facts().name, static_cast<double>(largest) / 1e6,
                        static_cast<double>(states_.all[0]->room_bytes()) / 1e6,
                        static_cast<double>(states_.all[0]->facts().memory_bytes) / 1e6));
    }
  }

  void run_device(DeviceState& state, const Plan& plan, std::size_t d, const Event& uploaded, T* to) {
    Target target;
    target.factors = state.room("the factors", 0);
    target.out = state.room("the output", out_bytes());
    target.stride = r_.stride();
    target.items = group_items(r_.stride(), state.facts());
    target.column_groups = (r_.stride() + target.items[0] - 1) / target.items[0];
    target.seams = state.room("side rows", 0);
    std::vector<Job> jobs;
    for (const Plan::Place& place : plan.of_device[d]) {
      jobs.push_back(job_of(state, plan.groups[place.group], part_at(plan, place), target));
      if (jobs.back().seam_bytes > 0 && !target.add_seams)
        target.add_seams = state.kernel("add_seams", "add_seams", defines(target));
    }
    std::vector<Event> after = {state.compute().clear(target.out, out_bytes())};
    if (uploaded) after.push_back(uploaded);
    if (plan.stays) state.residents[key_].used = ++state.calls;
    state.run(jobs, plan.stays ? state.residents[key_].slots : state.passing, plan.stays, factor_rows_, target, after);
    if (r_.out.rows() > 0 && !states_.output_stays)
      state.compute().read(std::as_writable_bytes(std::span(to, r_.out.rows() * r_.stride())), target.out);
    state.finish();
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
};

}  // namespace

template <class T>
void run_parts_of(const MttkrpRequest<T>& r, Cutter cut) {
  Run<T>(r, cut)();
}

template void run_parts_of(const MttkrpRequest<float>&, Cutter);
template void run_parts_of(const MttkrpRequest<double>&, Cutter);

}  // namespace polyad::gpu
