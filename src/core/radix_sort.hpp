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
///
/// What it reads and writes is handed to it some records at a time, through references that do not know the types
/// behind them: the sort itself is compiled once per type of record (radix_sort.cpp), not once per caller.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/record_keys.hpp"
#include "polyad/buffer.hpp"
#include "polyad/context.hpp"
#include "polyad/coo_tensor.hpp"

namespace polyad::radix {

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

/// What a sort reads: any object with
///
///   load(begin, count, Rec* out)                        records begin .. begin + count, a bucket or more at a time
///   load_keys(begin, count, Key* out, int needed_from)  their keys, a block at a time; bits below needed_from may be
///                                                       left out
template <class Rec>
class SourceRef {
 public:
  template <class Object>
  requires(!std::is_base_of_v<SourceRef, Object>)
      SourceRef(const Object& object)  // NOLINT(google-explicit-constructor)
      : object_(&object),
        load_([](const void* o, std::uint64_t begin, std::size_t count, Rec* out) {
          static_cast<const Object*>(o)->load(begin, count, out);
        }),
        load_keys_([](const void* o, std::uint64_t begin, std::size_t count, KeyOf<Rec>* out, int needed_from) {
          static_cast<const Object*>(o)->load_keys(begin, count, out, needed_from);
        }) {}

  void load(std::uint64_t begin, std::size_t count, Rec* out) const { load_(object_, begin, count, out); }
  void load_keys(std::uint64_t begin, std::size_t count, KeyOf<Rec>* out, int needed_from) const {
    load_keys_(object_, begin, count, out, needed_from);
  }

 private:
  const void* object_;
  void (*load_)(const void*, std::uint64_t, std::size_t, Rec*);
  void (*load_keys_)(const void*, std::uint64_t, std::size_t, KeyOf<Rec>*, int);
};

/// The second store of a sort: a source that also has store(at, record), and prepare(context, n, purpose) if it must be
/// told before it is written.
template <class Rec>
class StoreRef : public SourceRef<Rec> {
 public:
  template <class Object>
  requires(!std::is_base_of_v<SourceRef<Rec>, Object>) StoreRef(Object& object)  // NOLINT(google-explicit-constructor)
      : SourceRef<Rec>(object),
        object_(const_cast<std::remove_const_t<Object>*>(&object)),
        store_([](const void* o, const std::uint64_t* at, const Rec* records, std::size_t count) {
          for (std::size_t i = 0; i < count; ++i) static_cast<const Object*>(o)->store(at[i], records[i]);
        }) {
    if constexpr (std::is_base_of_v<ArrayStore<Rec>, Object>)
      array_ = [](const void* o) { return static_cast<const Object*>(o)->data; };
    if constexpr (requires(const Context& c) { object.prepare(c, std::uint64_t{}, std::string_view{}); })
      prepare_ = [](void* o, const Context& context, std::uint64_t n, std::string_view purpose) {
        static_cast<Object*>(o)->prepare(context, n, purpose);
      };
  }

  /// Stores record i at at[i].
  void store(const std::uint64_t* at, const Rec* records, std::size_t count) const {
    store_(object_, at, records, count);
  }
  /// Where all records are if they lie in a plain array, else null.
  [[nodiscard]] Rec* array() const { return array_ == nullptr ? nullptr : array_(object_); }
  void prepare(const Context& context, std::uint64_t n, std::string_view purpose) const {
    if (prepare_ != nullptr) prepare_(object_, context, n, purpose);
  }

 private:
  void* object_;
  void (*store_)(const void*, const std::uint64_t*, const Rec*, std::size_t);
  Rec* (*array_)(const void*) = nullptr;
  void (*prepare_)(void*, const Context&, std::uint64_t, std::string_view) = nullptr;
};

/// Who gets every sorted bucket, where equal keys are never split between calls: any object with
///
///   sorted(rank, begin, count, records)       called by thread `rank`; these are the records of rank begin + i
///   equal(rank, begin, count, records, team)  the same for count equal keys of any number, may use `team` threads
template <class Rec>
class VisitorRef {
 public:
  template <class Object>
  requires(!std::is_base_of_v<VisitorRef, Object>) VisitorRef(Object& object)  // NOLINT(google-explicit-constructor)
      : object_(&object),
        sorted_([](void* o, int rank, std::uint64_t begin, std::size_t count, const Rec* records) {
          static_cast<Object*>(o)->sorted(rank, begin, count, records);
        }),
        equal_([](void* o, int rank, std::uint64_t begin, std::uint64_t count, const Rec* records, int team) {
          static_cast<Object*>(o)->equal(rank, begin, count, records, team);
        }) {}

  void sorted(int rank, std::uint64_t begin, std::size_t count, const Rec* records) const {
    sorted_(object_, rank, begin, count, records);
  }
  void equal(int rank, std::uint64_t begin, std::uint64_t count, const Rec* records, int team) const {
    equal_(object_, rank, begin, count, records, team);
  }

 private:
  void* object_;
  void (*sorted_)(void*, int, std::uint64_t, std::size_t, const Rec*);
  void (*equal_)(void*, int, std::uint64_t, std::uint64_t, const Rec*, int);
};

/// What to sort, and with what.
struct SortRequest {
  std::uint64_t n = 0;                       ///< records
  KeyBits bits;                              ///< of their keys
  std::string_view purpose;                  ///< of the scratch memory, for messages
  Scratch* scratch = nullptr;                ///< memory that stays for the next sort
  std::function<void()> before_visits = {};  ///< called when all is read; until it returns, only scratch was written
};

/// Sorts stably. Memory: n records of scratch, counted in the context, as many again for a SpareStore if a bucket is
/// too big for the cache, some 256 kB per thread and, where the limit allows it, an eighth of the records for batches.
/// Compiled for the types of records that are listed at the end of radix_sort.cpp.
template <class Rec>
void sort(const SortRequest& request, const SourceRef<Rec>& source, const StoreRef<Rec>& other,
          const VisitorRef<Rec>& visitor, const Context& context);

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
