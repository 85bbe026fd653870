// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <polyad/polyad.hpp>

namespace polyad {
namespace {

bool registered(std::string_view name) { return std::ranges::count(formats(), name, &FormatEntry::name) == 1; }

CooTensor with_fibres(const std::vector<std::uint64_t>& dims, std::uint64_t nnz) {
  GenerateOptions options;
  options.dims = dims;
  options.nnz = nnz;
  return generate(options);
}

TEST(Planner, TakesWhatIsRegisteredAndFits) {
  const CooTensor dense = with_fibres({20, 30, 40}, 12000);
  const CooTensor sparse = with_fibres({2000, 3000, 4000}, 12000);
  EXPECT_EQ(choose_format(dense, nullptr, 16).format, registered("csf-all") ? "csf-all"
                                                      : registered("alto")  ? "alto"
                                                                            : "coo");
  EXPECT_EQ(choose_format(sparse, nullptr, 16).format, registered("alto") ? "alto" : "coo");
  const TensorStatistics s = statistics(dense);
  EXPECT_EQ(choose_format(dense, &s, 16).why, choose_format(dense, nullptr, 16).why);
  Context context;
  context.memory = std::make_shared<MemoryBudget>(1000);
  EXPECT_EQ(choose_format(dense, &s, 16, context).format, "coo");
}

TEST(Planner, CsfIsCsfAll) {
  if (registered("csf-all")) {
    EXPECT_EQ(format_named("csf").name, "csf-all");
  } else {
    EXPECT_THROW((void)format_named("csf"), Error);
  }
}

TEST(Machine, StreamRespectsTheLimit) {
  Context context;
  context.threads = 2;
  context.memory = std::make_shared<MemoryBudget>(1'000'000);
  EXPECT_THROW((void)stream_triad_gbs(context), Error);
  EXPECT_EQ(context.memory->used(), 0U);
  context.memory = std::make_shared<MemoryBudget>();
  EXPECT_GT(stream_triad_gbs(context), 0.1);
  EXPECT_GE(context.memory->peak(), 3 * last_cache_bytes());
}

}  // namespace
}  // namespace polyad
