// SPDX-License-Identifier: MIT
#include "core/narrow_values.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <polyad/polyad.hpp>
#include <vector>

namespace polyad {
namespace {

template <class Value>
CooTensor with_values(const std::vector<Value>& values) {
  CooTensor x = make_coo({values.size(), 2}, values.size(), sizeof(Value) == 4 ? Precision::f32 : Precision::f64, {});
  std::copy(values.begin(), values.end(), std::get<Buffer<Value>>(x.values).begin());
  return x;
}

template <class Value>
ValueCode code_of(const std::vector<Value>& values) {
  return ValueCode::of(with_values(values), {});
}

TEST(NarrowValues, TakeAsFewBytesAsLoseNothing) {
  EXPECT_EQ(code_of<double>({1, 2, 127, -127}), (ValueCode{1, 1}));
  EXPECT_EQ(code_of<double>({1, 128}), (ValueCode{2, 1}));
  EXPECT_EQ(code_of<double>({-128, 127}), (ValueCode{1, 1}));
  EXPECT_EQ(code_of<double>({-129}), (ValueCode{2, 1}));
  EXPECT_EQ(code_of<double>({-32768, 32767}), (ValueCode{2, 1}));
  EXPECT_EQ(code_of<double>({-32769}), (ValueCode{3, 1}));
  EXPECT_EQ(code_of<double>({32768}), (ValueCode{3, 1}));
  EXPECT_EQ(code_of<double>({-8388608}), (ValueCode{3, 1}));
  EXPECT_EQ(code_of<double>({-8388609}), (ValueCode{4, 1}));
  EXPECT_EQ(code_of<double>({8388607, -8388607}), (ValueCode{3, 1}));
  EXPECT_EQ(code_of<double>({8388608}), (ValueCode{4, 1}));
  EXPECT_EQ(code_of<float>({8388608}), (ValueCode{4, 1}));
  EXPECT_EQ(code_of<double>({0.5, 3.5, 5}), (ValueCode{1, 10}));
  EXPECT_EQ(code_of<double>({0.01, 99.99}), (ValueCode{2, 100}));
  EXPECT_EQ(code_of<float>({0.01F, 99.99F}), (ValueCode{2, 100}));
  EXPECT_EQ(code_of<double>({1e-6, 1}), (ValueCode{3, 1e6}));
  EXPECT_EQ(code_of<double>({1e-7}), (ValueCode{8, 1}));
  EXPECT_EQ(code_of<double>({1.0 / 3}), (ValueCode{8, 1}));
  EXPECT_EQ(code_of<float>({1.0F / 3}), (ValueCode{4, 1}));
  EXPECT_EQ(code_of<double>({0x1p-20, 1}), (ValueCode{4, 1}));
  EXPECT_EQ(code_of<double>({-123.4567, 167772.16}), (ValueCode{8, 1}));
  EXPECT_EQ(code_of<double>({167772.16}), (ValueCode{4, 100})) << "2^24 hundredths";
  EXPECT_EQ(code_of<double>({167772.17}), (ValueCode{8, 1})) << "one more";
  EXPECT_EQ(code_of<double>({}), (ValueCode{1, 1}));
}

TEST(NarrowValues, ACodeOfOtherValuesDoesNotSuit) {
  const CooTensor counts = with_values<double>({1, 2, 100});
  EXPECT_TRUE((ValueCode{1, 1}).suits(counts));
  EXPECT_TRUE((ValueCode{2, 10}).suits(counts)) << "more than they need";
  EXPECT_TRUE((ValueCode{8, 1}).suits(counts));
  EXPECT_FALSE((ValueCode{1, 1}).suits(with_values<double>({1, 300})));
  EXPECT_FALSE((ValueCode{1, 1}).suits(with_values<double>({1, 0.5})));
  EXPECT_FALSE((ValueCode{4, 1}).suits(with_values<double>({1, 0.1})));
  EXPECT_TRUE((ValueCode{4, 1}).suits(with_values<float>({1, 0.1F})));
  EXPECT_FALSE((ValueCode{8, 1}).suits(with_values<float>({1})));
  EXPECT_TRUE((ValueCode{1, 1}).suits(with_values<double>({})));
}

TEST(NarrowValues, OddNumbersStayWhatTheyAre) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(code_of<double>({1, -0.0}).bytes, 4U) << "a negative zero is no whole number";
  EXPECT_EQ(code_of<double>({1, inf}).bytes, 4U);
  EXPECT_EQ(code_of<double>({1, 1e300}), (ValueCode{8, 1}));
  EXPECT_EQ(code_of<double>({5e-324}), (ValueCode{8, 1}));
  EXPECT_EQ(code_of<double>({1e-40}), (ValueCode{8, 1})) << "kernels may take subnormal floats for zeros";
  EXPECT_EQ(code_of<float>({1, std::numeric_limits<float>::infinity()}).bytes, 4U);
  EXPECT_GE(code_of<double>({1, std::nan("")}).bytes, 4U);
}

/// All values through codes and back.
template <class Value>
void expect_back(const std::vector<Value>& values, std::uint32_t bytes) {
  SCOPED_TRACE(testing::Message() << bytes << " bytes, of " << sizeof(Value));
  const ValueCode code = code_of(values);
  ASSERT_EQ(code.bytes, bytes);
  NarrowValues narrow({}, code, values.size(), "a test");
  const auto value_at = [&](std::size_t i) { return values[i]; };
  if (bytes == 8) {
    std::vector<std::uint64_t> codes(values.size());
    encode_values(code, values.size(), value_at, codes.data());
    narrow.put(0, values.size(), codes.data());
  } else {
    std::vector<std::uint32_t> codes(values.size());
    encode_values(code, values.size(), value_at, codes.data());
    narrow.put(0, values.size(), codes.data());
  }
  EXPECT_EQ(static_cast<double>(narrow.bytes()),
            NarrowValues::predicted_bytes(code, static_cast<double>(values.size())));
  std::vector<Value> room(values.size());
  const Value* found = narrow.get(0, values.size(), room.data());
  EXPECT_EQ(std::memcmp(values.data(), found, values.size() * sizeof(Value)), 0);
}

TEST(NarrowValues, GiveTheValuesBack) {
  const auto values = [](double from, double step, double divisor) {
    std::vector<double> all(1003);
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = (from + step * static_cast<double>(k)) / divisor;
    return all;
  };
  const auto floats = [&](const std::vector<double>& all) { return std::vector<float>(all.begin(), all.end()); };
  std::vector<double> small = values(0, 1, 1);
  for (double& v : small) v = std::fmod(v, 255) - 127;
  expect_back(small, 1);
  expect_back(floats(small), 1);
  expect_back(values(-30000, 60, 1), 2);
  expect_back(floats(values(-30000, 60, 1)), 2);
  expect_back(values(-8388608, 16740, 1), 3);
  expect_back(values(-8388607, 16733, 1e4), 3);
  expect_back(floats(values(-8388607, 16733, 1)), 3);
  expect_back(floats(values(-800000, 1601, 1e4)), 3);
  expect_back(values(0x1p-12, 0.25, 1), 4);
  expect_back(floats(values(0x1p-12, 0.25, 1)), 4);
  expect_back(values(1, 1, 3), 8);
}

}  // namespace
}  // namespace polyad
