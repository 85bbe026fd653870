// SPDX-License-Identifier: MIT
#include "formats/copies/row_sort.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "backends/cpu/threads.hpp"
#include "core/bucket_batches.hpp"
#include "formats/copies/index24.hpp"
#include "polyad/buffer.hpp"

namespace polyad {

namespace {

/// One sort.
template <class Index, class Code>
class RowSort {
 public:
  RowSort(const RowSource<Index, Code>& nonzeros, std::uint64_t nnz, const RowSortLevels& levels,
          const NarrowArrays<Index>& to, const Context& context)
      : nonzeros_(nonzeros),
        nnz_(nnz),
        rows_(levels.rows),
        to_(to),
        value_bytes_(to.values->code().bytes),
        context_(context) {
    for (std::size_t l = 0; l < levels.count; ++l)
      if (l != levels.level) inputs_.push_back(l);
    threads_ =
        static_cast<int>(std::clamp<std::uint64_t>(nnz >> 14U, 1, static_cast<std::uint64_t>(context.thread_count())));
  }

  std::vector<RowsOfPart> run() {
    if (nnz_ == 0 || rows_ > 8 * nnz_ + most_bucket_rows || rows_ > most_rows) return {};
    shift_ = 0;
    while (((rows_ - 1) >> shift_) >= most_granules) ++shift_;
    count();
    if (!cut()) return {};
    low_ = Buffer<std::uint16_t>(context_, nnz_ + batch, purpose, Paging::plain, Content::any);
    scatter();
    return finish();
  }

 private:
  static constexpr std::string_view purpose = "the rows of a sort by rows";
  /// Nonzeros of a bucket are written so many at a time: whole cache lines of every array, of 3-byte indices one and a
  /// half.
  static constexpr std::size_t batch = 32;
  /// Rows have 32 bits on their way: twice as many are found at a time as with 64.
  static constexpr std::uint64_t most_rows = std::uint64_t{1} << 32U;
  static constexpr std::uint64_t most_granules = std::uint64_t{1} << 16U;
  /// Rows of a bucket are told apart by 16 bits.
  static constexpr std::uint64_t most_bucket_rows = std::uint64_t{1} << 16U;
  static constexpr std::size_t most_buckets = 2048;
  /// Nonzeros of a bucket at best. Half or a quarter of it made the scatter slower (twice the batches) and the buckets
  /// no faster: 6 to 12 bytes of each nonzero are in use at a time.
  static constexpr std::uint64_t bucket_nonzeros = std::uint64_t{1} << 16U;
  /// Batches of all buckets.
  static constexpr std::size_t batch_bytes = std::size_t{256} << 10U;

  /// Batches begin at multiples of what is written past the caches at a time.
  static constexpr std::size_t stream_unit = 16;
  /// Nonzeros whose rows and indices are looked up together.
  static constexpr std::size_t block_nonzeros = 256;

  struct Bucket {
    std::uint64_t begin = 0;  // of its nonzeros
    std::uint64_t end = 0;
    std::uint64_t first_row = 0;
    bool one_row = false;  // certainly
  };

  [[nodiscard]] std::size_t nonzero_bytes() const { return 2 + value_bytes_ + inputs_.size() * sizeof(Index); }

  /// Nonzeros of each granule in each thread's share.
  void count() {
    granules_ = static_cast<std::size_t>(((rows_ - 1) >> shift_) + 1);
    counts_.assign(granules_ * static_cast<std::size_t>(threads_), 0);
    cpu::run_team(threads_, [&](int rank, int size) {
      std::uint64_t* counts = counts_.data() + static_cast<std::size_t>(rank) * granules_;
      const cpu::Share s = cpu::share_of(nnz_, rank, size);
      const int shift = shift_;
      std::array<std::uint32_t, block_nonzeros> row;
      for (std::uint64_t begin = s.begin; begin < s.end; begin += block_nonzeros) {
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(s.end - begin, block_nonzeros));
        nonzeros_.copy_rows(begin, count, row.data());
        for (std::size_t j = 0; j < count; ++j) ++counts[row[j] >> shift];
      }
    });
  }

  /// Cuts granules into buckets. False if that would not do.
  bool cut() {
    const std::size_t most = std::min(most_buckets, batch_bytes / (batch * nonzero_bytes()));
    const std::uint64_t wanted = std::max<std::uint64_t>(bucket_nonzeros, 2 * nnz_ / most);
    bucket_of_.resize(granules_);
    std::uint64_t sum = 0;
    std::uint64_t largest = 0;  // bucket of several rows
    const auto threads = static_cast<std::size_t>(threads_);
    for (std::size_t g = 0; g < granules_; ++g) {
      std::uint64_t here = 0;
      for (std::size_t t = 0; t < threads; ++t) here += counts_[t * granules_ + g];
      const std::uint64_t first_row = std::uint64_t{g} << shift_;
      const bool fits = !buckets_.empty() && sum + here - buckets_.back().begin <= wanted &&
                        first_row + (std::uint64_t{1} << shift_) - buckets_.back().first_row <= most_bucket_rows;
      if (!fits) {
        buckets_.push_back({sum, sum, first_row, shift_ == 0});
      } else {
        buckets_.back().one_row = false;
      }
      sum += here;
      buckets_.back().end = sum;
      bucket_of_[g] = static_cast<std::uint16_t>(buckets_.size() - 1);
    }
    for (const Bucket& b : buckets_)
      if (!b.one_row) largest = std::max(largest, b.end - b.begin);
    if (buckets_.size() > 2 * most_buckets || largest > std::numeric_limits<std::uint32_t>::max()) return false;
    largest_ = static_cast<std::size_t>(largest);
    return true;
  }

  /// Where each thread writes in each bucket, from the counts of granules.
  [[nodiscard]] std::vector<std::uint64_t> places() const {
    std::vector<std::uint64_t> next(buckets_.size() * static_cast<std::size_t>(threads_), 0);
    for (std::size_t t = 0; t < static_cast<std::size_t>(threads_); ++t)
      for (std::size_t g = 0; g < granules_; ++g)
        next[t * buckets_.size() + bucket_of_[g]] += counts_[t * granules_ + g];
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      std::uint64_t at = buckets_[b].begin;
      for (std::size_t t = 0; t < static_cast<std::size_t>(threads_); ++t)
        at += std::exchange(next[t * buckets_.size() + b], at);
    }
    return next;
  }

  /// The arrays of a batch follow each other: of indices per input, of rows, of values. These come last, with room for
  /// a code behind them: a code of three bytes is stored as four, of which the next one takes the last back.
  [[nodiscard]] std::size_t batch_stride() const {
    return batch * nonzero_bytes() + (value_bytes_ < sizeof(Code) ? stream_unit : 0);
  }

  /// Indices of 64 bits are rare: they get the general loop only.
  void scatter() {
    if constexpr (sizeof(Index) <= 4) {
      if (inputs_.size() == 1) return scatter_with<1>();
      if (inputs_.size() == 2) return scatter_with<2>();
      if (inputs_.size() == 3) return scatter_with<3>();
    }
    scatter_with<0>();
  }

  /// \tparam known number of inputs, 0 if it is another
  template <std::size_t known>
  void scatter_with() {
    struct Cursor {
      std::uint64_t next;
      std::uint32_t first_row;
    };
    const std::vector<std::uint64_t> all_next = places();
    cpu::run_team(threads_, [&](int rank, int size) {
      const std::uint64_t* first = all_next.data() + static_cast<std::size_t>(rank) * buckets_.size();
      std::vector<Cursor> cursors(buckets_.size());
      for (std::size_t b = 0; b < buckets_.size(); ++b)
        cursors[b] = {first[b], static_cast<std::uint32_t>(buckets_[b].first_row)};
      const std::size_t inputs = known == 0 ? inputs_.size() : known;
      const std::size_t stride = batch_stride();
      const std::size_t rows_at = inputs * batch * sizeof(Index);
      const std::size_t values_at = rows_at + batch * sizeof(std::uint16_t);
      const std::size_t value_bytes = value_bytes_;
      Buffer<std::byte> batches(context_, buckets_.size() * stride, purpose);
      // Copies that no store can change.
      std::array<std::size_t, max_order> levels = {};
      std::copy(inputs_.begin(), inputs_.end(), levels.begin());
      const int shift = shift_;
      const std::uint16_t* bucket_of = bucket_of_.data();
      Cursor* cursor_of = cursors.data();
      std::byte* const batches_begin = batches.data();
      const cpu::Share s = cpu::share_of(nnz_, rank, size);
      // First where a block goes, then its indices and values, then all of it: loops so small that compilers do well.
      std::array<std::uint32_t, block_nonzeros> row;
      std::array<std::uint16_t, block_nonzeros> bucket;
      std::array<std::uint16_t, block_nonzeros> low;
      std::array<std::array<Index, block_nonzeros>, known == 0 ? max_order : known> narrow;
      std::array<Code, block_nonzeros> codes;
      for (std::uint64_t begin = s.begin; begin < s.end; begin += block_nonzeros) {
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(s.end - begin, block_nonzeros));
        nonzeros_.copy_rows(begin, count, row.data());
        for (std::size_t j = 0; j < count; ++j) {
          const std::uint16_t b = bucket_of[row[j] >> shift];
          bucket[j] = b;
          low[j] = static_cast<std::uint16_t>(row[j] - cursor_of[b].first_row);
        }
        for (std::size_t i = 0; i < inputs; ++i) nonzeros_.copy_indices(levels[i], begin, count, narrow[i].data());
        nonzeros_.copy_codes(begin, count, codes.data());
        for (std::size_t j = 0; j < count; ++j) {
          const std::size_t b = bucket[j];
          const std::uint64_t at = cursor_of[b].next++;
          const std::size_t k = at % batch;
          std::byte* mine = batches_begin + b * stride;
          Index* indices = reinterpret_cast<Index*>(mine) + k;
          for (std::size_t i = 0; i < inputs; ++i) indices[i * batch] = narrow[i][j];
          reinterpret_cast<std::uint16_t*>(mine + rows_at)[k] = low[j];
          std::memcpy(mine + values_at + k * value_bytes, &codes[j], sizeof(Code));
          if (k == batch - 1) [[unlikely]]
            write_batch(mine, std::max(first[b], at - k), at + 1);
        }
      }
      for (std::size_t b = 0; b < buckets_.size(); ++b)
        if (const std::uint64_t end = cursors[b].next; end % batch != 0 && end > first[b])
          write_batch(batches_begin + b * stride, std::max(first[b], end - end % batch), end);
      end_of_streams();
    });
  }

  /// Nonzeros begin .. end of a bucket, which a batch holds.
  [[gnu::noinline]] void write_batch(const std::byte* from_batch, std::uint64_t begin, std::uint64_t end) {
    const auto put = [&](void* array, std::size_t bytes) {
      std::byte* to = static_cast<std::byte*>(array) + begin * bytes;
      if (end - begin == batch) {
        stream_copy(from_batch, batch * bytes, to);
      } else {
        std::copy_n(from_batch + begin % batch * bytes, (end - begin) * bytes, to);
      }
      from_batch += batch * bytes;
    };
    for (const std::size_t l : inputs_) put(to_.indices[l], sizeof(Index));
    put(low_.data(), sizeof(std::uint16_t));
    put(to_.values->data(), value_bytes_);
  }

  /// Bytes per nonzero of the largest bucket that a thread holds: where it goes, and an array of the bucket.
  static constexpr std::size_t room_bytes = sizeof(std::uint32_t) + std::max(sizeof(Index), sizeof(Code));

  /// Puts buckets in order.
  std::vector<RowsOfPart> finish() {
    std::vector<RowsOfPart> parts(buckets_.size());
    std::vector<Buffer<std::uint32_t>> places;
    std::vector<Buffer<std::byte>> rooms;
    // Where a bucket is large, fewer threads: together they take no more than the records of a sort would.
    const std::uint64_t rooms_allowed = largest_ == 0 ? nnz_ : 8 * nnz_ / (largest_ * room_bytes);
    const int team =
        static_cast<int>(std::clamp<std::uint64_t>(rooms_allowed, 1, static_cast<std::uint64_t>(threads_)));
    for (int t = 0; t < team; ++t) {
      places.emplace_back(context_, largest_, purpose);
      rooms.emplace_back(context_, largest_ * std::max(sizeof(Index), sizeof(Code)), purpose);
    }
    cpu::for_each_chunk(team, buckets_.size(), [&](std::uint64_t b, int rank) {
      const auto t = static_cast<std::size_t>(rank);
      order(buckets_[b], b + 1 < buckets_.size() ? buckets_[b + 1].first_row : rows_, places[t].data(), rooms[t].data(),
            parts[b]);
    });
    return parts;
  }

  void order(const Bucket& bucket, std::uint64_t end_row, std::uint32_t* places, std::byte* room, RowsOfPart& part) {
    const auto size = static_cast<std::size_t>(bucket.end - bucket.begin);
    if (size == 0) return;
    if (bucket.one_row) {
      part.rows.push_back(bucket.first_row);
      part.begin.push_back(bucket.begin);
      return;
    }
    const std::uint16_t* low = low_.data() + bucket.begin;
    std::vector<std::uint32_t> next(static_cast<std::size_t>(end_row - bucket.first_row), 0);
    for (std::size_t i = 0; i < size; ++i) ++next[low[i]];
    part.rows.reserve(std::min(next.size(), size));
    part.begin.reserve(std::min(next.size(), size));
    std::uint32_t sum = 0;
    for (std::size_t r = 0; r < next.size(); ++r) {
      if (next[r] == 0) continue;
      part.rows.push_back(bucket.first_row + r);
      part.begin.push_back(bucket.begin + sum);
      sum += std::exchange(next[r], sum);
    }
    if (part.rows.size() == 1) return;
    for (std::size_t i = 0; i < size; ++i) places[i] = next[low[i]]++;
    const auto move = [&]<class T>(T* array) {
      T* before = reinterpret_cast<T*>(room);
      std::copy_n(array + bucket.begin, size, before);
      T* to = array + bucket.begin;
      for (std::size_t i = 0; i < size; ++i) to[places[i]] = before[i];
    };
    for (const std::size_t l : inputs_) move(to_.indices[l]);
    to_.values->visit_codes(move);
  }

  const RowSource<Index, Code>& nonzeros_;
  std::uint64_t nnz_;
  std::uint64_t rows_;
  std::vector<std::size_t> inputs_;  // levels
  NarrowArrays<Index> to_;
  std::size_t value_bytes_;
  const Context& context_;
  int threads_ = 1;
  int shift_ = 0;  // a granule is 2^shift rows
  std::size_t granules_ = 0;
  std::vector<std::uint64_t> counts_;     // [thread][granule]
  std::vector<std::uint16_t> bucket_of_;  // [granule]
  std::vector<Bucket> buckets_;
  std::size_t largest_ = 0;    // nonzeros of a bucket of several rows
  Buffer<std::uint16_t> low_;  // [nnz] rows, from the first of the bucket on
};

}  // namespace

template <class Index, class Code>
std::vector<RowsOfPart> sort_by_rows(const RowSource<Index, Code>& nonzeros, std::uint64_t nnz,
                                     const RowSortLevels& levels, const NarrowArrays<Index>& to,
                                     const Context& context) {
  return RowSort<Index, Code>(nonzeros, nnz, levels, to, context).run();
}

#define POLYAD_ROW_SORT(Index, Code)                                                                                \
  template std::vector<RowsOfPart> sort_by_rows(const RowSource<Index, Code>&, std::uint64_t, const RowSortLevels&, \
                                                const NarrowArrays<Index>&, const Context&);
POLYAD_ROW_SORT(std::uint16_t, std::uint32_t)
POLYAD_ROW_SORT(std::uint16_t, std::uint64_t)
POLYAD_ROW_SORT(Index24, std::uint32_t)
POLYAD_ROW_SORT(Index24, std::uint64_t)
POLYAD_ROW_SORT(std::uint32_t, std::uint32_t)
POLYAD_ROW_SORT(std::uint32_t, std::uint64_t)
POLYAD_ROW_SORT(std::uint64_t, std::uint32_t)
POLYAD_ROW_SORT(std::uint64_t, std::uint64_t)
#undef POLYAD_ROW_SORT

}  // namespace polyad
