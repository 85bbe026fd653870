// SPDX-License-Identifier: MIT
#include "core/radix_sort.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "backends/cpu/threads.hpp"
#include "core/bucket_batches.hpp"
#include "core/cache_sort.hpp"
#include "polyad/error.hpp"

namespace polyad::radix {

namespace {

/// Most records of a bucket that is sorted in the cache: it and its LSD copy fit 512 KiB of L2.
template <class Rec>
constexpr std::size_t leaf_records = (std::size_t{256} << 10U) / sizeof(Rec);

/// One sort.
template <class Rec>
class Sort {
 public:
  using Key = KeyOf<Rec>;

  Sort(const SortRequest& request, const SourceRef<Rec>& source, const StoreRef<Rec>& other,
       const VisitorRef<Rec>& visitor, const Context& context)
      : context_(context),
        request_(request),
        n_(request.n),
        bits_(request.bits.all - request.bits.floor),
        floor_(request.bits.floor),
        presorted_(request.bits.presorted),
        source_(source),
        other_(other),
        visitor_(visitor) {}

  void run() {
    if (n_ == 0) return;
    threads_ = context_.thread_count();
    scratch_ = request_.scratch != nullptr ? request_.scratch->room<Rec>(context_, n_, request_.purpose)
                                           : Buffer<Rec>(context_, n_, request_.purpose, Paging::huge, Content::any);
    if (n_ <= leaf_records<Rec>) {
      spare_ = Buffer<Rec>(context_, n_, request_.purpose);
      source_.load(0, n_, scratch_.data());
      all_is_read();
      leaf(0, {0, n_, bits_, Place::scratch}, spare_.data());
      return;
    }
    const std::uint64_t share = n_ / (8 * static_cast<std::uint64_t>(threads_));
    huge_from_ = threads_ == 1 ? n_ + 1 : std::max<std::uint64_t>(share, 2 * leaf_records<Rec>);
    if (presorted_ > 0) {
      cut_presorted();
    } else {
      Node root{0, n_, bits_, Place::source};
      while (root.bits > 0 && root.place == Place::source) root = partition_root(root);
      if (root.place == Place::source) {  // all keys are equal
        load_all(source_, root);
        all_is_read();
        visitor_.equal(0, 0, n_, scratch_.data(), threads_);
        return;
      }
    }
    spare_ = Buffer<Rec>(context_, leaf_records<Rec> * static_cast<std::size_t>(threads_), request_.purpose,
                         Paging::huge, Content::any);
    const auto big = [](const Node& t) { return t.bits > 0 && t.size > leaf_records<Rec>; };
    if (std::ranges::any_of(tasks_, big) || std::ranges::any_of(huge_, big))
      other_.prepare(context_, n_, request_.purpose);
    all_is_read();
    while (!huge_.empty()) {
      const Node node = huge_.back();
      huge_.pop_back();
      split_by_team(node);
    }
    run_tasks();
  }

 private:
  void all_is_read() const {
    if (request_.before_visits) request_.before_visits();
  }

  enum class Place : std::uint8_t { source, scratch, other };

  struct Node {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    int bits = 0;  // low bits of the key, from the floor on, by which the records are not yet sorted
    Place place = Place::source;
  };

  // Calls f with the other store: as an array if it is one.
  template <class F>
  decltype(auto) with_other(const F& f) const {
    if (Rec* array = other_.array(); array != nullptr) return f(ArrayStore<Rec>{array});
    return f(other_);
  }

  static Place opposite(Place p) { return p == Place::scratch ? Place::other : Place::scratch; }

  static constexpr int most_team_bits = 11;
  static constexpr int most_task_bits = 8;

  // As many bits as make buckets of half a leaf, were the keys spread evenly; all that are left when one digit holds
  // them: the cache then finds buckets in order.
  static int digit_bits(const Node& node, int most) {
    if (node.bits <= most) return node.bits;
    const std::uint64_t buckets = node.size / (leaf_records<Rec> / 2);
    return std::min({std::max(width_of(buckets), 1), most, node.bits});
  }

  // Small neighbours are one task; equal keys of any number are one bucket, so they stay together.
  template <class Emit>
  static void emit_buckets(const Node& parent, int digit, const std::uint64_t* ends, std::size_t buckets, Place place,
                           const Emit& emit) {
    constexpr std::uint64_t small = leaf_records<Rec> / 8;
    const int bits = digit == parent.bits ? 0 : parent.bits;  // by the last digit, neighbours are in order
    Node pending{parent.begin, 0, bits, place};
    std::uint64_t at = parent.begin;
    for (std::size_t b = 0; b < buckets; ++b) {
      const std::uint64_t size = ends[b] - at;
      if (pending.size > 0 && pending.size + size > small) {
        emit(pending);
        pending = {at, 0, bits, place};
      }
      if (size > small) {
        emit(Node{at, size, parent.bits - digit, place});
        pending = {ends[b], 0, bits, place};
      } else {
        pending.size += size;
      }
      at = ends[b];
    }
    if (pending.size > 0) emit(pending);
  }

  // Partitions a node on the whole team. Returns the ends of the buckets, or nothing when all records fall into one
  // bucket (then nothing moves).
  template <class From, class To>
  std::vector<std::uint64_t> team_partition(const From& from, const To& to, const Node& node, int digit) {
    const auto team = static_cast<int>(std::clamp<std::uint64_t>(node.size >> 14U, 1, static_cast<unsigned>(threads_)));
    const std::size_t buckets = std::size_t{1} << static_cast<unsigned>(digit);
    std::vector<std::uint64_t> next(static_cast<std::size_t>(team) * buckets);  // [team][buckets]
    cpu::run_team(team, [&](int rank, int size) {
      const cpu::Share s = cpu::share_of(node.size, rank, size);
      count(from, node.begin + s.begin, node.begin + s.end, floor_ + node.bits - digit, digit,
            next.data() + static_cast<std::size_t>(rank) * buckets);
    });
    std::vector<std::uint64_t> ends(buckets);
    std::uint64_t sum = node.begin;
    bool one_bucket = false;
    for (std::size_t b = 0; b < buckets; ++b) {
      const std::uint64_t begin = sum;
      for (std::size_t t = 0; t < static_cast<std::size_t>(team); ++t) sum += std::exchange(next[t * buckets + b], sum);
      ends[b] = sum;
      one_bucket |= sum - begin == node.size;
    }
    if (one_bucket) return {};
    const auto scatter_shares = [&](const auto& scatter_share) {
      cpu::run_team(team, [&](int rank, int size) {
        const cpu::Share s = cpu::share_of(node.size, rank, size);
        scatter_share(node.begin + s.begin, node.begin + s.end, rank,
                      next.data() + static_cast<std::size_t>(rank) * buckets);
      });
    };
    const int shift = floor_ + node.bits - digit;
    if constexpr (is_array<To>) {
      if (Buffer<Rec> room = batches_of(buckets, team, node.size); !room.empty()) {
        scatter_shares([&](std::uint64_t begin, std::uint64_t end, int rank, std::uint64_t* first) {
          Rec* mine = room.data() + static_cast<std::size_t>(rank) * buckets * batch;
          scatter_by_batches(from, to.data, begin, end, shift, {first, buckets}, mine);
        });
        return ends;
      }
    }
    scatter_shares([&](std::uint64_t begin, std::uint64_t end, int, std::uint64_t* first) {
      scatter(from, to, begin, end, shift, digit, first);
    });
    return ends;
  }

  template <class Store>
  static constexpr bool is_array = std::is_same_v<Store, ArrayStore<Rec>>;

  // Whole cache lines.
  static constexpr std::size_t batch = 16;
  static_assert(batch * sizeof(Rec) % 64 == 0);

  // Room for batches of all buckets, if a second-level cache has it, they are little beside the records and the memory
  // has it. Empty if not.
  [[nodiscard]] Buffer<Rec> batches_of(std::size_t buckets, int team, std::uint64_t records) const {
    constexpr std::size_t most_bytes = std::size_t{512} << 10U;
    const std::size_t all = buckets * batch * static_cast<std::size_t>(team);
    if (buckets < 64 || buckets * batch * sizeof(Rec) > most_bytes || all > records / 8) return {};
    try {
      return Buffer<Rec>(context_, all, request_.purpose, Paging::huge, Content::any);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::limit) throw;
      return {};
    }
  }

  template <class From>
  static void scatter_by_batches(const From& from, Rec* to, std::uint64_t begin, std::uint64_t end, int shift,
                                 std::span<std::uint64_t> next, Rec* room) {
    const auto write = [to](const Rec* records, std::uint64_t first, std::uint64_t last) {
      if (last - first == batch) {
        stream_copy(records, batch, to + first);
      } else {
        std::copy_n(records, last - first, to + first);
      }
    };
    BucketBatches<Rec, batch, decltype(write)> batches(room, next, write);
    std::array<Rec, block_records> block;
    const auto mask = static_cast<std::uint32_t>(next.size() - 1);
    while (begin < end) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, block_records));
      from.load(begin, n, block.data());
      for (std::size_t i = 0; i < n; ++i)
        batches.put(static_cast<std::uint32_t>(key_of(block[i]) >> shift) & mask, [&](Rec& r) { r = block[i]; });
      begin += n;
    }
    batches.finish();
  }

  template <class From>
  static void count(const From& from, std::uint64_t begin, std::uint64_t end, int shift, int digit,
                    std::uint64_t* counts) {
    std::array<Key, block_records> keys;
    const std::uint32_t mask = (1U << static_cast<unsigned>(digit)) - 1;
    while (begin < end) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, block_records));
      from.load_keys(begin, n, keys.data(), shift);
      for (std::size_t i = 0; i < n; ++i) ++counts[static_cast<std::uint32_t>(keys[i] >> shift) & mask];
      begin += n;
    }
  }

  template <class From, class To>
  static void scatter(const From& from, const To& to, std::uint64_t begin, std::uint64_t end, int shift, int digit,
                      std::uint64_t* next) {
    std::array<Rec, block_records> block;
    const std::uint32_t mask = (1U << static_cast<unsigned>(digit)) - 1;
    while (begin < end) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, block_records));
      from.load(begin, n, block.data());
      if constexpr (is_array<To>) {
        for (std::size_t i = 0; i < n; ++i)
          to.data[next[static_cast<std::uint32_t>(key_of(block[i]) >> shift) & mask]++] = block[i];
      } else {
        std::array<std::uint64_t, block_records> at;
        for (std::size_t i = 0; i < n; ++i)
          at[i] = next[static_cast<std::uint32_t>(key_of(block[i]) >> shift) & mask]++;
        to.store(at.data(), block.data(), n);
      }
      begin += n;
    }
  }

  void sort_later(const Node& node) { (node.size >= huge_from_ ? huge_ : tasks_).push_back(node); }

  Node partition_root(Node node) {
    const int digit = digit_bits(node, most_team_bits);
    const std::vector<std::uint64_t> ends = team_partition(source_, ArrayStore<Rec>{scratch_.data()}, node, digit);
    if (ends.empty()) {
      node.bits -= digit;
      return node;
    }
    emit_buckets(node, digit, ends.data(), ends.size(), Place::scratch, [&](const Node& child) { sort_later(child); });
    node.place = Place::scratch;
    return node;
  }

  // The first record from `at` on that differs from the one before `at` in the bits by which the source is sorted.
  std::uint64_t end_of_presorted(std::uint64_t at) const {
    const auto top = [&](std::uint64_t z) {
      Key key;
      source_.load_keys(z, 1, &key, floor_ + bits_ - presorted_);
      return key >> (floor_ + bits_ - presorted_);
    };
    const Key before = top(at - 1);
    std::uint64_t same = at - 1;
    std::uint64_t step = 1;
    while (same + step < n_ && top(same + step) == before) {
      same += step;
      step *= 2;
    }
    std::uint64_t beyond = std::min(same + step, n_);  // differs, or is the end
    while (beyond - same > 1) {
      const std::uint64_t middle = same + (beyond - same) / 2;
      (top(middle) == before ? same : beyond) = middle;
    }
    return beyond;
  }

  // Pieces of the source that can be sorted where they are: of half a leaf or, where more records agree in what the
  // source is sorted by, of these alone.
  void cut_presorted() {
    constexpr std::uint64_t piece = leaf_records<Rec> / 2;
    for (std::uint64_t begin = 0; begin < n_;) {
      const std::uint64_t end = n_ - begin <= piece ? n_ : end_of_presorted(begin + piece);
      const Node node{begin, end - begin, bits_, Place::source};
      if (node.size >= huge_from_) {
        load_all(source_, node);
        huge_.push_back({begin, node.size, bits_, Place::scratch});
      } else {
        tasks_.push_back(node);
      }
      begin = end;
    }
  }

  void split_by_team(Node node) {
    const ArrayStore<Rec> scratch{scratch_.data()};
    while (node.bits > 0) {
      const int digit = digit_bits(node, most_team_bits);
      const std::vector<std::uint64_t> ends = with_other([&](const auto& other) {
        return node.place == Place::scratch ? team_partition(scratch, other, node, digit)
                                            : team_partition(other, scratch, node, digit);
      });
      if (!ends.empty()) {
        emit_buckets(node, digit, ends.data(), ends.size(), opposite(node.place),
                     [&](const Node& child) { sort_later(child); });
        return;
      }
      node.bits -= digit;
    }
    if (node.place == Place::other) load_all(other_, node);
    visitor_.equal(0, node.begin, node.size, scratch_.data() + node.begin, threads_);
  }

  template <class From>
  void load_all(const From& from, const Node& node) {
    cpu::parallel_ranges(threads_, node.size, [&](std::uint64_t begin, std::uint64_t end) {
      from.load(node.begin + begin, end - begin, scratch_.data() + node.begin + begin);
    });
  }

  void run_tasks() {
    // The longest first, so that the last to finish is short.
    std::sort(tasks_.begin(), tasks_.end(), [](const Node& a, const Node& b) { return a.size > b.size; });
    std::atomic<std::size_t> next{0};
    const int team = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(threads_), tasks_.size()));
    cpu::run_team(team, [&](int rank, int) {
      Rec* spare = spare_.data() + static_cast<std::size_t>(rank) * leaf_records<Rec>;
      for (std::size_t t = next.fetch_add(1); t < tasks_.size(); t = next.fetch_add(1)) task(rank, tasks_[t], spare);
    });
  }

  // One thread sorts a node to the end. Every level of the recursion takes a digit: 2 bits at least.
  void task(int rank, Node node, Rec* spare) {
    const ArrayStore<Rec> scratch{scratch_.data()};
    Rec* records = scratch_.data() + node.begin;
    if (node.place == Place::source) {
      source_.load(node.begin, node.size, records);
      node.place = Place::scratch;
    }
    if (node.size <= leaf_records<Rec>) {
      if (node.place == Place::other) other_.load(node.begin, node.size, records);
      leaf(rank, node, spare);
      return;
    }
    while (node.bits > 0) {
      const int digit = digit_bits(node, most_task_bits);
      const std::size_t buckets = std::size_t{1} << static_cast<unsigned>(digit);
      std::array<std::uint64_t, std::size_t{1} << most_task_bits> next = {};
      const std::uint64_t end = node.begin + node.size;
      const int shift = floor_ + node.bits - digit;
      const bool in_scratch = node.place == Place::scratch;
      with_other([&](const auto& other) {
        in_scratch ? count(scratch, node.begin, end, shift, digit, next.data())
                   : count(other, node.begin, end, shift, digit, next.data());
      });
      if (std::find(next.begin(), next.end(), node.size) != next.end()) {
        node.bits -= digit;
        continue;
      }
      std::uint64_t sum = node.begin;
      for (std::size_t b = 0; b < buckets; ++b) sum += std::exchange(next[b], sum);
      with_other([&](const auto& other) {
        in_scratch ? scatter(scratch, other, node.begin, end, shift, digit, next.data())
                   : scatter(other, scratch, node.begin, end, shift, digit, next.data());
      });
      emit_buckets(node, digit, next.data(), buckets, opposite(node.place),
                   [&](const Node& child) { task(rank, child, spare); });
      return;
    }
    if (node.place == Place::other) other_.load(node.begin, node.size, records);
    visitor_.equal(rank, node.begin, node.size, records, 1);
  }

  void leaf(int rank, const Node& node, Rec* spare) {
    Rec* records = scratch_.data() + node.begin;
    const auto size = static_cast<std::size_t>(node.size);
    visitor_.sorted(rank, node.begin, size, node.bits == 0 ? records : sort_in_cache(records, spare, size, floor_));
  }

  const Context& context_;
  const SortRequest& request_;
  std::uint64_t n_;
  int bits_;  // from the floor on
  int floor_;
  int presorted_;
  const SourceRef<Rec>& source_;
  const StoreRef<Rec>& other_;
  const VisitorRef<Rec>& visitor_;
  int threads_ = 1;
  std::uint64_t huge_from_ = 0;
  Buffer<Rec> scratch_;  // [n]
  Buffer<Rec> spare_;    // [threads][leaf_records]
  std::vector<Node> huge_;
  std::vector<Node> tasks_;
};

}  // namespace

template <class Rec>
void sort(const SortRequest& request, const SourceRef<Rec>& source, const StoreRef<Rec>& other,
          const VisitorRef<Rec>& visitor, const Context& context) {
  Sort<Rec>(request, source, other, visitor, context).run();
}

// Keys alone, keys with values, keys with positions.
#define POLYAD_SORT(...)                                                                              \
  template void sort(const SortRequest&, const SourceRef<__VA_ARGS__>&, const StoreRef<__VA_ARGS__>&, \
                     const VisitorRef<__VA_ARGS__>&, const Context&);
POLYAD_SORT(std::uint32_t)
POLYAD_SORT(std::uint64_t)
POLYAD_SORT(uint128)
POLYAD_SORT(Record<std::uint64_t, float>)
POLYAD_SORT(Record<std::uint64_t, double>)
POLYAD_SORT(Record<uint128, float>)
POLYAD_SORT(Record<uint128, double>)
POLYAD_SORT(Record<std::uint32_t, std::uint32_t>)
POLYAD_SORT(Record<std::uint32_t, std::uint64_t>)
POLYAD_SORT(Record<std::uint64_t, std::uint32_t>)
POLYAD_SORT(Record<std::uint64_t, std::uint64_t>)
#undef POLYAD_SORT

}  // namespace polyad::radix
