// SPDX-License-Identifier: MIT
// MTTKRP on F-COO (Liu et al. 2017): a segmented sum; a bit per nonzero says that a new output row begins. Equal runs
// of nonzeros go to the groups.
//
// PD_ORDER, PD_INDEX; PD_CHUNK nonzeros have their first row in chunk_rows.
// head: nonzeros, nonzeros of a group, stride, chunks, mode of every level, place of the part's first row in the
//       tensor's list of rows;
//       indices of levels 1 .. PD_ORDER - 1, values, bit flags, chunk rows, rows
// A part begins with a chunk; its rows are those from the first one on.
#define PD_HEAD_MODES 4
#define PD_HEAD_FIRST_ROW (PD_HEAD_MODES + PD_ORDER)
#define PD_HEAD_ARRAYS (PD_HEAD_FIRST_ROW + 1)
#include "rows.h"

PD_KERNEL void mttkrp_f_coo(PD_PARAMETERS) {
  PD_ROWS_BEGIN(head[2]);
  PD_ARRAY(PD_GLOBAL const PD_INDEX*, ids, PD_ORDER);
  PD_ARRAY(PD_GLOBAL const real*, factor, PD_ORDER);
  PD_GLOBAL const real* values = PD_SLOT(real, PD_ORDER - 1);
  PD_GLOBAL const u64* flags = PD_SLOT(u64, PD_ORDER);
  PD_GLOBAL const u64* chunk_rows = PD_SLOT(u64, PD_ORDER + 1);
  PD_GLOBAL const PD_INDEX* row_ids = PD_SLOT(PD_INDEX, PD_ORDER + 2);
  PD_UNROLL for (int l = 0; l < PD_ORDER; ++l) {
    ids[l] = PD_SLOT(PD_INDEX, l > 0 ? l - 1 : 0);
    factor[l] = PD_FACTOR(l, PD_ORDER + 3);
  }
  const u64 run_begin = pd_least(pd_group_id(0) * head[1], head[0]);
  const u64 run_end = pd_least(run_begin + head[1], head[0]);
  u64 z;
  u64 end;
  pd_share(run_begin, run_end, &z, &end);
  if (z < end) {
    // The place of z's row: that of its chunk's first nonzero, and the flags after that up to z.
    const u64 chunk = z / PD_CHUNK;
    const u64 last = z / 64;
    u64 word = chunk * (PD_CHUNK / 64);
    u64 bits = flags[word] & ~(u64)1;
    u64 place = chunk_rows[chunk] - head[PD_HEAD_FIRST_ROW];
    while (word < last) {
      place += pd_count_bits(bits);
      bits = flags[++word];
    }
    place += pd_count_bits(bits & (~(u64)0 >> (63 - z % 64)));
    bits = flags[word] >> (z % 64);
    for (;;) {
      real x = values[z];
      PD_UNROLL for (int l = 1; l < PD_ORDER; ++l) x *= factor[l][ids[l][z] * stride];
      pd_add_to_row(&rows, row_ids[place], x, out + column, stride, writes);
      if (++z == end) break;
      bits = z % 64 == 0 ? flags[z / 64] : bits >> 1;
      place += bits & 1;
    }
  }
  PD_ROWS_END(head[3]);
}
