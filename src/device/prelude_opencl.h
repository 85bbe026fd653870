// SPDX-License-Identifier: MIT
// The dialect of src/device as OpenCL C 1.2; see README.md there.
#define PD_OPENCL 1

#if PD_REAL_BITS == 64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#if PD_ATOMIC_F64 == 0
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#endif
#endif

typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
#if PD_REAL_BITS == 64
typedef double real;
#else
typedef float real;
#endif

// The size of a group is known when the program is compiled, so that compilers can share out registers.
#ifdef PD_ITEMS_0
#define PD_KERNEL __kernel __attribute__((reqd_work_group_size(PD_ITEMS_0, PD_ITEMS_1, 1)))
#else
#define PD_KERNEL __kernel
#endif
#define PD_FUNCTION static
#define PD_GLOBAL __global
#define PD_RESTRICT restrict
#define PD_LOCAL(type, name, count) __local type name[count]
#define PD_IN_LOCAL __local
#define PD_ARRAY(type, name, count) type name[count]
#define PD_UNROLL _Pragma("unroll")
#define PD_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)

#define pd_group_id(d) ((u64)get_group_id(d))
#define pd_group_count(d) ((u64)get_num_groups(d))
#define pd_local_id(d) ((u32)get_local_id(d))
#define pd_count_bits(x) popcount((u64)(x))
#define pd_fma(a, b, c) fma((real)(a), (real)(b), (real)(c))

// *to += x while others add to it as well: see README.md for the kinds.
#if PD_REAL_BITS == 64
#if PD_ATOMIC_F64 == 1
static void pd_atomic_add(volatile __global real* to, real x) {
  real before;
  asm volatile("atom.global.add.f64 %0, [%1], %2;" : "=d"(before) : "l"(to), "d"(x) : "memory");
}
#elif PD_ATOMIC_F64 == 2
static void pd_atomic_add(volatile __global real* to, real x) {
  atomic_fetch_add_explicit((volatile __global atomic_double*)to, x, memory_order_relaxed, memory_scope_device);
}
#else
// Takes what is there, leaving 0, and puts the sum in its place; what others put there meanwhile is added next.
static void pd_atomic_add(volatile __global real* to, real x) {
  volatile __global u64* bits = (volatile __global u64*)to;
  do {
    x += as_double(atom_xchg(bits, as_ulong((real)0)));
    x = as_double(atom_xchg(bits, as_ulong(x)));
  } while (x != (real)0);
}
#endif
#else
#if PD_ATOMIC_F32 == 1
static void pd_atomic_add(volatile __global real* to, real x) {
  real before;
  asm volatile("atom.global.add.f32 %0, [%1], %2;" : "=f"(before) : "l"(to), "f"(x) : "memory");
}
#elif PD_ATOMIC_F32 == 2
static void pd_atomic_add(volatile __global real* to, real x) {
  atomic_fetch_add_explicit((volatile __global atomic_float*)to, x, memory_order_relaxed, memory_scope_device);
}
#else
static void pd_atomic_add(volatile __global real* to, real x) {
  do {
    x += atomic_xchg(to, (real)0);
    x = atomic_xchg(to, x);
  } while (x != (real)0);
}
#endif
#endif
