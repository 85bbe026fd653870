// SPDX-License-Identifier: MIT
// MTTKRP on compressed slices (Nisa et al., section V.A): slices whose fibres have one nonzero each, without a level of
// fibres. Equal runs of nonzeros go to the groups.
//
// PD_ORDER, PD_INDEX, PD_OFFSET (of the slice pointers).
// head: first nonzero, end, nonzeros of a group, stride, chunks, mode of every level, first slice, slices;
//       slice ids, slice pointers [slices + 1], indices of levels 1 .. PD_ORDER - 1, values
#define PD_RANGE PD_OFFSET
#define PD_HEAD_MODES 5
#define PD_HEAD_SLICES (PD_HEAD_MODES + PD_ORDER)
#define PD_HEAD_ARRAYS (PD_HEAD_SLICES + 2)
#include "rows.h"

PD_KERNEL void mttkrp_csl(PD_PARAMETERS) {
  PD_ROWS_BEGIN(head[3]);
  PD_GLOBAL const PD_INDEX* slice_ids = PD_SLOT(PD_INDEX, 0);
  PD_GLOBAL const PD_OFFSET* pointers = PD_SLOT(PD_OFFSET, 1);
  PD_ARRAY(PD_GLOBAL const PD_INDEX*, ids, PD_ORDER);
  PD_ARRAY(PD_GLOBAL const real*, factor, PD_ORDER);
  PD_GLOBAL const real* values = PD_SLOT(real, PD_ORDER + 1);
  PD_UNROLL for (int l = 0; l < PD_ORDER; ++l) {
    ids[l] = PD_SLOT(PD_INDEX, l > 0 ? l + 1 : 0);
    factor[l] = PD_FACTOR(l, PD_ORDER + 2);
  }
  const u64 first = head[0];
  const u64 run_begin = pd_least(first + pd_group_id(0) * head[2], head[1]);
  const u64 run_end = pd_least(run_begin + head[2], head[1]);
  u64 z;
  u64 end;
  pd_share(run_begin, run_end, &z, &end);
  if (z < end) {
    for (u64 slice = pd_range_of(pointers, head[PD_HEAD_SLICES + 1], z); z < end; ++slice) {
      const u64 row = slice_ids[slice];
      const u64 stop = pd_least(pointers[slice + 1], end);
      real sum = (real)0;
      for (; z < stop; ++z) {
        real x = values[z - first];
        PD_UNROLL for (int l = 1; l < PD_ORDER; ++l) x *= factor[l][ids[l][z - first] * stride];
        sum += x;
      }
      pd_add_to_row(&rows, row, sum, out + column, stride, writes);
    }
  }
  PD_ROWS_END(head[4]);
}
