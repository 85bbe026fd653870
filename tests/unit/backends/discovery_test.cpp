// SPDX-License-Identifier: MIT
#include <polyad/error.hpp>
#include <polyad/registry.hpp>

#include "backends/device_fixture.hpp"

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
