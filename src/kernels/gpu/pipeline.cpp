// SPDX-License-Identifier: MIT
#include "kernels/gpu/pipeline.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>

#include "polyad/error.hpp"

namespace polyad::gpu {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Where things begin in a slot. The arrays and the head are one copy.
struct Layout {
  Layout(const Collection& c, std::uint64_t alignment) {
    const std::uint64_t numbers = c.part->numbers.size() + c.part->arrays.size() + c.factor_begins.size();
    head = aligned(c.part->bytes(), alignment);
    in_end = head + numbers * sizeof(std::uint64_t);
    second_head = aligned(in_end, alignment);
    if (!c.second_head.empty()) in_end = second_head + c.second_head.size() * sizeof(std::uint64_t);
    out = aligned(in_end, alignment);
    seams = aligned(out + std::max<std::uint64_t>(c.out_bytes, 1), alignment);
    end = aligned(seams + std::max<std::uint64_t>(c.seam_bytes, 1), alignment);
  }
  std::uint64_t head = 0;
  std::uint64_t second_head = 0;
  std::uint64_t in_end = 0;
  std::uint64_t out = 0;
  std::uint64_t seams = 0;
  std::uint64_t end = 0;
};

}  // namespace

std::uint64_t Collection::slot_bytes(std::uint64_t alignment) const { return Layout(*this, alignment).end; }

std::unique_ptr<Pipeline> Pipeline::make(Device& device, std::uint64_t slot_bytes, int queues, const Context& context) {
  std::unique_ptr<Pipeline> p(new Pipeline);
  try {
    p->pinned_ = std::make_unique<Counted>(context, slot_bytes * static_cast<std::uint64_t>(queues),
                                           "the pinned memory of a device");
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::limit) throw;
    return nullptr;
  }
  p->alignment_ = std::max(slot_alignment, device.facts().offset_alignment);
  if (slot_bytes > device.facts().largest_allocation) return nullptr;
  for (int q = 0; q < queues; ++q) {
    MemoryPtr memory = device.allocate(slot_bytes);
    if (memory == nullptr) return nullptr;
    Lane& lane = p->lanes_.emplace_back();
    lane.memory = std::move(memory);
    lane.pinned = device.pin(slot_bytes);
    lane.queue = device.make_queue();
  }
  return p;
}

Pipeline::~Pipeline() {
  // After an error there may still be something under way that reads or writes pinned memory.
  for (Lane& lane : lanes_) {
    try {
      if (lane.queue != nullptr) lane.queue->finish();
    } catch (const Error&) {  // it is told already
    }
  }
}

void Pipeline::begin(Lane& lane, const Collection& c, std::span<const Event> compute_after,
                     const std::function<void(int step)>& step_over) const {
  const Layout layout(c, alignment_);
  assert(layout.end <= lane.memory->bytes());
  lane.busy = &c;
  std::byte* pinned = lane.pinned->data();
  std::uint64_t at = 0;
  for (const auto& array : c.part->arrays) {
    if (!array.empty()) std::memcpy(pinned + at, array.data(), array.size());
    at += aligned(array.size());
  }
  if (c.part->copied) c.part->copied();
  const std::vector<std::uint64_t> head = head_of(*c.part, c.factor_begins);
  std::memcpy(pinned + layout.head, head.data(), head.size() * sizeof(std::uint64_t));
  std::ranges::copy(std::as_bytes(std::span(c.second_head)), pinned + layout.second_head);
  const Stage stage = {{lane.memory, 0},
                       {lane.memory, layout.head},
                       {lane.memory, layout.second_head},
                       {lane.memory, layout.out},
                       {lane.memory, layout.seams}};
  lane.copied_in = lane.queue->write(stage.slot, {pinned, layout.in_end}, {}, "copy in");
  step_over(1);
  lane.computed = c.compute(*lane.queue, stage, compute_after);
  step_over(2);
  lane.copied_out = nullptr;
  lane.out = {};
  if (c.out_bytes > 0) {
    const std::span<std::byte> out(pinned + layout.out, c.out_bytes);
    lane.copied_out = lane.queue->read(out, stage.out, {}, "copy out");
    lane.out = out;
  }
  lane.queue->flush();
}

void Pipeline::end(Lane& lane) {
  if (lane.busy == nullptr) return;
  lane.copied_in->wait();
  lane.computed->wait();
  if (lane.copied_out != nullptr) lane.copied_out->wait();
  if (lane.busy->take) lane.busy->take(lane.out);
  lane.busy = nullptr;
}

double Pipeline::run(std::span<const Collection> collections, bool in_turn, std::span<const Event> after) {
  std::vector<Event> last(after.begin(), after.end());
  const auto begin_time = Clock::now();
  for (std::size_t i = 0; i < collections.size(); ++i) {
    Lane& lane = lanes_[i % lanes_.size()];
    end(lane);
    begin(lane, collections[i], last, [](int) {});
    if (in_turn) last = {lane.computed};
  }
  for (std::size_t k = 0; k < lanes_.size(); ++k) end(lanes_[(collections.size() + k) % lanes_.size()]);
  return seconds_since(begin_time);
}

SynchronousTimes Pipeline::run_synchronously(std::span<const Collection> collections, std::span<const Event> after) {
  SynchronousTimes times;
  Lane& lane = lanes_.front();
  const auto begin_time = Clock::now();
  for (const Collection& c : collections) {
    CollectionTimes& t = times.collections.emplace_back();
    auto before = Clock::now();
    begin(lane, c, after, [&](int step) {
      lane.queue->finish();
      (step == 1 ? t.copy_in : t.compute) = seconds_since(before);
      before = Clock::now();
    });
    end(lane);
    t.copy_out = c.out_bytes == 0 ? 0 : seconds_since(before);
  }
  times.seconds = seconds_since(begin_time);
  return times;
}

std::vector<CollectionTimes> Pipeline::shortest_times(std::span<const Collection> collections) {
  constexpr int runs = 4;
  std::vector<CollectionTimes> shortest = run_synchronously(collections).collections;
  for (int k = 1; k < runs; ++k) {
    const SynchronousTimes again = run_synchronously(collections);
    for (std::size_t i = 0; i < shortest.size(); ++i) {
      CollectionTimes& t = shortest[i];
      t.copy_in = std::min(t.copy_in, again.collections[i].copy_in);
      t.compute = std::min(t.compute, again.collections[i].compute);
      t.copy_out = std::min(t.copy_out, again.collections[i].copy_out);
    }
  }
  return shortest;
}

std::uint64_t largest_slot(std::span<const Collection> collections, const Facts& facts) {
  std::uint64_t largest = 0;
  for (const Collection& c : collections)
    largest = std::max(largest, c.slot_bytes(std::max(slot_alignment, facts.offset_alignment)));
  return largest;
}

std::optional<StepRates> measured_rates(Device& device, std::span<const Collection> collections,
                                        const Context& context) {
  const std::unique_ptr<Pipeline> pipeline =
      Pipeline::make(device, largest_slot(collections, device.facts()), 1, context);
  if (pipeline == nullptr) return std::nullopt;
  const std::vector<CollectionTimes> times = pipeline->shortest_times(collections);
  if (collections.size() != 2) return StepRates{};
  return rates_from(collections[0].size(), times[0], collections[1].size(), times[1]);
}

PipelineReport report_of(const StepRates& rates, std::span<const Collection> collections,
                         const SynchronousTimes& synchronous, int queues, std::uint64_t slot_bytes) {
  std::vector<CollectionTimes> model;
  for (const Collection& c : collections) model.push_back(rates.of(c.size()));
  PipelineReport report;
  report.queues = queues;
  report.collections = collections.size();
  report.slot_bytes = slot_bytes;
  report.measured_ts = synchronous.seconds;
  report.model_ts = synchronous_time(model);
  report.model_tp = pipelined_time(model);
  report.steps_tp = pipelined_time(synchronous.collections);
  report.copy_in = {rates.copy_in.begin, rates.copy_in.slope};
  report.compute = {rates.compute.begin, rates.compute.slope};
  report.copy_out = {rates.copy_out.begin, rates.copy_out.slope};
  return report;
}

namespace {

template <class Combine>
void add(PipelineReport& all, const PipelineReport& other, const Combine& combine) {
  if (all.collections == 0) {
    all.copy_in = other.copy_in;
    all.compute = other.compute;
    all.copy_out = other.copy_out;
  }
  all.queues = std::max(all.queues, other.queues);
  all.collections += other.collections;
  all.slot_bytes = std::max(all.slot_bytes, other.slot_bytes);
  for (double PipelineReport::*seconds :
       {&PipelineReport::measured_ts, &PipelineReport::measured_tp, &PipelineReport::model_ts,
        &PipelineReport::model_tp, &PipelineReport::steps_tp})
    all.*seconds = combine(all.*seconds, other.*seconds);
}

}  // namespace

void add_beside(PipelineReport& all, const PipelineReport& device) {
  add(all, device, [](double a, double b) { return std::max(a, b); });
}

void add_after(PipelineReport& all, const PipelineReport& next) {
  add(all, next, [](double a, double b) { return a + b; });
}

}  // namespace polyad::gpu
