// SPDX-License-Identifier: MIT
#include "backends/cpu/tiny_numbers.hpp"

#include <gtest/gtest.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include <limits>
#include <thread>
#include <vector>

#include "backends/cpu/threads.hpp"

namespace polyad {
namespace {

/// A product that is subnormal, computed when it is asked for.
template <class T>
T subnormal_product() {
  volatile T smallest = std::numeric_limits<T>::min();
  volatile T half = T{0.5};
  return smallest * half;
}

#if defined(__SSE2__) || defined(__aarch64__)

TEST(TinyNumbers, AreZeroWhileAskedForAndNumbersAgainAfterwards) {
  EXPECT_GT(subnormal_product<float>(), 0);
  {
    const cpu::TinyNumbersAsZero tiny(true);
    EXPECT_TRUE(cpu::TinyNumbersAsZero::active());
    EXPECT_EQ(subnormal_product<float>(), 0);
    EXPECT_EQ(subnormal_product<double>(), 0);
    {
      const cpu::TinyNumbersAsZero inner(true);
      const cpu::TinyNumbersAsZero unchanged(false);
      EXPECT_TRUE(cpu::TinyNumbersAsZero::active());
    }
    EXPECT_TRUE(cpu::TinyNumbersAsZero::active());
  }
  EXPECT_FALSE(cpu::TinyNumbersAsZero::active());
  EXPECT_GT(subnormal_product<float>(), 0);
  EXPECT_GT(subnormal_product<double>(), 0);
}

TEST(TinyNumbers, TeamsTreatThemAsTheThreadThatStartsThem) {
  // A thread of its own: its team is started anew, and first with zeros.
  std::thread([] {
    for (const bool as_zero : {true, false, true, false}) {
      const cpu::TinyNumbersAsZero tiny(as_zero);
      std::vector<float> products(3, -1);
      cpu::run_team(3, [&](int rank, int) { products[static_cast<std::size_t>(rank)] = subnormal_product<float>(); });
      for (const float p : products) EXPECT_EQ(p == 0, as_zero);
      EXPECT_EQ(cpu::TinyNumbersAsZero::active(), as_zero);
    }
  }).join();
}

#endif

#if defined(__SSE2__)

TEST(TinyNumbers, HalfOfTheModeIsGivenBackAsItWas) {
  std::thread([] {
    constexpr unsigned results_only = 0x8000;
    _mm_setcsr(_mm_getcsr() | results_only);
    { const cpu::TinyNumbersAsZero tiny(true); }
    EXPECT_EQ(_mm_getcsr() & 0x8040U, results_only);
    unsigned in_team = 0;
    cpu::run_team(2, [&](int rank, int) {
      if (rank == 1) in_team = _mm_getcsr();
    });
    EXPECT_EQ(in_team & 0x8040U, results_only);
  }).join();
}

#endif

}  // namespace
}  // namespace polyad
