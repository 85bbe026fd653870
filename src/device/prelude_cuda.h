// SPDX-License-Identifier: MIT
// The dialect of src/device as CUDA C++ for NVRTC, which has no headers; see README.md there.
#define PD_CUDA 1

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#if PD_REAL_BITS == 64
typedef double real;
#else
typedef float real;
#endif

// A text may define PD_LEAST_GROUPS anew as ", 2": groups that a multiprocessor has at once. ptxas squeezes some kernels
// into 64 registers and spills the rest unless it is told that two groups, so 128 registers, will do.
#define PD_LEAST_GROUPS
#ifdef PD_ITEMS_0
#define PD_KERNEL extern "C" __global__ __launch_bounds__((PD_ITEMS_0) * (PD_ITEMS_1)PD_LEAST_GROUPS)
#else
#define PD_KERNEL extern "C" __global__
#endif
#define PD_FUNCTION static __device__ __forceinline__
#define PD_GLOBAL
#define PD_RESTRICT __restrict__
#define PD_LOCAL(type, name, count) __shared__ type name[count]
#define PD_IN_LOCAL
#define PD_ARRAY(type, name, count) type name[count]
#define PD_UNROLL _Pragma("unroll")
#define PD_BARRIER() __syncthreads()

PD_FUNCTION u64 pd_group_id(int d) { return d == 0 ? blockIdx.x : blockIdx.y; }
PD_FUNCTION u64 pd_group_count(int d) { return d == 0 ? gridDim.x : gridDim.y; }
PD_FUNCTION u32 pd_local_id(int d) { return d == 0 ? threadIdx.x : threadIdx.y; }
PD_FUNCTION u64 pd_count_bits(u64 x) { return (u64)__popcll(x); }
PD_FUNCTION real pd_fma(real a, real b, real c) {
#if PD_REAL_BITS == 64
  return fma(a, b, c);
#else
  return fmaf(a, b, c);
#endif
}

// *to += x while others add to it as well. GPUs before Pascal (sm_60), which NVRTC 12 and older still know, have no such
// instruction for doubles (PD_ATOMIC_F64 == 0).
PD_FUNCTION void pd_atomic_add(real* to, real x) {
#if PD_REAL_BITS == 64 && PD_ATOMIC_F64 == 0
  u64* bits = (u64*)to;
  do {
    x += __longlong_as_double((long long)atomicExch(bits, 0ull));
    x = __longlong_as_double((long long)atomicExch(bits, (u64)__double_as_longlong(x)));
  } while (x != (real)0);
#else
  atomicAdd(to, x);
#endif
}
