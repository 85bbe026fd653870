// SPDX-License-Identifier: MIT
#include <polyad/error.hpp>
#include <polyad/registry.hpp>

#include "backends/device_fixture.hpp"
#include "backends/gpu/memory_count.hpp"

namespace polyad::test {
namespace {

std::string refusal(std::string_view names) {
  try {
    (void)open_devices(names);
  } catch (const Error& e) {
    return e.what();
  }
  return "opened";
}

TEST(Discovery, TheProcessorNeedsNoOpening) { EXPECT_TRUE(open_devices("cpu").empty()); }

TEST(Discovery, AMachineWithoutDriversSaysWhy) {
  const Variable opencl("POLYAD_OPENCL_LIBRARY", "/nowhere/libOpenCL.so.1");
  const Variable cuda("POLYAD_CUDA_LIBRARY", "/nowhere/libcuda.so.1");
  const std::vector<DeviceEntry> all = devices();
  ASSERT_GE(all.size(), 2U);
  EXPECT_EQ(all[0].name, "cpu");
  EXPECT_TRUE(all[0].available);
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_FALSE(all[i].available);
    EXPECT_EQ(all[i].name, all[i].backend);
    EXPECT_NE(all[i].description.find("/nowhere/"), std::string::npos) << all[i].description;
  }
  EXPECT_NE(refusal("gpu").find("there is no GPU to run on: no "), std::string::npos) << refusal("gpu");
  EXPECT_NE(refusal("gpu").find("/nowhere/libOpenCL.so.1 was not found"), std::string::npos);
  EXPECT_NE(refusal("opencl:0").find("pocl-opencl-icd"), std::string::npos);
  EXPECT_TRUE(open_devices("cpu").empty());
}

TEST(Discovery, ALibraryThatIsNoDriverIsNoDriver) {
  const Variable opencl("POLYAD_OPENCL_LIBRARY", "libm.so.6");
  EXPECT_NE(refusal("opencl:0").find("has no clGetPlatformIDs"), std::string::npos) << refusal("opencl:0");
}

TEST(Discovery, NamesThatAreNotThere) {
  for (const char* name : {"tpu", "", "opencl:99", "opencl:x", "opencl:", "opencl:0x", "opencl:-1", "cpu,gpu:", ","})
    EXPECT_NE(refusal(name), "opened") << name;
  EXPECT_NE(refusal("tpu").find("there is no device 'tpu' on this machine; there are cpu"), std::string::npos);
  EXPECT_NE(refusal("cpu,gpu").find("cpu stands alone"), std::string::npos) << refusal("cpu,gpu");
}

TEST(Discovery, ADeviceIsNamedOnce) {
  const CudaDouble cuda;
  const Variable devices_there("FAKE_CUDA_DEVICES", "2");
  EXPECT_EQ(open_devices("cuda:0,cuda:1").size(), 2U);
  for (const char* names : {"cuda:0,cuda:0", "cuda,cuda:0", "gpu,cuda:0", "gpu,gpu", "cuda:1,cuda:0,cuda:1"})
    EXPECT_NE(refusal(names).find("is named twice"), std::string::npos) << names << ": " << refusal(names);
}

TEST(Discovery, TwoDriversOfOneGpu) {
  const CudaDouble cuda;
  const Variable devices_there("FAKE_CUDA_DEVICES", "2");
  const Variable bus("FAKE_CUDA_BUS", "59");
  const std::vector<gpu::Facts> found = gpu::cuda::find().devices;
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].place, "0000:3b:00");
  EXPECT_FALSE(gpu::is_same_device(found[0], found[1]));
  gpu::Facts other;
  other.name = "opencl:1";
  other.backend = "opencl";
  EXPECT_FALSE(gpu::is_same_device(found[0], other));
  other.place = gpu::place_on_bus(0, 59, 0);
  EXPECT_TRUE(gpu::is_same_device(found[0], other));
  EXPECT_FALSE(gpu::is_same_device(found[1], other));
  gpu::Facts half = other;  // of a GPU whose driver shows its parts
  half.name = "opencl:2";
  EXPECT_FALSE(gpu::is_same_device(half, other));
  EXPECT_EQ(gpu::place_on_bus(0, 0, 0), "");
}

TEST(Discovery, MemoryIsCountedOnceHoweverOftenADeviceIsOpened) {
  gpu::Facts facts;
  facts.name = "counted:0";
  gpu::MemoryCount first(1000, gpu::count_of_all(facts, 1000));
  gpu::MemoryCount again(800, gpu::count_of_all(facts, 1000));
  EXPECT_TRUE(first.take(700));
  EXPECT_FALSE(again.take(400));
  EXPECT_TRUE(again.take(300));
  first.give_back(700);
  EXPECT_FALSE(again.take(501)) << "over its own limit";
  EXPECT_TRUE(again.take(500));
  EXPECT_TRUE(first.take(200)) << "what was refused is not counted";
  facts.name = "counted:1";
  EXPECT_TRUE(gpu::count_of_all(facts, 1000)->take(1000));
}

TEST(Discovery, WhatIsFoundCanBeOpened) {
  std::string names;
  for (const DeviceEntry& d : devices())
    if (d.available && d.name != "cpu") names += (names.empty() ? "" : ",") + d.name;
  if (names.empty()) GTEST_SKIP() << "no device on this machine";
  const auto opened = open_devices(names, {.memory = 1 << 24, .cache = {}});
  std::string found;
  for (const auto& d : opened) {
    found += (found.empty() ? "" : ",") + d->facts().name;
    EXPECT_LE(d->facts().memory_bytes, 1U << 24U);
  }
  EXPECT_EQ(found, names);
  ASSERT_EQ(open_devices("gpu").size(), 1U);
}

}  // namespace
}  // namespace polyad::test
