// SPDX-License-Identifier: MIT
// MTTKRP on HiCOO (Li, Sun and Vuduc, SC 2018): blocks of nonzeros with offsets of one byte. Equal runs of nonzeros, in
// the order of the blocks, go to the groups; a worker keeps the corner of its block in registers. Blocks share output
// rows, so rows are added atomically, neighbouring nonzeros of one row as one.
//
// PD_ORDER, PD_INDEX (of the blocks' coordinates).
// head: first nonzero, end, nonzeros of a group, stride, bits of a block's side, first block, blocks, mode of every
//       level; bptr [blocks + 1], binds [blocks][modes], offsets of every mode, values
#undef PD_LEAST_GROUPS
#define PD_LEAST_GROUPS , 2  // CUDA: no spills (prelude_cuda.h)
#define PD_RANGE u64
#define PD_HEAD_MODES 7
#define PD_HEAD_ARRAYS (PD_HEAD_MODES + PD_ORDER)
#include "rows.h"

PD_KERNEL void mttkrp_hicoo(PD_PARAMETERS) {
  const u64 stride = head[3];
  const u64 column = pd_column();
  PD_GLOBAL const u64* begins = PD_SLOT(u64, 0);
  PD_GLOBAL const PD_INDEX* binds = PD_SLOT(PD_INDEX, 1);
  PD_ARRAY(PD_GLOBAL const u8*, offsets, PD_ORDER);
  PD_ARRAY(PD_GLOBAL const real*, factor, PD_ORDER);
  PD_ARRAY(PD_GLOBAL const real*, corner, PD_ORDER);  // rows of the block
  PD_GLOBAL const real* values = PD_SLOT(real, PD_ORDER + 2);
  PD_UNROLL for (int l = 0; l < PD_ORDER; ++l) {
    offsets[l] = PD_SLOT(u8, head[PD_HEAD_MODES + l] + 2);
    factor[l] = PD_FACTOR(l, PD_ORDER + 3);
  }
  const u64 first = head[0];
  const u64 run_begin = pd_least(first + pd_group_id(0) * head[2], head[1]);
  const u64 run_end = pd_least(run_begin + head[2], head[1]);
  u64 z;
  u64 end;
  pd_share(run_begin, run_end, &z, &end);
  if (column < stride && z < end) {
    u64 block = pd_range_of(begins, head[6], z);
    u64 row = PD_NO_ROW;
    real sum = (real)0;
    for (; z < end; ++block) {
      const u64 stop = pd_least(begins[block + 1], end);
      PD_UNROLL for (int l = 1; l < PD_ORDER; ++l)
        corner[l] = factor[l] + ((u64)binds[block * PD_ORDER + head[PD_HEAD_MODES + l]] << head[4]) * stride;
      const u64 corner_row = (u64)binds[block * PD_ORDER + head[PD_HEAD_MODES]] << head[4];
      for (; z < stop; ++z) {
        real x = values[z - first];
        PD_UNROLL for (int l = 1; l < PD_ORDER; ++l) x *= corner[l][offsets[l][z - first] * stride];
        const u64 next = corner_row + offsets[0][z - first];
        if (next == row) {
          sum += x;
        } else {
          if (row != PD_NO_ROW) pd_add_shared(out + row * stride + column, sum);
          row = next;
          sum = x;
        }
      }
    }
    pd_add_shared(out + row * stride + column, sum);
  }
  (void)seams;
}
