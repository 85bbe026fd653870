// SPDX-License-Identifier: MIT
// Tensor times vector on HOCSR (Yang, Li and Li 2019, Algorithm 4): one row a work-item, empty rows too.
//
//   out[row] = sum over its nonzeros k of values[k] * vector[indices[k]]
//
// PD_INDEX, PD_OFFSET: u32 or u64. A part may begin and end inside a row.
// head: rows, first nonzero, end of the nonzeros; begins [rows + 1] (counted in the tensor), indices, values.
PD_KERNEL void ttv_hocsr(PD_GLOBAL const u8* PD_RESTRICT slot, PD_GLOBAL const u64* PD_RESTRICT head,
                         PD_GLOBAL const real* PD_RESTRICT factors, PD_GLOBAL real* PD_RESTRICT out,
                         PD_GLOBAL real* PD_RESTRICT seams) {
  PD_GLOBAL const PD_OFFSET* begins = (PD_GLOBAL const PD_OFFSET*)(slot + head[3]);
  PD_GLOBAL const PD_INDEX* indices = (PD_GLOBAL const PD_INDEX*)(slot + head[4]);
  PD_GLOBAL const real* values = (PD_GLOBAL const real*)(slot + head[5]);
  const u64 first = head[1];
  const u64 last = head[2];
  const u64 row = pd_group_id(0) * PD_ITEMS_0 + pd_local_id(0);
  const u64 rows = head[0];
  if (row < rows) {
    // Only the first row can have begun before the part, and only the last one go on after it.
    const u64 stop = (row + 1 == rows ? last : (u64)begins[row + 1]) - first;
    real sum = (real)0;
    for (u64 k = row == 0 ? 0 : begins[row] - first; k < stop; ++k)
      sum = pd_fma(values[k], factors[indices[k]], sum);
    out[row] = sum;
  }
}
