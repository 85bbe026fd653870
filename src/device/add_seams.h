// SPDX-License-Identifier: MIT
// Adds the side rows of a kernel with PD_SEAMS 1 to the output, in their order: the same bits every time. What the
// output holds comes first, so that a row that two parts share is added up as if they were one.
//
// A worker per side row: the first of a row adds up all of that row, which follow each other.
// head: chunks, stride. seams: [2 chunks] rows, then [2 chunks][stride] sums; a row of all ones: none.
PD_KERNEL void add_seams(PD_GLOBAL const u8* PD_RESTRICT slot, PD_GLOBAL const u64* PD_RESTRICT head,
                         PD_GLOBAL const real* PD_RESTRICT factors, PD_GLOBAL real* PD_RESTRICT out,
                         PD_GLOBAL real* PD_RESTRICT seams) {
  const u64 sides = 2 * head[0];
  const u64 stride = head[1];
  PD_GLOBAL const u64* rows = (PD_GLOBAL const u64*)seams;
  PD_GLOBAL const real* sums = (PD_GLOBAL const real*)(rows + sides);
  const u64 column = pd_group_id(1) * PD_ITEMS_0 + pd_local_id(0);
  u64 side = pd_group_id(0) * PD_ITEMS_1 + pd_local_id(1);
  if (column < stride && side < sides && rows[side] != ~(u64)0) {
    const u64 row = rows[side];
    // Every chunk but an empty one has its first side row; the second may be missing.
    u64 before = side;
    while (before > 0 && rows[before - 1] == ~(u64)0) --before;
    if (before == 0 || rows[before - 1] != row) {
      real sum = out[row * stride + column];
      for (; side < sides && (rows[side] == row || rows[side] == ~(u64)0); ++side)
        if (rows[side] == row) sum += sums[side * stride + column];
      out[row * stride + column] = sum;
    }
  }
  (void)slot;
  (void)factors;
}
