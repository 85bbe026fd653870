// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "backends/gpu/opencl/objects.hpp"
#include "polyad/error.hpp"

namespace polyad::gpu::opencl {

Handle<cl_command_queue> make_command_queue(const Shared& shared) {
  cl_int code = CL_SUCCESS;
  Handle<cl_command_queue> queue(
      shared.api->clCreateCommandQueue(shared.context.get(), shared.id, CL_QUEUE_PROFILING_ENABLE, &code),
      shared.api->clReleaseCommandQueue);
  check(code, fmt::format("making a queue of {}", shared.facts.name));
  return queue;
}

void ClEvent::wait() {
  const cl_event event = event_.get();
  const cl_int code = shared_->api->clWaitForEvents(1, &event);
  if (code == CL_SUCCESS) return;
  cl_int status = CL_COMPLETE;
  shared_->api->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  check(status < 0 ? status : code, label_);
}

EventTimes ClEvent::times() {
  EventTimes t;
  const auto ask = [&](cl_profiling_info what, std::uint64_t& to) {
    cl_ulong value = 0;
    if (shared_->api->clGetEventProfilingInfo(event_.get(), what, sizeof value, &value, nullptr) == CL_SUCCESS)
      to = value;
  };
  ask(CL_PROFILING_COMMAND_QUEUED, t.queued);
  ask(CL_PROFILING_COMMAND_START, t.start);
  ask(CL_PROFILING_COMMAND_END, t.end);
  return t;
}

ClQueue::ClQueue(SharedPtr shared) : shared_(std::move(shared)), queue_(make_command_queue(*shared_)) {}

ClQueue::~ClQueue() {
  // Callers free what commands still use: releasing a queue does not wait for them.
  (void)shared_->api->clFinish(queue_.get());
}

std::vector<cl_event> ClQueue::wait_list(std::span<const Event> after) const {
  std::vector<cl_event> list;
  for (const Event& e : after) {
    if (!e) continue;
    const auto* mine = dynamic_cast<const ClEvent*>(e.get());
    if (mine == nullptr || mine->shared() != shared_.get()) {
      e->wait();  // of another device
      continue;
    }
    if (mine->queue() != queue_.get()) {
      // Without this the other queue's command may never be handed to the device, and both wait for ever.
      check(shared_->api->clFlush(mine->queue()), "flushing a queue");
    }
    list.push_back(mine->get());
  }
  return list;
}

Event ClQueue::made(cl_event event, std::string_view label) const {
  Handle<cl_event> owned(event, shared_->api->clReleaseEvent);
  check(shared_->api->clRetainCommandQueue(queue_.get()), "keeping a queue");
  return std::make_shared<ClEvent>(shared_, Handle<cl_command_queue>(queue_.get(), shared_->api->clReleaseCommandQueue),
                                   std::move(owned), std::string(label));
}

Event ClQueue::nothing(std::span<const Event> after, std::string_view label) const {
  const std::vector<cl_event> list = wait_list(after);
  cl_event event = nullptr;
  check(shared_->api->clEnqueueMarkerWithWaitList(queue_.get(), static_cast<cl_uint>(list.size()),
                                                  list.empty() ? nullptr : list.data(), &event),
        label);
  return made(event, label);
}

Event ClQueue::write(const View& to, std::span<const std::byte> from, std::span<const Event> after,
                     std::string_view label) {
  if (from.empty()) return nothing(after, label);
  check_range(to, from.size(), label);
  const std::vector<cl_event> list = wait_list(after);
  cl_event event = nullptr;
  check(shared_->api->clEnqueueWriteBuffer(queue_.get(), dynamic_cast<ClMemory&>(*to.memory).buffer(), CL_FALSE,
                                           to.offset, from.size(), from.data(), static_cast<cl_uint>(list.size()),
                                           list.empty() ? nullptr : list.data(), &event),
        label);
  return made(event, label);
}

Event ClQueue::read(std::span<std::byte> to, const View& from, std::span<const Event> after, std::string_view label) {
  if (to.empty()) return nothing(after, label);
  check_range(from, to.size(), label);
  const std::vector<cl_event> list = wait_list(after);
  cl_event event = nullptr;
  check(shared_->api->clEnqueueReadBuffer(queue_.get(), dynamic_cast<ClMemory&>(*from.memory).buffer(), CL_FALSE,
                                          from.offset, to.size(), to.data(), static_cast<cl_uint>(list.size()),
                                          list.empty() ? nullptr : list.data(), &event),
        label);
  return made(event, label);
}

Event ClQueue::clear(const View& to, std::uint64_t bytes, std::span<const Event> after) {
  if (bytes == 0) return nothing(after, "clear");
  check_range(to, bytes, "clear");
  const std::vector<cl_event> list = wait_list(after);
  // The widest pattern that both ends allow: drivers fill by patterns, and one of a byte is slow.
  const cl_ulong zeros[2] = {0, 0};
  std::uint64_t width = sizeof zeros;
  while (to.offset % width != 0 || bytes % width != 0) width /= 2;
  cl_event event = nullptr;
  check(shared_->api->clEnqueueFillBuffer(queue_.get(), dynamic_cast<ClMemory&>(*to.memory).buffer(), zeros, width,
                                          to.offset, bytes, static_cast<cl_uint>(list.size()),
                                          list.empty() ? nullptr : list.data(), &event),
        "clear");
  return made(event, "clear");
}

void ClQueue::set_arguments(const ClKernel& kernel, std::span<const Argument> arguments) const {
  if (arguments.size() != kernel.argument_count())
    throw usage_error(fmt::format("kernel {} has {} parameters, {} arguments were given", kernel.name(),
                                  kernel.argument_count(), arguments.size()));
  for (cl_uint i = 0; i < arguments.size(); ++i) {
    cl_mem memory = nullptr;
    std::size_t bytes = 0;
    const void* value = nullptr;
    if (const View* view = std::get_if<View>(&arguments[i])) {
      if (view->memory) {
        memory = dynamic_cast<ClMemory&>(*view->memory).from(view->offset);
        value = &memory;
      }
      bytes = sizeof(cl_mem);  // no value: the null pointer
    } else {
      std::visit(
          [&](const auto& number) {
            value = &number;
            bytes = sizeof number;
          },
          arguments[i]);
    }
    check(shared_->api->clSetKernelArg(kernel.get(), i, bytes, value),
          fmt::format("setting argument {} of kernel {}", i + 1, kernel.name()));
  }
}

Event ClQueue::launch(Kernel& kernel, const Grid& grid, std::span<const Argument> arguments,
                      std::span<const Event> after, std::string_view label) {
  const auto& mine = dynamic_cast<ClKernel&>(kernel);
  if (grid.groups[0] == 0 || grid.groups[1] == 0) return nothing(after, label);
  const std::uint64_t group = std::uint64_t{grid.items[0]} * grid.items[1];
  if (group == 0 || group > mine.largest_group())
    throw usage_error(fmt::format("kernel {}: groups of {} work-items, {} can have 1 to {}", mine.name(), group,
                                  shared_->facts.name, mine.largest_group()));
  set_arguments(mine, arguments);
  const std::vector<cl_event> list = wait_list(after);
  const std::size_t local[2] = {grid.items[0], grid.items[1]};
  const std::size_t global[2] = {grid.groups[0] * local[0], grid.groups[1] * local[1]};
  cl_event event = nullptr;
  check(shared_->api->clEnqueueNDRangeKernel(queue_.get(), mine.get(), 2, nullptr, global, local,
                                             static_cast<cl_uint>(list.size()), list.empty() ? nullptr : list.data(),
                                             &event),
        fmt::format("starting kernel {} ({})", mine.name(), label));
  return made(event, label);
}

void ClQueue::flush() { check(shared_->api->clFlush(queue_.get()), "flushing a queue"); }

void ClQueue::finish() { check(shared_->api->clFinish(queue_.get()), "waiting for a queue"); }

}  // namespace polyad::gpu::opencl
