// SPDX-License-Identifier: MIT
// CUDA C++ on the processor, as far as src/device/prelude_cuda.h goes: the test double of the driver compiles kernel
// texts with it. The work-items of a group are fibres that change places at barriers; groups run one after the other.
#pragma once

#include <math.h>
#include <string.h>
#include <ucontext.h>

#include <type_traits>
#include <utility>

#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static

namespace cuda_on_host {

struct Three {
  unsigned x = 0, y = 0, z = 0;
};

struct Fibre {
  ucontext_t place;
  char stack[64 << 10];
  bool over = false;
};

// static, not inline: the linker makes one of all inline variables of the modules that are loaded, and the kernels of two
// devices run at the same time.
static ucontext_t scheduler;
static Fibre* running = nullptr;
static Fibre fibres[1024];
static void (*body)(void**) = nullptr;
static void** body_values = nullptr;

static void fibre_main() {
  body(body_values);
  running->over = true;
  swapcontext(&running->place, &scheduler);
}

}  // namespace cuda_on_host

static cuda_on_host::Three blockIdx, gridDim, threadIdx, blockDim;

static inline void __syncthreads() { swapcontext(&cuda_on_host::running->place, &cuda_on_host::scheduler); }

template <class T, class Bits>
inline T fake_exchange_add(T* to, T x) {
  Bits before = __atomic_load_n(reinterpret_cast<Bits*>(to), __ATOMIC_RELAXED);
  for (;;) {
    T old, sum;
    memcpy(&old, &before, sizeof old);
    sum = old + x;
    Bits after;
    memcpy(&after, &sum, sizeof after);
    if (__atomic_compare_exchange_n(reinterpret_cast<Bits*>(to), &before, after, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
      return old;
  }
}
inline float atomicAdd(float* to, float x) { return fake_exchange_add<float, unsigned>(to, x); }
inline double atomicAdd(double* to, double x) { return fake_exchange_add<double, unsigned long long>(to, x); }
inline unsigned long long atomicExch(unsigned long long* to, unsigned long long x) {
  return __atomic_exchange_n(to, x, __ATOMIC_RELAXED);
}
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline double __longlong_as_double(long long x) {
  double y;
  memcpy(&y, &x, sizeof y);
  return y;
}
inline long long __double_as_longlong(double x) {
  long long y;
  memcpy(&y, &x, sizeof y);
  return y;
}

namespace cuda_on_host {

/// Calls a kernel with the values behind the pointers that cuLaunchKernel was given.
template <class... Parameters>
void call(void (*kernel)(Parameters...), void** values) {
  [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    kernel(*static_cast<std::remove_const_t<Parameters>*>(values[Is])...);
  }(std::index_sequence_for<Parameters...>());
}

/// Runs a grid. Not 0 when some work-items of a group ended while others waited at a barrier.
static int run(void (*one)(void**), void** values, unsigned groups_0, unsigned groups_1, unsigned items_0,
               unsigned items_1) {
  gridDim = {groups_0, groups_1, 1};
  blockDim = {items_0, items_1, 1};
  body = one;
  body_values = values;
  const unsigned items = items_0 * items_1;
  int torn = 0;
  for (unsigned group_1 = 0; group_1 < groups_1; ++group_1)
    for (unsigned group_0 = 0; group_0 < groups_0; ++group_0) {
      blockIdx = {group_0, group_1, 0};
      for (unsigned i = 0; i < items; ++i) {
        Fibre& f = fibres[i];
        f.over = false;
        getcontext(&f.place);
        f.place.uc_stack.ss_sp = f.stack;
        f.place.uc_stack.ss_size = sizeof f.stack;
        f.place.uc_link = nullptr;
        makecontext(&f.place, fibre_main, 0);
      }
      for (unsigned over = 0; over < items;) {
        const unsigned before = over;
        for (unsigned i = 0; i < items; ++i) {
          if (fibres[i].over) continue;
          running = &fibres[i];
          threadIdx = {i % items_0, i / items_0, 0};
          swapcontext(&scheduler, &running->place);
          over += running->over;
        }
        if (before != over && over != items) torn = 1;
      }
    }
  return torn;
}

/// 'r' a pointer to const, 'w' to something that may change, '4' or '8' a number of so many bytes; one per parameter.
template <class... Parameters>
int kinds(void (*)(Parameters...), char* to) {
  ((*to++ = !std::is_pointer_v<Parameters>                       ? static_cast<char>('0' + sizeof(Parameters))
            : std::is_const_v<std::remove_pointer_t<Parameters>> ? 'r'
                                                                 : 'w'),
   ...);
  return sizeof...(Parameters);
}

}  // namespace cuda_on_host

// What the double finds in a compiled text: how to run the kernel, and what it does with its parameters.
#define FAKE_KERNEL(name)                                                                                 \
  extern "C" int fake_run_##name(void** v, unsigned g0, unsigned g1, unsigned i0, unsigned i1) {          \
    return cuda_on_host::run([](void** values) { cuda_on_host::call(&name, values); }, v, g0, g1, i0, i1); \
  }                                                                                                       \
  extern "C" int fake_kinds_##name(char* to) { return cuda_on_host::kinds(&name, to); }
