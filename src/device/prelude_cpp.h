// SPDX-License-Identifier: MIT
// The dialect of src/device as C++ for gdb and the sanitizers; see README.md there. Work-items are threads. What the
// other doors get as defines is asked from `pd_item`, so that one compilation serves all orders and ranks; only types
// are defines: PD_REAL_BITS, PD_INDEX, PD_OFFSET. Included by tests/device/plain_kernels.inl, in a namespace.
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
#if PD_REAL_BITS == 64
using real = double;
#else
using real = float;
#endif

#define PD_KERNEL
#define PD_FUNCTION [[maybe_unused]] static inline
#define PD_GLOBAL
#define PD_IN_LOCAL
#define PD_RESTRICT
#define PD_LOCAL(type, name, count) type* const name = pd_item->group->local<type>(pd_item->local_arrays++, count)
#define PD_ARRAY(type, name, count) Array<type> name(static_cast<std::size_t>(count))
#define PD_UNROLL
#define PD_BARRIER() pd_item->group->barrier.arrive_and_wait()

#define PD_ITEMS_0 (pd_item->group->items[0])
#define PD_ITEMS_1 (pd_item->group->items[1])
#define PD_ORDER static_cast<int>(pd_item->group->numbers.order)
#define PD_LEVEL static_cast<int>(pd_item->group->numbers.level)
#define PD_RUNS pd_item->group->numbers.runs
#define PD_BINS pd_item->group->numbers.bins
#define PD_CHUNK pd_item->group->numbers.chunk
#define PD_COLUMNS static_cast<int>(pd_item->group->numbers.columns)
#define PD_INTERLEAVED pd_item->group->numbers.interleaved
#define PD_SEAMS pd_item->group->numbers.seams

PD_FUNCTION u64 pd_group_id(int d) { return pd_item->group_id[static_cast<std::size_t>(d)]; }
PD_FUNCTION u64 pd_group_count(int d) { return pd_item->group_count[static_cast<std::size_t>(d)]; }
PD_FUNCTION u32 pd_local_id(int d) { return pd_item->id[static_cast<std::size_t>(d)]; }
PD_FUNCTION u64 pd_count_bits(u64 x) { return static_cast<u64>(std::popcount(x)); }
PD_FUNCTION real pd_fma(real a, real b, real c) { return std::fma(a, b, c); }
PD_FUNCTION void pd_atomic_add(real* to, real x) { std::atomic_ref<real>(*to).fetch_add(x, std::memory_order_relaxed); }
