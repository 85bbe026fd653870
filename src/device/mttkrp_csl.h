// SPDX-License-Identifier: MIT
// MTTKRP on compressed slices (Nisa et al., section V.A): slices whose fibres have one nonzero each, without a level of
// fibres. Equal runs of nonzeros go to the groups.
//
// PD_ORDER, PD_INDEX, PD_OFFSET (of the slice pointers).
// head: first nonzero, end, nonzeros of a group, stride, chunks, mode of every level, first slice, slices;
//       slice ids, slice pointers [slices + 1], indices of levels 1 .. PD_ORDER - 1, values
#define PD_HEAD_MODES 5
#define PD_HEAD_SLICES (PD_HEAD_MODES + PD_ORDER)
#define PD_HEAD_ARRAYS (PD_HEAD_SLICES + 2)
#include "rows.h"

PD_KERNEL void mttkrp_csl(PD_PARAMETERS) {
  PD_LOCAL(real, side_sums, 2 * PD_ITEMS_1 * PD_ITEMS_0);
  PD_LOCAL(u64, side_rows, 2 * PD_ITEMS_1);
  const u64 stride = head[3];
  const u64 lane_column = pd_column();
  const u64 column = pd_least(lane_column, stride - 1);
  const int writes = lane_column == column;
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
  pd_rows rows;
  u64 z;
  u64 end;
  pd_begin_rows(&rows);
  pd_share(run_begin, run_end, &z, &end);
  if (z < end) {
    u64 low = 0;  // the last slice that begins at z or before
    u64 high = head[PD_HEAD_SLICES + 1];
    while (high - low > 1) {
      const u64 middle = low + (high - low) / 2;
      if (pointers[middle] <= z) {
        low = middle;
      } else {
        high = middle;
      }
    }
    for (; z < end; ++low) {
      const u64 row = slice_ids[low];
      const u64 stop = pd_least(pointers[low + 1], end);
      real sum = (real)0;
      for (; z < stop; ++z) {
        real x = values[z - first];
        PD_UNROLL for (int l = 1; l < PD_ORDER; ++l) x *= factor[l][ids[l][z - first] * stride];
        sum += x;
      }
      pd_add_to_row(&rows, row, sum, out + column, stride, writes);
    }
  }
  pd_finish_rows(&rows, side_sums, side_rows, out + column, seams, stride, column, writes, head[4]);
}
