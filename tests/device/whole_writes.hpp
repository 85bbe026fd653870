// SPDX-License-Identifier: MIT
/// \file A device for Oclgrind's search for numbers that were never written.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "device/forwarding_device.hpp"

namespace polyad::test {

/// Writes all of a device memory whenever a part of it is written or cleared: Oclgrind 21.10 forgets which bytes were
/// written before (its plugin for uninitialised values begins a new record with every write).
class WholeWrites final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  [[nodiscard]] std::unique_ptr<gpu::Queue> make_queue() override {
    return std::make_unique<WholeQueue>(ForwardingDevice::make_queue(), contents_);
  }

 private:
  using Contents = std::map<const gpu::Memory*, std::vector<std::byte>>;
  class WholeQueue final : public ForwardingQueue {
   public:
    WholeQueue(std::unique_ptr<gpu::Queue> to, Contents& contents)
        : ForwardingQueue(std::move(to)), contents_(contents) {}
    gpu::Event write(const gpu::View& to, std::span<const std::byte> from, std::span<const gpu::Event> after,
                     std::string_view label) override {
      std::vector<std::byte>& all = contents_[to.memory.get()];
      all.resize(to.memory->bytes());
      finish();  // an earlier copy from here
      std::memcpy(all.data() + to.offset, from.data(), from.size());
      return ForwardingQueue::write({to.memory, 0}, all, after, label);
    }
    gpu::Event clear(const gpu::View& to, std::uint64_t bytes, std::span<const gpu::Event> after) override {
      const std::vector<std::byte> zeros(bytes);
      return write(to, zeros, after, "clear");
    }

   private:
    Contents& contents_;
  };
  Contents contents_;
};

}  // namespace polyad::test
