// SPDX-License-Identifier: MIT
/// \file A device that hands everything on to another: tests override what they look at.
#pragma once

#include <memory>
#include <utility>

#include "backends/gpu/device.hpp"

namespace polyad::test {

class ForwardingQueue : public gpu::Queue {
 public:
  explicit ForwardingQueue(std::unique_ptr<gpu::Queue> to) : to_(std::move(to)) {}
  gpu::Event write(const gpu::View& to, std::span<const std::byte> from, std::span<const gpu::Event> after,
                   std::string_view label) override {
    return to_->write(to, from, after, label);
  }
  gpu::Event read(std::span<std::byte> to, const gpu::View& from, std::span<const gpu::Event> after,
                  std::string_view label) override {
    return to_->read(to, from, after, label);
  }
  gpu::Event clear(const gpu::View& to, std::uint64_t bytes, std::span<const gpu::Event> after) override {
    return to_->clear(to, bytes, after);
  }
  gpu::Event launch(gpu::Kernel& kernel, const gpu::Grid& grid, std::span<const gpu::Argument> arguments,
                    std::span<const gpu::Event> after, std::string_view label) override {
    return to_->launch(kernel, grid, arguments, after, label);
  }
  void flush() override { to_->flush(); }
  void finish() override { to_->finish(); }

 private:
  std::unique_ptr<gpu::Queue> to_;
};

class ForwardingDevice : public gpu::Device {
 public:
  explicit ForwardingDevice(gpu::DevicePtr to) : to_(std::move(to)) {}
  [[nodiscard]] const gpu::Facts& facts() const override { return to_->facts(); }
  [[nodiscard]] gpu::MemoryPtr allocate(std::uint64_t bytes) override { return to_->allocate(bytes); }
  [[nodiscard]] std::unique_ptr<gpu::PinnedMemory> pin(std::uint64_t bytes) override { return to_->pin(bytes); }
  [[nodiscard]] std::unique_ptr<gpu::Queue> make_queue() override { return to_->make_queue(); }
  [[nodiscard]] gpu::KernelPtr kernel(std::string_view unit, std::string_view function,
                                      std::span<const gpu::Define> defines) override {
    return to_->kernel(unit, function, defines);
  }

 private:
  gpu::DevicePtr to_;
};

}  // namespace polyad::test
