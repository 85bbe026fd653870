// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "io/dialect.hpp"
#include "io/npy.hpp"
#include "polyad/error.hpp"

namespace polyad::io {
namespace {

// sparse.save_npz (PyData sparse 0.13, NumPy 1.24) of the tensor that small() makes.
constexpr std::string_view by_pydata =
    "504b030414000000080000002100d34c42bc500000009800000008001400646174612e6e7079010010009800000000000000500000000000"
    "00009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a1aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a4"
    "02f91ac63a9a3a0ab50a14002e0630f8610fa1190e40a80bf600504b0304140000000800000021001ca0e6724d0000009800000009001400"
    "73686170652e6e70790100100098000000000000004d000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a1aea3"
    "a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91ac63a9a3a0ab50a14002e2606086086d22c501a00504b03041400"
    "0000080000002100a1308a8145000000880000000e00140066696c6c5f76616c75652e6e7079010010008800000000000000450000000000"
    "00009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a1aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a4"
    "02f91a9a3a0ab50a14012e06280000504b03041400000008000000210015f9f10c56000000c80000000a001400636f6f7264732e6e707901"
    "001000c80000000000000056000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a1aea3a09e965f54529498179f"
    "5f94920a12774bcc294e058a17672416a402f91ac63a0ac69a3a0ab50a64032e06286044a3991850018ccf8c260e530f00504b0102140314"
    "000000080000002100d34c42bc5000000098000000080000000000000000000000800100000000646174612e6e7079504b01021403140000"
    "000800000021001ca0e6724d0000009800000009000000000000000000000080018a00000073686170652e6e7079504b0102140314000000"
    "080000002100a1308a8145000000880000000e000000000000000000000080011201000066696c6c5f76616c75652e6e7079504b01021403"
    "1400000008000000210015f9f10c56000000c80000000a0000000000000000000000800197010000636f6f7264732e6e7079504b05060000"
    "000004000400e1000000290200000000";

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t k = 0; k + 1 < hex.size(); k += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(k, 2)), nullptr, 16)));
  }
  return bytes;
}

template <class T>
std::string raw(std::initializer_list<T> numbers) {
  std::string s;
  for (const T n : numbers) s.append(reinterpret_cast<const char*>(&n), sizeof n);
  return s;
}

/// How the test's own archives are made.
struct ZipStyle {
  bool deflate = false;
  bool zip64 = false;  // every number in the extra field
  std::string comment = {};
};

using Files = std::vector<std::pair<std::string, std::string>>;

std::string zip_of(const Files& files, const ZipStyle& style = {}) {
  std::string archive;
  std::string directory;
  for (const auto& [name, bytes] : files) {
    std::string packed = bytes;
    if (style.deflate) {
      z_stream z = {};
      EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
      packed.resize(deflateBound(&z, bytes.size()));
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      z.avail_in = static_cast<uInt>(bytes.size());
      z.next_out = reinterpret_cast<Bytef*>(packed.data());
      z.avail_out = static_cast<uInt>(packed.size());
      EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
      packed.resize(packed.size() - z.avail_out);
      deflateEnd(&z);
    }
    const auto crc = static_cast<std::uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
    const std::uint32_t elsewhere = 0xFFFFFFFFU;
    const auto narrow = [&](std::uint64_t n) { return style.zip64 ? elsewhere : static_cast<std::uint32_t>(n); };
    const auto name_bytes = static_cast<std::uint16_t>(name.size());
    const std::uint16_t method = style.deflate ? 8 : 0;
    const std::string extra =
        style.zip64 ? raw<std::uint16_t>({1, 24}) + raw<std::uint64_t>({bytes.size(), packed.size(), archive.size()})
                    : "";
    directory += raw<std::uint32_t>({0x02014b50}) + raw<std::uint16_t>({20, 20, 0, method, 0, 0x21}) +
                 raw({crc, narrow(packed.size()), narrow(bytes.size())}) +
                 raw<std::uint16_t>({name_bytes, static_cast<std::uint16_t>(extra.size()), 0, 0, 0, 0, 0}) +
                 raw({narrow(archive.size())}) + name + extra;
    archive += raw<std::uint32_t>({0x04034b50}) + raw<std::uint16_t>({20, 0, method, 0, 0x21}) +
               raw({crc, static_cast<std::uint32_t>(packed.size()), static_cast<std::uint32_t>(bytes.size())}) +
               raw<std::uint16_t>({name_bytes, 0}) + name + packed;
  }
  const auto count = static_cast<std::uint16_t>(files.size());
  const std::uint64_t offset = archive.size();
  archive += directory;
  if (style.zip64) {
    archive += raw<std::uint32_t>({0x06064b50}) + raw<std::uint64_t>({44}) + raw<std::uint16_t>({45, 45}) +
               raw<std::uint64_t>({0, count, count, directory.size(), offset});
    archive +=
        raw<std::uint32_t>({0x07064b50, 0}) + raw<std::uint64_t>({offset + directory.size()}) + raw<std::uint32_t>({1});
  }
  const auto end = [&](std::uint64_t n) { return style.zip64 ? 0xFFFFFFFFU : static_cast<std::uint32_t>(n); };
  archive += raw<std::uint32_t>({0x06054b50}) + raw<std::uint16_t>({0, 0, count, count}) +
             raw({end(directory.size()), end(offset)}) +
             raw<std::uint16_t>({static_cast<std::uint16_t>(style.comment.size())}) + style.comment;
  return archive;
}

/// An array with any header.
std::string npy(const std::string& dict, const std::string& numbers, char version = 1) {
  std::string s = "\x93NUMPY";
  s += version;
  s += '\0';
  s += version == 1 ? raw({static_cast<std::uint16_t>(dict.size())}) : raw({static_cast<std::uint32_t>(dict.size())});
  return s + dict + numbers;
}

std::string dict_of(const std::string& descr, const std::string& shape, bool fortran = false) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", descr, fortran ? "True" : "False",
                     shape);
}

/// The arrays of small(); each test spoils one of them.
struct Arrays {
  std::string coords = npy(dict_of("<i8", "(3, 3)"), raw<std::int64_t>({0, 1, 1, 2, 0, 2, 3, 0, 1}));
  std::string data = npy(dict_of("<f8", "(3,)"), raw({1.5, -2.0, 0.25}));
  std::string shape = npy(dict_of("<i8", "(3,)"), raw<std::int64_t>({2, 3, 4}));
  std::string fill = npy(dict_of("<f8", "()"), raw({0.0}));

  [[nodiscard]] std::string zip(const ZipStyle& style = {}) const {
    return zip_of({{"data.npy", data}, {"shape.npy", shape}, {"fill_value.npy", fill}, {"coords.npy", coords}}, style);
  }
};

CooTensor tensor(std::vector<std::uint64_t> dims, const std::vector<std::vector<std::uint64_t>>& indices,
                 const std::vector<double>& values, Precision precision = Precision::f64) {
  CooTensor x = make_coo(std::move(dims), values.size(), precision, {});
  visit(x, [&]<class Index, class Value>(const CooView<Index, Value>& v) {
    for (std::size_t k = 0; k < values.size(); ++k) {
      for (std::size_t m = 0; m < indices.size(); ++m) v.indices[m][k] = static_cast<Index>(indices[m][k]);
      v.values[k] = static_cast<Value>(values[k]);
    }
  });
  return x;
}

CooTensor small(Precision precision = Precision::f64) {
  return tensor({2, 3, 4}, {{0, 1, 1}, {2, 0, 2}, {3, 0, 1}}, {1.5, -2, 0.25}, precision);
}

void expect_same(const CooTensor& a, const CooTensor& b) {
  ASSERT_EQ(a.dims, b.dims);
  ASSERT_EQ(a.nnz(), b.nnz());
  ASSERT_EQ(a.precision(), b.precision());
  ASSERT_EQ(a.index_width(), b.index_width());
  const auto same = [](const auto& p, const auto& q) {
    return std::visit(
        [](const auto& l, const auto& r) { return l.empty() || std::memcmp(l.data(), r.data(), l.bytes()) == 0; }, p,
        q);
  };
  for (std::size_t m = 0; m < a.dims.size(); ++m) EXPECT_TRUE(same(a.indices[m], b.indices[m])) << "mode " << m;
  EXPECT_TRUE(same(a.values, b.values));
}

class Npz : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("polyad_npz_{}", getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  [[nodiscard]] CooTensor read(const std::string& name, const ReadOptions& options = {}, const Context& context = {}) {
    InputStream in(path(name));
    report_ = {};
    return npz_dialect.read(in, options, context, report_);
  }
  [[nodiscard]] CooTensor read_bytes(const std::string& bytes, const std::string& name = "x.npz",
                                     const ReadOptions& options = {}, const Context& context = {}) {
    OutputFile out(path(name), compression_of(name));
    out.write(bytes);
    out.commit();
    return read(name, options, context);
  }
  void write(const CooTensor& x, const std::string& name) const {
    OutputFile out(path(name), compression_of(name));
    npz_dialect.write(x, out, {}, {});
    out.commit();
  }

  /// The message of the Error that reading gives.
  [[nodiscard]] std::string refusal(const std::string& bytes, const ReadOptions& options = {}) {
    Context context;
    context.memory = std::make_shared<MemoryBudget>(std::uint64_t{1} << 26U);
    try {
      (void)read_bytes(bytes, "x.npz", options, context);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input) << e.what();
      EXPECT_LT(context.memory->peak(), std::uint64_t{1} << 23U) << e.what();
      return e.what();
    }
    return "(no Error)";
  }

  std::filesystem::path folder_;
  ReadReport report_;
};

TEST_F(Npz, ReadsWhatPydataSparseWrites) {
  const std::string bytes = from_hex(by_pydata);
  EXPECT_TRUE(npz_dialect.detect(bytes, ""));
  EXPECT_FALSE(npz_dialect.detect("PK is a text", ".npz"));
  for (const std::string name : {"x.npz", "x.npz.gz", "x.npz.zst"}) expect_same(read_bytes(bytes, name), small());
  EXPECT_EQ(report_.index_base, 0);
}

TEST_F(Npz, ReadsEveryWayToMakeTheArchive) {
  for (const bool deflate : {false, true}) {
    for (const bool zip64 : {false, true}) {
      SCOPED_TRACE(fmt::format("deflate {} zip64 {}", deflate, zip64));
      expect_same(read_bytes(Arrays().zip({deflate, zip64, ""})), small());
      expect_same(read_bytes(Arrays().zip({deflate, zip64, "PK\x05\x06 a comment"})), small());
    }
  }
}

TEST_F(Npz, RoundTripIsExact) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  const double most = std::numeric_limits<double>::max();
  std::vector<CooTensor> cases;
  cases.push_back(tensor({6}, {{0, 5, 2, 2, 1}}, {1.0 / 3, -0.0, tiny, -most, 0}));
  cases.push_back(tensor({7, 9}, {{}, {}}, {}));
  cases.push_back(tensor({5'000'000'000U, 2}, {{4'999'999'999U, 0}, {0, 1}}, {2, 3}));
  cases.push_back(
      tensor(std::vector<std::uint64_t>(32, 3), std::vector<std::vector<std::uint64_t>>(32, {2, 0}), {1, 2}));
  const std::uint64_t many = 300'000;  // several blocks
  std::vector<std::vector<std::uint64_t>> indices(2, std::vector<std::uint64_t>(many));
  std::vector<double> values(many);
  for (std::uint64_t k = 0; k < many; ++k) {
    indices[0][k] = k * 7919 % 100'003;
    indices[1][k] = k % 17;
    values[k] = 1.0 / static_cast<double>(k + 1);
  }
  cases.push_back(tensor({100'003, 17}, indices, values));
  for (const CooTensor& x : cases) {
    for (const std::string name : {"a.npz", "a.npz.zst"}) {
      SCOPED_TRACE(fmt::format("{} order {} nnz {}", name, x.order(), x.nnz()));
      write(x, name);
      expect_same(read(name), x);
    }
  }
  const CooTensor f = tensor({2, 2}, {{0, 1}, {1, 1}}, {1.0F / 3, 3.4e38F}, Precision::f32);
  write(f, "f.npz");
  ReadOptions options;
  options.precision = Precision::f32;
  expect_same(read("f.npz", options), f);
}

TEST_F(Npz, ReadsEveryTypeAndByteOrder) {
  const auto swapped = [](std::string numbers, std::size_t width) {
    for (std::size_t k = 0; k < numbers.size(); k += width) {
      std::reverse(numbers.begin() + static_cast<std::ptrdiff_t>(k),
                   numbers.begin() + static_cast<std::ptrdiff_t>(k + width));
    }
    return numbers;
  };
  const auto column = [](const std::string& type) {
    const auto make = [](auto zero) { return raw<decltype(zero)>({0, 1, 1, 2, 0, 2, 3, 0, 1}); };
    if (type == "i1") return make(std::int8_t{});
    if (type == "i2") return make(std::int16_t{});
    if (type == "i4") return make(std::int32_t{});
    if (type == "i8") return make(std::int64_t{});
    if (type == "u1") return make(std::uint8_t{});
    if (type == "u2") return make(std::uint16_t{});
    if (type == "u4") return make(std::uint32_t{});
    if (type == "u8") return make(std::uint64_t{});
    if (type == "f4") return make(float{});
    return make(double{});
  };
  for (const std::string type : {"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"}) {
    const auto width = static_cast<std::size_t>(type[1] - '0');
    for (const char order : {'<', '>'}) {
      SCOPED_TRACE(order + type);
      const std::string numbers = order == '>' ? swapped(column(type), width) : column(type);
      Arrays a;
      if (type[0] != 'f') {
        a.coords = npy(dict_of(order + type, "(3, 3)"), numbers);
        a.shape =
            npy(dict_of(order + type, "(3,)"), order == '>' ? swapped(column(type).substr(3 * width, 3 * width), width)
                                                            : column(type).substr(3 * width, 3 * width));
        ReadOptions options;
        options.dims = {2, 3, 4};
        expect_same(read_bytes(a.zip(), "x.npz", options), small());
      }
      Arrays b;
      b.data = npy(dict_of(order + type, "(3,)"), numbers.substr(width, 3 * width));
      b.fill = npy(dict_of(order + type, "()"), std::string(width, '\0'));
      expect_same(read_bytes(b.zip()), tensor({2, 3, 4}, {{0, 1, 1}, {2, 0, 2}, {3, 0, 1}}, {1, 1, 2}));
    }
  }
  Arrays a;
  a.data = npy(dict_of("|b1", "(3,)"), raw<std::uint8_t>({1, 0, 255}));
  expect_same(read_bytes(a.zip()), tensor({2, 3, 4}, {{0, 1, 1}, {2, 0, 2}, {3, 0, 1}}, {1, 0, 1}));
  a.data = npy(dict_of("<i8", "(3,)"), raw<std::int64_t>({1, 0, (std::int64_t{1} << 53U) + 1}));
  (void)read_bytes(a.zip());
  ASSERT_EQ(report_.notes.size(), 1U);
}

TEST_F(Npz, ReadsFortranOrderAndEveryNpyVersion) {
  Arrays a;
  a.coords = npy(dict_of("<i4", "(3, 3)", true), raw<std::int32_t>({0, 2, 3, 1, 0, 0, 1, 2, 1}));
  expect_same(read_bytes(a.zip()), small());
  for (const char version : {1, 2, 3}) {
    a.shape =
        npy(R"({"shape": (3L,), "fortran_order": False, "descr": "<u2"})", raw<std::uint16_t>({2, 3, 4}), version);
    expect_same(read_bytes(a.zip({true, false, ""})), small());
  }
}

TEST_F(Npz, GivenDimsAndBase) {
  ReadOptions options;
  options.dims = {2, 30, 6'000'000'000U};
  const CooTensor x = read_bytes(Arrays().zip(), "x.npz", options);
  EXPECT_EQ(x.dims, options.dims);
  EXPECT_EQ(x.index_width(), IndexWidth::u64);
  options.dims = {2, 2, 4};
  EXPECT_NE(refusal(Arrays().zip(), options).find("found index 2 in mode 2 of nonzero 1, expected 0 to 1"),
            std::string::npos);
  options.dims = {};
  options.index_base = 1;
  EXPECT_NE(refusal(Arrays().zip(), options).find("found index 0 in mode 1 of nonzero 1, expected 1 to 2"),
            std::string::npos);
}

TEST_F(Npz, BadArraysAreRefusedInOneSentence) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string good_coords = raw<std::int64_t>({0, 1, 1, 2, 0, 2, 3, 0, 1});
  struct Case {
    std::string Arrays::*array;
    std::string bytes;
    std::string sentence;
  };
  const std::vector<Case> cases = {
      {&Arrays::data, npy(dict_of("<f8", "(3,)"), raw({1.0, nan, 1.0})),
       "found value nan in nonzero 2, expected a finite number"},
      {&Arrays::data, npy(dict_of("<f8", "(2,)"), raw({1.0, 1.0})),
       "found data.npy of shape 2, expected 3 as in coords.npy"},
      {&Arrays::data, npy(dict_of("<f8", "(3,)"), raw({1.0, 1.0})),
       "found 16 bytes of numbers in data.npy, expected 8 for each of 3"},
      {&Arrays::data, npy(dict_of("<f8", "(3,)"), raw({1.0, 1.0, 1.0, 1.0})), "found 32 bytes of numbers in data.npy"},
      {&Arrays::data, npy(dict_of("<c16", "(3,)"), std::string(48, '\0')),
       "data.npy: found type '<c16', expected an integer"},
      {&Arrays::data, npy(dict_of("|O", "(3,)"), std::string(48, '\0')), "data.npy: found type '|O'"},
      {&Arrays::data, npy("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (3,)}", std::string(12, '\0')),
       "found type with named fields"},
      {&Arrays::data, "no array at all", "data.npy: found other first bytes, expected a NumPy array"},
      {&Arrays::data, npy(dict_of("<f8", "(3,)"), raw({1.0, 1.0, 1.0}), 9),
       "data.npy: found npy version 9, expected 1, 2 or 3"},
      {&Arrays::data, npy("{'descr': '<f8'}", raw({1.0})),
       "data.npy: found a header without descr, fortran_order and shape"},
      {&Arrays::data, npy(dict_of("<f8", "(3"), raw({1.0})), "data.npy: found a shape that is no tuple of lengths"},
      {&Arrays::data, npy(dict_of("<f8", "(-3,)"), raw({1.0})), "data.npy: found a shape that is no tuple of lengths"},
      {&Arrays::coords, npy(dict_of("<i8", "(3, 3)"), raw<std::int64_t>({0, 1, 1, 2, 0, 3, 3, 0, 1})),
       "found index 3 in mode 2 of nonzero 3, expected 0 to 2"},
      {&Arrays::coords, npy(dict_of("<i8", "(3, 3)"), raw<std::int64_t>({0, -1, 1, 2, 0, 2, 3, 0, 1})),
       "found index -1 in mode 1 of nonzero 2, expected 0 to 1"},
      {&Arrays::coords, npy(dict_of("<i1", "(3, 3)"), raw<std::int8_t>({0, -1, 1, 2, 0, 2, 3, 0, 1})),
       "found index -1 in mode 1 of nonzero 2, expected 0 to 1"},
      {&Arrays::coords, npy(dict_of("<f8", "(3, 3)"), good_coords), "found numbers that are no integers in coords.npy"},
      {&Arrays::coords, npy(dict_of("<i8", "(9,)"), good_coords),
       "found coords.npy of shape 9, expected 3 x nnz as in shape.npy"},
      {&Arrays::coords, npy(dict_of("<i8", "(3, 1000000000000000000)"), good_coords),
       "expected 24 for each of 1000000000000000000 nonzeros"},
      {&Arrays::coords, npy(dict_of("<i8", "(3, 768614336404564651)"), good_coords),
       "expected 24 for each of 768614336404564651 nonzeros"},
      {&Arrays::shape, npy(dict_of("<i8", "(3,)"), raw<std::int64_t>({2, 0, 4})),
       "found dim 0 for mode 2, expected at least 1"},
      {&Arrays::shape, npy(dict_of("<i8", "(3,)"), raw<std::int64_t>({2, -3, 4})), "found a negative dim for mode 2"},
      {&Arrays::shape, npy(dict_of("<i8", "(33,)"), std::string(264, '\1')),
       "found shape.npy of shape 33, expected at most 32 numbers"},
      {&Arrays::shape, npy(dict_of("<f8", "(0,)"), ""), "found order 0, expected 1 to 32"},
      {&Arrays::fill, npy(dict_of("<f8", "()"), raw({2.5})), "found fill value 2.5, expected 0"},
      {&Arrays::fill, npy(dict_of("<f8", "()"), raw({nan})), "found fill value nan, expected 0"},
  };
  for (const Case& c : cases) {
    Arrays a;
    a.*c.array = c.bytes;
    for (const bool deflate : {false, true}) {
      const std::string text = refusal(a.zip({deflate, false, ""}));
      EXPECT_NE(text.find(c.sentence), std::string::npos) << text << "\n  expected: " << c.sentence;
    }
  }
  const Arrays a;
  EXPECT_NE(refusal(zip_of({{"data.npy", a.data}, {"shape.npy", a.shape}})).find("found no coords.npy"),
            std::string::npos);
  EXPECT_NE(refusal(zip_of({{"data.npy", a.data}, {"shape.npy", a.shape}, {"indptr.npy", a.shape}}))
                .find("found compressed rows"),
            std::string::npos);
  expect_same(read_bytes(zip_of({{"coords.npy", a.coords}, {"data.npy", a.data}, {"shape.npy", a.shape}})), small());
}

TEST_F(Npz, EveryTruncationAndEveryFlippedByteEndsInAnErrorOrTheTensor) {
  for (const bool deflate : {false, true}) {
    const std::string whole = Arrays().zip({deflate, deflate, ""});
    for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_NE(refusal(whole.substr(0, n)), "(no Error)") << n;
    for (std::size_t n = 0; n < whole.size(); ++n) {
      std::string spoilt = whole;
      spoilt[n] = static_cast<char>(spoilt[n] ^ 0x55);
      // Dates, versions and the like are not read; whatever is read must be right.
      if (refusal(spoilt) == "(no Error)") expect_same(read("x.npz"), small());
    }
  }
}

TEST_F(Npz, AnArchiveThatInflatesToMuchDoesNotAllocateMuch) {
  // The header promises 2^40 nonzeros, the directory agrees, the data are a few bytes.
  const std::string dict = dict_of("<i8", "(1, 1099511627776)");
  Arrays a;
  a.coords = npy(dict, std::string(1000, '\0'));
  a.shape = npy(dict_of("<i8", "(1,)"), raw<std::int64_t>({5}));
  std::string zip = a.zip({true, true, ""});
  const std::string true_size = raw<std::uint64_t>({a.coords.size()});
  const std::string promise = raw<std::uint64_t>({a.coords.size() - 1000 + (std::uint64_t{8} << 40U)});
  const auto where = zip.rfind(true_size);
  ASSERT_NE(where, std::string::npos);
  zip.replace(where, 8, promise);
  EXPECT_NE(refusal(zip).find("found the end of the data after 125 indices of mode 1, expected 1099511627776"),
            std::string::npos);
}

TEST_F(Npz, WritesAHeaderThatNumpyAligns) {
  const std::string header = npy_header("<i8", std::vector<std::uint64_t>{3, 100});
  EXPECT_EQ(header.size() % 64, 0U);
  EXPECT_EQ(header.substr(10, 62), "{'descr': '<i8', 'fortran_order': False, 'shape': (3, 100), } ");
  EXPECT_EQ(header.back(), '\n');
  EXPECT_NE(npy_header("<f8", std::vector<std::uint64_t>{7}).find("'shape': (7,), }"), std::string::npos);
  EXPECT_NE(npy_header("<f8", {}).find("'shape': (), }"), std::string::npos);
}

TEST_F(Npz, DimsBeyondItsIntegersAreRefused) {
  const CooTensor x = tensor({std::uint64_t{1} << 63U, 2}, {{1}, {1}}, {1});
  OutputFile out(path("big.npz"), Compression::none);
  EXPECT_THROW(npz_dialect.write(x, out, {}, {}), Error);
}

}  // namespace
}  // namespace polyad::io
