// SPDX-License-Identifier: MIT
/// \file The device interface over OpenCL.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backends/gpu/device.hpp"
#include "backends/gpu/memory_count.hpp"
#include "backends/gpu/opencl/api.hpp"
#include "backends/gpu/program.hpp"

namespace polyad::gpu::opencl {

using ApiPtr = std::shared_ptr<const Api>;

/// What all objects of one device share. Contexts are not shared by devices: their memory would be too.
struct Shared {
  ApiPtr api;
  cl_device_id id = nullptr;
  Handle<cl_context> context;
  Facts facts;
};
using SharedPtr = std::shared_ptr<const Shared>;

/// A buffer. Views from other bytes on are sub-buffers, made when first asked for.
class ClMemory final : public Memory {
 public:
  ClMemory(SharedPtr shared, std::unique_ptr<Taken> taken, Handle<cl_mem> buffer)
      : shared_(std::move(shared)), taken_(std::move(taken)), buffer_(std::move(buffer)) {}
  [[nodiscard]] std::uint64_t bytes() const override { return taken_->bytes(); }
  [[nodiscard]] cl_mem buffer() const { return buffer_.get(); }
  /// The memory from a byte on, as a kernel is given it.
  [[nodiscard]] cl_mem from(std::uint64_t offset);

 private:
  SharedPtr shared_;
  std::unique_ptr<Taken> taken_;
  Handle<cl_mem> buffer_;
  std::mutex mutex_;
  std::map<std::uint64_t, Handle<cl_mem>> views_;  // released before the buffer
};

/// Memory of the host that the driver made, mapped for as long as it lives.
class ClPinned final : public PinnedMemory {
 public:
  ClPinned(SharedPtr shared, std::uint64_t bytes);
  ~ClPinned() override;
  ClPinned(const ClPinned&) = delete;
  ClPinned& operator=(const ClPinned&) = delete;
  [[nodiscard]] std::byte* data() const override { return data_; }
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }

 private:
  SharedPtr shared_;
  std::uint64_t bytes_;
  Handle<cl_command_queue> queue_;
  Handle<cl_mem> buffer_;
  std::byte* data_ = nullptr;
};

/// A command of a queue.
class ClEvent final : public EventBody {
 public:
  ClEvent(SharedPtr shared, Handle<cl_command_queue> queue, Handle<cl_event> event, std::string label)
      : shared_(std::move(shared)), queue_(std::move(queue)), event_(std::move(event)), label_(std::move(label)) {}
  void wait() override;
  [[nodiscard]] EventTimes times() override;
  [[nodiscard]] cl_event get() const { return event_.get(); }
  [[nodiscard]] cl_command_queue queue() const { return queue_.get(); }
  [[nodiscard]] const Shared* shared() const { return shared_.get(); }

 private:
  SharedPtr shared_;
  Handle<cl_command_queue> queue_;
  Handle<cl_event> event_;
  std::string label_;
};

/// A program; kernels keep it alive.
struct ClProgram {
  Handle<cl_program> program;
  std::string unit;
};

/// A kernel and the values of its arguments, which OpenCL keeps in it.
class ClKernel final : public Kernel {
 public:
  ClKernel(const Shared& shared, std::shared_ptr<ClProgram> program, std::string_view function);
  [[nodiscard]] cl_kernel get() const { return kernel_.get(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint64_t largest_group() const { return largest_group_; }
  [[nodiscard]] std::size_t argument_count() const { return argument_count_; }

 private:
  std::shared_ptr<ClProgram> program_;
  Handle<cl_kernel> kernel_;
  std::string name_;
  std::uint64_t largest_group_ = 0;
  std::size_t argument_count_ = 0;
};

/// An in-order command queue that takes times.
class ClQueue final : public Queue {
 public:
  explicit ClQueue(SharedPtr shared);
  ~ClQueue() override;
  ClQueue(const ClQueue&) = delete;
  ClQueue& operator=(const ClQueue&) = delete;
  Event write(const View& to, std::span<const std::byte> from, std::span<const Event> after,
              std::string_view label) override;
  Event read(std::span<std::byte> to, const View& from, std::span<const Event> after, std::string_view label) override;
  Event clear(const View& to, std::uint64_t bytes, std::span<const Event> after) override;
  Event launch(Kernel& kernel, const Grid& grid, std::span<const Argument> arguments, std::span<const Event> after,
               std::string_view label) override;
  void flush() override;
  void finish() override;

 private:
  /// The events of `after` that OpenCL has to wait for; others are waited for here.
  [[nodiscard]] std::vector<cl_event> wait_list(std::span<const Event> after) const;
  [[nodiscard]] Event made(cl_event event, std::string_view label) const;
  /// What stands for a command with nothing to do.
  [[nodiscard]] Event nothing(std::span<const Event> after, std::string_view label) const;
  void set_arguments(const ClKernel& kernel, std::span<const Argument> arguments) const;

  SharedPtr shared_;
  Handle<cl_command_queue> queue_;
};

/// A queue of its own for a device.
[[nodiscard]] Handle<cl_command_queue> make_command_queue(const Shared& shared);

}  // namespace polyad::gpu::opencl
