// SPDX-License-Identifier: MIT
#include "core/bucket_batches.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <polyad/polyad.hpp>
#include <random>
#include <vector>

namespace {

using namespace polyad;

constexpr std::size_t batch = 16;

/// Twelve bytes, as a record of the sort.
struct Element {
  std::uint32_t bucket = 0;
  std::uint32_t number = 0;
  float value = 0;
  bool operator==(const Element&) const = default;
};

/// The elements of several shares in one array, as threads of a sort write them: of each bucket first those of the
/// first share. \param written every place is written as often as it counts
std::vector<Element> scattered(const std::vector<Element>& all, std::size_t shares, std::size_t buckets,
                               std::vector<int>& written) {
  const auto begin_of = [&](std::size_t share) { return all.size() * share / shares; };
  std::vector<std::vector<std::uint64_t>> next(shares, std::vector<std::uint64_t>(buckets, 0));
  for (std::size_t s = 0; s < shares; ++s)
    for (std::size_t i = begin_of(s); i < begin_of(s + 1); ++i) ++next[s][all[i].bucket];
  std::uint64_t sum = 0;
  for (std::size_t b = 0; b < buckets; ++b)
    for (std::size_t s = 0; s < shares; ++s) sum += std::exchange(next[s][b], sum);
  Buffer<Element> to(Context{}, all.size(), "a test");
  written.assign(all.size(), 0);
  for (std::size_t s = 0; s < shares; ++s) {
    Buffer<Element> room(Context{}, buckets * batch, "a test");
    const auto write = [&](const Element* elements, std::uint64_t begin, std::uint64_t end) {
      ASSERT_LE(end - begin, batch);
      for (std::uint64_t at = begin; at < end; ++at) ++written[at];
      if (end - begin == batch) {
        EXPECT_EQ(begin % batch, 0U);
        stream_copy(elements, batch, to.data() + begin);
      } else {
        std::copy_n(elements, end - begin, to.data() + begin);
      }
    };
    BucketBatches<Element, batch, decltype(write)> batches(room.data(), next[s], write);
    for (std::size_t i = begin_of(s); i < begin_of(s + 1); ++i)
      batches.put(all[i].bucket, [&](Element& e) { e = all[i]; });
    batches.finish();
  }
  return {to.begin(), to.end()};
}

TEST(BucketBatches, IsAStablePartition) {
  std::mt19937_64 random(1);
  for (const std::size_t count : {0U, 1U, 15U, 16U, 17U, 1000U, 20000U})
    for (const std::size_t buckets : {1U, 3U, 100U})
      for (const std::size_t shares : {1U, 2U, 5U}) {
        std::vector<Element> all(count);
        for (std::size_t i = 0; i < count; ++i)
          all[i] = {static_cast<std::uint32_t>(random() % buckets), static_cast<std::uint32_t>(i), 0.5F};
        std::vector<int> written;
        const std::vector<Element> found = scattered(all, shares, buckets, written);
        EXPECT_TRUE(std::ranges::all_of(written, [](int times) { return times == 1; }));
        std::ranges::stable_sort(all, {}, &Element::bucket);
        EXPECT_EQ(found, all) << count << " elements, " << buckets << " buckets, " << shares << " shares";
      }
}

}  // namespace
