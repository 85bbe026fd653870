// SPDX-License-Identifier: MIT
/// \file Parallel stable radix sort of records with packed keys: most significant digit first until a bucket fits the
/// cache, then least significant digit first inside it.
///
/// The sort has one scratch array and moves records between it and a second store (the tensor itself, a permutation, a
/// key array), so a bucket that is still too big for the cache is partitioned back and forth without further memory:
///
///   source --digit 1--> scratch --(only big buckets) digit 2--> other --digit 3--> scratch ...
///                          |                                       |
///                          +------> small bucket: LSD in L2 <------+ ------> visitor
///
/// Every partition is stable and buckets are independent, so the result does not depend on the number of threads. The
/// work is O(n * key bits / 8) whatever the distribution: a bucket that holds a large part of all records is
/// partitioned by the whole team, the others are tasks of one thread each.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/cpu/threads.hpp"
#include "core/bucket_batches.hpp"
#include "polyad/buffer.hpp"
#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"
#include "polyad/error.hpp"

namespace polyad::radix {

/// Two machine words: keys of 65 to 128 bits, which is where most big order-4 tensors of FROSTT are.
__extension__ typedef unsigned __int128 uint128;

/// A key and what travels with it. The key is kept as 32-bit words so that a 64-bit key and a float take 12 bytes,
/// not 16.
template <class Key, class Payload>
struct Record {
  std::array<std::uint32_t, sizeof(Key) / 4> words;
  Payload payload;
};

template <class Key, class Payload>
[[nodiscard]] inline Key key_of(const Record<Key, Payload>& r) {
  return std::bit_cast<Key>(r.words);
}
[[nodiscard]] inline std::uint32_t key_of(std::uint32_t key) { return key; }
[[nodiscard]] inline std::uint64_t key_of(std::uint64_t key) { return key; }
[[nodiscard]] inline uint128 key_of(uint128 key) { return key; }

/// Type of the key of a record.
template <class Rec>
using KeyOf = decltype(key_of(std::declval<const Rec&>()));

/// Number of zero bits below the lowest one bit; key is not 0.
template <class Key>
[[nodiscard]] inline int lowest_bit(Key key) {
  if constexpr (sizeof(Key) == 16) {
    const auto low = static_cast<std::uint64_t>(key);
    return low != 0 ? std::countr_zero(low) : 64 + std::countr_zero(static_cast<std::uint64_t>(key >> 64));
  } else {
    return std::countr_zero(key);
  }
}

/// Number of binary digits of key.
template <class Key>
[[nodiscard]] inline int width_of(Key key) {
  if constexpr (sizeof(Key) == 16) {
    const auto high = static_cast<std::uint64_t>(key >> 64);
    return static_cast<int>(high != 0 ? 64 + std::bit_width(high) : std::bit_width(static_cast<std::uint64_t>(key)));
  } else {
    return static_cast<int>(std::bit_width(key));
  }
}

/// Where the indices of some modes sit in a key: key = sum of index[mode] << shift. A mode whose indices are all 0
/// takes no bits and has no field.
struct KeyLayout {
  struct Field {
    int mode = 0;
    int shift = 0;
    int bits = 0;
  };
  std::vector<Field> fields;  ///< most significant first
  int bits = 0;               ///< of the whole key

  /// \param largest per mode no index is above it
  /// \param modes most significant first
  KeyLayout(std::span<const std::uint64_t> largest, std::span<const int> modes) {
    for (const int m : modes) bits += width_of(largest[static_cast<std::size_t>(m)]);
    int shift = bits;
    for (const int m : modes) {
      const int width = width_of(largest[static_cast<std::size_t>(m)]);
      shift -= width;
      if (width > 0) fields.push_back({m, shift, width});
    }
  }

  /// Packs the keys of nonzeros [begin, begin + count). Bits below `needed_from` may be left out: counting a digit then
  /// reads only the modes that it covers.
  template <class Key, class Index>
  void pack(const std::array<Index*, max_order>& indices, std::uint64_t begin, std::size_t count, Key* out,
            int needed_from = 0) const {
    bool first = true;
    for (const Field& f : fields) {
      if (f.shift + f.bits <= needed_from) break;
      const Index* index = indices[static_cast<std::size_t>(f.mode)] + begin;
      const int shift = f.shift;
      if (first) {
        for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<Key>(static_cast<Key>(index[i]) << shift);
      } else {
        for (std::size_t i = 0; i < count; ++i) out[i] |= static_cast<Key>(static_cast<Key>(index[i]) << shift);
      }
      first = false;
    }
    if (first) std::fill_n(out, count, Key{0});
  }

  /// The index that a field holds.
  template <class Index, class Key>
  [[nodiscard]] static Index unpack(Key key, const Field& f) {
    // An index has at most 64 bits, so the mask works on the low word.
    return static_cast<Index>(static_cast<std::uint64_t>(key >> f.shift) & (~std::uint64_t{0} >> (64 - f.bits)));
  }
};

/// Records are loaded and packed this many at a time, in the L1 cache.
inline constexpr std::size_t block_records = 512;

/// Most records of a bucket that is sorted in the cache: it and its LSD copy fit 512 KiB of L2.
template <class Rec>
inline constexpr std::size_t leaf_records = (std::size_t{256} << 10U) / sizeof(Rec);

/// Stable insertion sort by the key's bits from `floor` on, for a handful.
template <class Rec>
inline void insertion_sort(Rec* a, std::size_t n, int floor) {
  for (std::size_t i = 1; i < n; ++i) {
    const Rec r = a[i];
    const auto key = key_of(r) >> floor;
    std::size_t j = i;
    for (; j > 0 && key_of(a[j - 1]) >> floor > key; --j) a[j] = a[j - 1];
    a[j] = r;
  }
}

/// Sorts n records, n < 2^32, stably by the key's bits from `floor` on (below the highest): LSD passes over those that
/// differ; `other` has room for n. Returns where the result is: a or other.
template <class Rec>
inline Rec* sort_in_cache(Rec* a, Rec* other, std::size_t n, int floor = 0) {
  using Key = KeyOf<Rec>;
  if (n <= 24) {
    insertion_sort(a, n, floor);
    return a;
  }
  const Key first = key_of(a[0]);
  Key differ = 0;
  Key previous = first;
  bool in_order = true;
  for (std::size_t i = 1; i < n; ++i) {
    const Key key = key_of(a[i]);
    differ |= key ^ first;
    in_order &= previous >> floor <= key >> floor;
    previous = key;
  }
  if (in_order) return a;
  differ = static_cast<Key>(differ >> floor << floor);
  std::array<std::uint32_t, 2048> next;
  const int widest = n >= 4096 ? 11 : n >= 512 ? 8 : 6;
  while (differ != 0) {
    const int shift = lowest_bit(differ);
    const int span = width_of(differ) - shift;
    const int passes = (span + widest - 1) / widest;
    const int width = (span + passes - 1) / passes;
    const std::uint32_t mask = (1U << static_cast<unsigned>(width)) - 1;
    std::fill_n(next.data(), mask + 1, 0U);
    for (std::size_t i = 0; i < n; ++i) ++next[static_cast<std::uint32_t>(key_of(a[i]) >> shift) & mask];
    std::uint32_t sum = 0;
    for (std::uint32_t d = 0; d <= mask; ++d) sum += std::exchange(next[d], sum);
    for (std::size_t i = 0; i < n; ++i) other[next[static_cast<std::uint32_t>(key_of(a[i]) >> shift) & mask]++] = a[i];
    std::swap(a, other);
    differ &= static_cast<Key>(~(static_cast<Key>(mask) << shift));
  }
  return a;
}

/// A plain array as a store of the sort, aligned to 16 bytes.
template <class Rec>
struct ArrayStore {
  Rec* data = nullptr;

  void load(std::uint64_t begin, std::size_t count, Rec* out) const { std::copy_n(data + begin, count, out); }
  void load_keys(std::uint64_t begin, std::size_t count, KeyOf<Rec>* out, int) const {
    for (std::size_t i = 0; i < count; ++i) out[i] = key_of(data[begin + i]);
  }
  void store(std::uint64_t at, const Rec& r) const { data[at] = r; }
};

/// The keys of a tensor's nonzeros, packed as they are read: a source of keys alone.
template <class Key, class Index>
struct KeySource {
  const KeyLayout* layout = nullptr;
  std::array<Index*, max_order> indices = {};

  void load(std::uint64_t begin, std::size_t count, Key* out) const { layout->pack(indices, begin, count, out); }
  void load_keys(std::uint64_t begin, std::size_t count, Key* out, int needed_from) const {
    layout->pack(indices, begin, count, out, needed_from);
  }
};

/// The nonzeros of a tensor as (packed indices, value), packed as they are read.
template <class Rec, class Index, class Value>
struct RecordSource {
  const KeyLayout* layout = nullptr;
  std::array<Index*, max_order> indices = {};
  Value* values = nullptr;

  void load(std::uint64_t begin, std::size_t count, Rec* out) const {
    std::array<KeyOf<Rec>, block_records> keys;
    for (std::size_t done = 0; done < count; done += block_records) {
      const std::size_t n = std::min(count - done, block_records);
      layout->pack(indices, begin + done, n, keys.data());
      for (std::size_t i = 0; i < n; ++i)
        out[done + i] = {std::bit_cast<decltype(Rec::words)>(keys[i]), values[begin + done + i]};
    }
  }
  void load_keys(std::uint64_t begin, std::size_t count, KeyOf<Rec>* out, int needed_from) const {
    layout->pack(indices, begin, count, out, needed_from);
  }
};

/// The second store of a sort of keys that nothing else can hold: allocated only when a bucket does not fit the cache.
template <class Rec>
struct SpareStore : ArrayStore<Rec> {
  Buffer<Rec> buffer;

  void prepare(const Context& context, std::uint64_t n, std::string_view purpose) {
    if (!buffer.empty()) return;
    buffer = Buffer<Rec>(context, n, purpose, Paging::huge, Content::any);
    this->data = buffer.data();
  }
};

/// The scratch memory of a sort, for one that is followed by others: fresh pages are a third of the time of a sort.
struct Scratch {
  Buffer<std::byte> bytes;

  template <class Rec>
  [[nodiscard]] Buffer<Rec> room(const Context& context, std::uint64_t n, std::string_view purpose) {
    if (bytes.size() / sizeof(Rec) < n) {
      bytes = {};
      bytes = Buffer<std::byte>(context, n * sizeof(Rec), purpose, Paging::huge, Content::any);
    }
    const std::shared_ptr<const void> lent(bytes.data(), [](const void*) {});
    return Buffer<Rec>::view(lent, reinterpret_cast<Rec*>(bytes.data()), n);
  }
};

/// The bits of a key by which a sort goes: those from `floor` on. Records that agree there keep their order.
struct KeyBits {
  int all = 0;        ///< of the key; higher ones are 0
  int floor = 0;      ///< fewer than the key's type has
  int presorted = 0;  ///< of the highest, by which the source is in order already: no bucket reaches across them
};

/// One sort. A Source has load and load_keys; an Other has store too, and prepare if it must be told before it is
/// written; the Visitor gets every sorted bucket, where equal keys are never split between calls:
///
///   visitor.sorted(rank, begin, count, records)       called by thread `rank`; these are the records of rank begin + i
///   visitor.equal(rank, begin, count, records, team)  the same for count equal keys of any number, may use `team`
///   threads
///
/// Memory: n records of scratch, counted in the context, leaf_records per thread and, where the limit allows it, an
/// eighth of the records for batches. Until before_visits() returns,
/// only scratch was written.
template <class Rec, class Source, class Other, class Visitor>
class Sort {
 public:
  using Key = KeyOf<Rec>;

  Sort(const Context& context, std::uint64_t n, KeyBits key_bits, const Source& source, Other& other, Visitor& visitor,
       std::type_identity<Rec>, std::string_view purpose, Scratch* lent = nullptr)
      : context_(context),
        n_(n),
        bits_(key_bits.all - key_bits.floor),
        floor_(key_bits.floor),
        presorted_(key_bits.presorted),
        source_(source),
        other_(other),
        visitor_(visitor),
        purpose_(purpose),
        lent_(lent) {}

  template <class Callback>
  void run(const Callback& before_visits) {
    if (n_ == 0) return;
    threads_ = context_.thread_count();
    scratch_ = lent_ ? lent_->template room<Rec>(context_, n_, purpose_)
                     : Buffer<Rec>(context_, n_, purpose_, Paging::huge, Content::any);
    if (n_ <= leaf_records<Rec>) {
      spare_ = Buffer<Rec>(context_, n_, purpose_);
      source_.load(0, n_, scratch_.data());
      before_visits();
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
        before_visits();
        visitor_.equal(0, 0, n_, scratch_.data(), threads_);
        return;
      }
    }
    spare_ = Buffer<Rec>(context_, leaf_records<Rec> * static_cast<std::size_t>(threads_), purpose_, Paging::huge,
                         Content::any);
    if constexpr (requires { other_.prepare(context_, n_, purpose_); }) {
      const auto big = [](const Node& t) { return t.bits > 0 && t.size > leaf_records<Rec>; };
      if (std::any_of(tasks_.begin(), tasks_.end(), big) || std::any_of(huge_.begin(), huge_.end(), big))
        other_.prepare(context_, n_, purpose_);
    }
    before_visits();
    while (!huge_.empty()) {
      const Node node = huge_.back();
      huge_.pop_back();
      split_by_team(node);
    }
    run_tasks();
  }

  void run() {
    run([] {});
  }

 private:
  enum class Place : std::uint8_t { source, scratch, other };

  struct Node {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    int bits = 0;  // low bits of the key, from the floor on, by which the records are not yet sorted
    Place place = Place::source;
  };

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
    if constexpr (std::is_base_of_v<ArrayStore<Rec>, To>) {
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
      return Buffer<Rec>(context_, all, purpose_, Paging::huge, Content::any);
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
      for (std::size_t i = 0; i < n; ++i)
        to.store(next[static_cast<std::uint32_t>(key_of(block[i]) >> shift) & mask]++, block[i]);
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
      const std::vector<std::uint64_t> ends = node.place == Place::scratch
                                                  ? team_partition(scratch, other_, node, digit)
                                                  : team_partition(other_, scratch, node, digit);
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

  // One thread sorts a node to the end. Depth of the recursion: at most key bits / 8, as every level takes a digit.
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
      in_scratch ? count(scratch, node.begin, end, shift, digit, next.data())
                 : count(other_, node.begin, end, shift, digit, next.data());
      if (std::find(next.begin(), next.end(), node.size) != next.end()) {
        node.bits -= digit;
        continue;
      }
      std::uint64_t sum = node.begin;
      for (std::size_t b = 0; b < buckets; ++b) sum += std::exchange(next[b], sum);
      in_scratch ? scatter(scratch, other_, node.begin, end, shift, digit, next.data())
                 : scatter(other_, scratch, node.begin, end, shift, digit, next.data());
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
  std::uint64_t n_;
  int bits_;  // from the floor on
  int floor_;
  int presorted_;
  const Source& source_;
  Other& other_;
  Visitor& visitor_;
  std::string_view purpose_;
  Scratch* lent_;
  int threads_ = 1;
  std::uint64_t huge_from_ = 0;
  Buffer<Rec> scratch_;  // [n]
  Buffer<Rec> spare_;    // [threads][leaf_records]
  std::vector<Node> huge_;
  std::vector<Node> tasks_;
};

/// Per mode the largest index that occurs, 0 without nonzeros.
[[nodiscard]] std::vector<std::uint64_t> largest_indices(const CooTensor& x, const Context& context);

/// Whether the nonzeros are in the order of the given modes. Stops at the first pair that is not: unsorted data cost
/// next to nothing.
[[nodiscard]] bool is_sorted_by(const CooTensor& x, std::span<const int> mode_order, const Context& context);

/// How sort_nonzeros goes about it. Anything but `automatic` is for tests.
enum class SortPath : std::uint8_t { automatic, key64, key128, permutation32, permutation64 };

/// sort_nonzeros without the check for sorted input, by a given path; `scratch` may be null.
void sort_by_path(CooTensor& x, std::span<const int> mode_order, SortPath path, const Context& context,
                  Scratch* scratch = nullptr);

/// sort_nonzeros with scratch memory that stays for the next one.
void sort_nonzeros(CooTensor& x, std::span<const int> mode_order, const Context& context, Scratch& scratch);

}  // namespace polyad::radix
