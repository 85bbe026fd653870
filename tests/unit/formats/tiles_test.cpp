// SPDX-License-Identifier: MIT
#include "formats/tiles/tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <polyad/polyad.hpp>

#include "matrix/cases.hpp"

namespace polyad {
namespace {

/// Bytes of tiles small enough that tensors of tests are cut.
constexpr std::uint64_t small_tiles = 16384;

struct Shape {
  const char* name;
  std::vector<std::uint64_t> dims;
  std::uint64_t nnz;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {"a cube", {300, 400, 500}, 60000},
      {"a band that is not filled", {129, 1000, 70}, 30000},
      {"one mode that is not cut", {200, 10, 2000}, 40000},
      {"four modes", {100, 300, 20, 500}, 50000},
      {"five modes", {30, 300, 5, 400, 8}, 50000},
      {"a matrix", {100, 3000}, 60000},
      {"runs of more than 255", {20, 300, 700}, 100000},
  };
  return all;
}

/// Values of k: whole numbers that any order of addition sums exactly.
template <class Value>
void set_values(CooTensor& x, const Value& value) {
  visit(x, [&]<class Index, class Stored>(const CooView<Index, Stored>& v) {
    for (std::uint64_t k = 0; k < x.nnz(); ++k) v.values[k] = static_cast<Stored>(value(k));
  });
}

CooTensor whole_numbers(const Shape& shape, Precision precision, bool duplicates = false) {
  CooTensor x = cases::make({"", shape.dims, shape.nnz, nullptr, duplicates}, precision);
  set_values(x, [](std::uint64_t k) { return static_cast<double>(k % 5) - 2; });
  return x;
}

TEST(Tiles, AreChosenForTheCache) {
  const CooTensor x = whole_numbers({"", {300, 4000, 5000}, 200000}, Precision::f32);
  const TensorSample sample(x, {});
  FormatOptions options;
  options.tile_bytes = 300 << 10U;
  const Tiling t = Tiling::choose(sample, 0, options);  // rows of 64 bytes: 9,000 of them do not fit, 4,800 do
  EXPECT_EQ(t.counts, (std::vector<std::uint64_t>{1, 2, 2}));
  EXPECT_EQ(t.lengths, (std::vector<std::uint64_t>{0, 2048, 2560}));  // whole granules
  EXPECT_EQ(t.tiles, 4U);
  EXPECT_EQ(t.band_rows(), 4U);
  EXPECT_EQ(t.bands, 75U);
  EXPECT_EQ(t.first_row(2, 1), 2048U);
  EXPECT_EQ(t.first_row(2, 2), 0U);
  EXPECT_EQ(t.first_row(3, 2), 2560U);
  EXPECT_EQ(t.rows_of_walk(), 4096 + 2 * 5120);
  options.rank = 4;  // rows of 16 bytes
  EXPECT_EQ(Tiling::choose(sample, 0, options).tiles, 1U);
  options = {};
  options.tile_bytes = 40000;  // 625 rows: as far as rows of the output keep their nonzeros in a tile
  const Tiling most = Tiling::choose(sample, 0, options);
  EXPECT_GT(most.tiles, 60U);
  EXPECT_LE(static_cast<double>(most.places()) * Tiling::fewest_in_row, 200000);
  EXPECT_EQ(Tiling::choose(sample, 2, options).tiles, 5U);  // 79 bands of 64 rows
  options.tile_bytes = 64;                                  // tiles would still be many times as large
  EXPECT_EQ(Tiling::choose(sample, 0, options).tiles, 1U);
}

TEST(Tiles, FarTilesWhereNearOnesWouldHaveShortRuns) {
  Context context;
  context.deterministic = true;  // 1 MB of second-level cache, whatever the machine has
  const auto bytes = [&](const Shape& shape, Precision precision, std::uint64_t rank) {
    const CooTensor x = whole_numbers(shape, precision);
    const Tiling t = Tiling::choose(TensorSample(x, context), 0, {.rank = rank});
    EXPECT_LE(static_cast<double>(t.places()) * (t.tiles > 1 ? Tiling::fewest_in_row : 0), shape.nnz);
    return t.tiles == 1 ? 0.0 : t.input_rows() * static_cast<double>(rank * bytes_of(precision));
  };
  const Shape many = {"", {300, 12000, 20000}, 400000};
  const double near = bytes(many, Precision::f32, 16);  // 2 MB in tiles of at most 0.6
  EXPECT_GT(near, 0.3e6);
  EXPECT_LE(near, 0.6 * (1U << 20U));
  const Shape few = {"", {300, 40000, 60000}, 100000};
  const double far = bytes(few, Precision::f64, 16);  // 12.8 MB
  EXPECT_GT(far, 1.5e6);
  EXPECT_LE(far, 3e6);
  EXPECT_EQ(bytes({"", {300, 30000, 40000}, 20000}, Precision::f32, 16), 0);  // 4.5 MB are near enough
  const double wide = bytes(few, Precision::f64, 64);                         // 51 MB: as far as runs allow
  EXPECT_GT(wide, 3e6);
  EXPECT_LT(wide, 25e6);
  EXPECT_EQ(bytes({"", {300, 40000, 60000}, 7000}, Precision::f64, 16), 0);  // runs would be too short at once
}

TEST(Tiles, ModesAsLongAsTheyCanBe) {
  CooTensor x = whole_numbers({"", {200, 300, 400}, 60000}, Precision::f32);
  for (const std::uint64_t longest : {std::uint64_t{1} << 34U, ~std::uint64_t{0}}) {
    x.dims[1] = longest;
    for (int mode = 0; mode < 3; ++mode) EXPECT_EQ(Tiling::choose(TensorSample(x, {}), mode, {}).tiles, 1U);
  }
  x.dims[1] = 70000;  // offsets of 16 bits
  const Tiling t = Tiling::choose(TensorSample(x, {}), 0, {.rank = 1, .tile_bytes = 1000000});
  EXPECT_EQ(t.counts, (std::vector<std::uint64_t>{1, 2, 1}));
}

TEST(Tiles, NeighboursWithManyNonzerosAreNotOneThreads) {
  CooTensor x = whole_numbers({"", {30000, 400, 500}, 200000}, Precision::f32);
  auto& rows = std::get<Buffer<std::uint32_t>>(x.indices[0]);
  const auto bands = [&] { return Tiling::choose(TensorSample(x, {}), 0, {.tile_bytes = 30000}).band_bits; };
  EXPECT_EQ(bands(), 8);
  for (std::uint64_t k = 0; k < x.nnz(); k += 3) rows[k] = static_cast<std::uint32_t>(k % 256);
  EXPECT_EQ(bands(), 6);  // a third of the nonzeros in 256 rows
}

TEST(Tiles, ARowWithManyNonzerosIsNotOneThreads) {
  CooTensor x = whole_numbers({"", {300, 400, 500}, 60000}, Precision::f32);
  auto& rows = std::get<Buffer<std::uint32_t>>(x.indices[0]);
  for (std::uint64_t k = 0; k < x.nnz(); k += 5) rows[k] = 7;
  EXPECT_TRUE(Tiles::build(x, {.mode = 0, .tile_bytes = small_tiles}, {}).plain);
  EXPECT_FALSE(Tiles::build(x, {.mode = 1, .tile_bytes = small_tiles}, {}).plain);
}

TEST(Tiles, GiveTheCoordinatesBack) {
  for (const Shape& shape : shapes())
    for (const Precision precision : {Precision::f32, Precision::f64})
      for (const int kind : {0, 1, 2}) {  // whole numbers, decimals, neither
#ifdef POLYAD_SANITIZED                   // sorting what is compared takes most of the time there
        if ((precision == Precision::f32) != (kind == 0) || (&shape - shapes().data()) % 3 != kind) continue;
#endif
        CooTensor x = whole_numbers(shape, precision);
        set_values(x, [&](std::uint64_t k) {
          const auto v = static_cast<double>(k % 977) - 400;
          return kind == 0 ? v : v / (kind == 1 ? 100 : 3);
        });
        std::vector<int> order(x.dims.size());
        std::iota(order.begin(), order.end(), 0);
        Context context;
        context.threads = kind + 1;
        bool cut = false;
        CooTensor there = clone(x);
        sort_nonzeros(there, order);
        for (int mode = 0; mode < x.order(); ++mode) {
          SCOPED_TRACE(testing::Message() << shape.name << ", mode " << mode + 1 << ", values " << kind);
          const Tensor t = build(x, "tiles", {.mode = mode, .tile_bytes = small_tiles}, context);
          const Tiles& tiles = *get_if<Tiles>(t.body(0));
          cut |= !tiles.plain;
          EXPECT_EQ(tiles.stored_values()->code().bytes, kind < 2 ? 2U : bytes_of(precision));
          CooTensor back = t.to_coo(context);
          sort_nonzeros(back, order);
          EXPECT_TRUE(same_nonzeros(there, back));
        }
        EXPECT_TRUE(cut) << shape.name;
      }
}

TEST(Tiles, CountsAreAsNarrowAsTheyFit) {
  const auto width = [](const CooTensor& x) {
    return Tiles::build(x, {.mode = 0, .tile_bytes = 24576}, {}).counts.index();
  };
  EXPECT_EQ(width(whole_numbers({"", {100, 200, 500}, 60000}, Precision::f32)), 0U);
  EXPECT_EQ(width(whole_numbers({"", {20, 200, 500}, 100000}, Precision::f32)), 1U);
#ifndef POLYAD_SANITIZED
  EXPECT_EQ(width(whole_numbers({"", {12, 200, 500}, 4000000}, Precision::f32, true)), 2U);
#endif
}

/// MTTKRPs of whole numbers, exact in any order, by this kernel and by the one for coordinates.
template <class T>
void expect_same_as_coo(const Shape& shape, std::uint64_t rank, double divisor = 1) {
  CooTensor x = whole_numbers(shape, sizeof(T) == 4 ? Precision::f32 : Precision::f64);
  if (divisor != 1) set_values(x, [&](std::uint64_t k) { return (static_cast<double>(k % 5) - 2) / divisor; });
  std::vector<FactorMatrix<T>> factors;
  for (std::size_t m = 0; m < x.dims.size(); ++m) {
    factors.emplace_back(Context{}, x.dims[m], rank);
    for (std::uint64_t i = 0; i < x.dims[m]; ++i)
      for (std::uint64_t r = 0; r < rank; ++r) factors[m](i, r) = static_cast<T>((i * 31 + r * 17 + m) % 3) - 1;
  }
  Tensor coo = build(x, "coo");
  for (const int threads : {1, 3}) {
    Context context;
    context.threads = threads;
    Tensor tiles = build(x, "tiles", {.rank = rank, .tile_bytes = small_tiles / 8 * rank}, context);
    Workspace workspace;
    for (int mode = 0; mode < x.order(); ++mode) {
      FactorMatrix<T> found(context, x.dims[static_cast<std::size_t>(mode)], rank);
      FactorMatrix<T> wanted(context, found.rows(), rank);
      std::fill_n(found.data(), found.rows() * found.stride(), T{9});  // what was there must not matter
      (void)mttkrp<T>(tiles, factors, mode, found, workspace, context, "mttkrp/tiles/bands");
      (void)mttkrp<T>(coo, factors, mode, wanted, workspace, {});
      ASSERT_TRUE(std::equal(found.data(), found.data() + found.rows() * found.stride(), wanted.data()))
          << shape.name << ", rank " << rank << ", mode " << mode + 1 << ", " << threads << " threads";
    }
  }
}

TEST(Tiles, GiveTheMttkrp) {
  for (const Shape& shape : shapes()) {
#ifdef POLYAD_SANITIZED
    const bool even = (&shape - shapes().data()) % 2 == 0;
    if (even) expect_same_as_coo<float>(shape, 16);
    if (!even) expect_same_as_coo<double>(shape, 20);
#else
    expect_same_as_coo<float>(shape, 16);
    expect_same_as_coo<double>(shape, 20);
#endif
  }
  for (const double divisor : {2.0, 0x1p20}) {  // codes of a byte, and floats
    expect_same_as_coo<float>(shapes()[6], 16, divisor);
    expect_same_as_coo<double>(shapes()[6], 16, divisor);
  }
  expect_same_as_coo<float>(shapes()[0], 3);
  expect_same_as_coo<float>(shapes()[0], 64);
  expect_same_as_coo<double>(shapes()[3], 33);
}

/// Whole numbers of so many bytes, of both signs, summed where their sums are whole numbers as well.
template <class T>
void expect_same_with_codes_of(std::uint32_t bytes) {
  const double most = bytes == 1 ? 127 : bytes == 2 ? 32767 : 1 << 20;  // sums of a row stay below 2^24
  CooTensor x =
      cases::make({"", {70000, 300, 40}, 50001, nullptr, true}, sizeof(T) == 4 ? Precision::f32 : Precision::f64);
  set_values(x, [&](std::uint64_t k) { return k % 3 == 0 ? -most : k % 3 == 1 ? most - 1 : 3; });
  std::vector<FactorMatrix<T>> factors;
  for (const std::uint64_t d : x.dims) {
    factors.emplace_back(Context{}, d, 16);
    for (std::uint64_t i = 0; i < d; ++i)
      for (std::uint64_t r = 0; r < 16; ++r) factors.back()(i, r) = static_cast<T>((i + r) % 2);
  }
  Tensor coo = build(x, "coo");
  Workspace workspace;
  FactorMatrix<T> wanted(Context{}, x.dims[0], 16);
  (void)mttkrp<T>(coo, factors, 0, wanted, workspace, {});
  for (const char* format : {"tiles", "copies"}) {
    Tensor built = build(x, format, {.mode = 0, .tile_bytes = 4000}, {});
    FactorMatrix<T> found(Context{}, x.dims[0], 16);
    (void)mttkrp<T>(built, factors, 0, found, workspace, {});
    EXPECT_TRUE(std::equal(found.data(), found.data() + found.rows() * found.stride(), wanted.data()))
        << format << ", " << bytes << " bytes of " << sizeof(T);
    const auto* copy = get_if<SortedCopy>(built.body(0));
    EXPECT_EQ((copy != nullptr ? &copy->values : get_if<Tiles>(built.body(0))->stored_values())->code().bytes, bytes);
  }
}

TEST(Tiles, CodesOfEveryWidthGiveTheMttkrp) {
  for (const std::uint32_t bytes : {1U, 2U, 3U}) {
    expect_same_with_codes_of<float>(bytes);
    expect_same_with_codes_of<double>(bytes);
  }
}

TEST(Tiles, DecimalsAreMultipliedBack) {
  // Whole numbers stand for hundredths; the sums are those of the values, to rounding.
  CooTensor x = whole_numbers(shapes()[0], Precision::f64);
  set_values(x, [](std::uint64_t k) { return static_cast<double>(k % 977) / 100; });
  std::vector<FactorMatrix<double>> factors;
  for (const std::uint64_t d : x.dims) {
    factors.emplace_back(Context{}, d, 16);
    for (std::uint64_t i = 0; i < d; ++i)
      for (std::uint64_t r = 0; r < 16; ++r) factors.back()(i, r) = static_cast<double>((i + r) % 7) / 7;
  }
  Workspace workspace;
  FactorMatrix<double> wanted(Context{}, x.dims[1], 16);
  Tensor coo = build(x, "coo");
  (void)mttkrp<double>(coo, factors, 1, wanted, workspace, {});
  for (const char* format : {"tiles", "copies"}) {
    FactorMatrix<double> first(Context{}, x.dims[1], 16);
    for (const int threads : {1, 2, 7}) {
      Context context;
      context.threads = threads;
      Tensor built = build(x, format, {.mode = 1, .tile_bytes = small_tiles}, context);
      FactorMatrix<double> found(Context{}, x.dims[1], 16);
      (void)mttkrp<double>(built, factors, 1, found, workspace, context);
      for (std::uint64_t i = 0; i < x.dims[1]; ++i)
        for (std::uint64_t r = 0; r < 16; ++r) ASSERT_NEAR(found(i, r), wanted(i, r), 1e-12 * wanted(i, r));
      if (threads == 1)
        first = std::move(found);
      else  // the same bits for any number of threads
        ASSERT_TRUE(std::equal(found.data(), found.data() + found.rows() * found.stride(), first.data())) << format;
    }
  }
}

}  // namespace
}  // namespace polyad
