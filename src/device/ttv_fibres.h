// SPDX-License-Identifier: MIT
// Tensor times vector where fibres lie one behind the other, a fibre a work-item (Yang, Li and Li 2019): the rows of
// HOCSR, empty ones too (Algorithm 4), and the buckets of CFB (Algorithm 5).
//
//   out[fibre] = sum over its nonzeros k of values[k] * vector[indices[k]]
//
// Where the sums belong (Tb of CFB) is known to the host and stays there. A part may begin and end inside a fibre.
// PD_INDEX, PD_OFFSET: u32 or u64.
// head: fibres, first nonzero, end of the nonzeros; begins [fibres + 1] (counted in the tensor), indices, values.
PD_KERNEL void ttv_fibres(PD_GLOBAL const u8* PD_RESTRICT slot, PD_GLOBAL const u64* PD_RESTRICT head,
                          PD_GLOBAL const real* PD_RESTRICT factors, PD_GLOBAL real* PD_RESTRICT out,
                          PD_GLOBAL real* PD_RESTRICT seams) {
  PD_GLOBAL const PD_OFFSET* begins = (PD_GLOBAL const PD_OFFSET*)(slot + head[3]);
  PD_GLOBAL const PD_INDEX* indices = (PD_GLOBAL const PD_INDEX*)(slot + head[4]);
  PD_GLOBAL const real* values = (PD_GLOBAL const real*)(slot + head[5]);
  const u64 first = head[1];
  const u64 last = head[2];
  const u64 fibre = pd_group_id(0) * PD_ITEMS_0 + pd_local_id(0);
  const u64 fibres = head[0];
  if (fibre < fibres) {
    // Only the first fibre can have begun before the part, and only the last one go on after it.
    const u64 stop = (fibre + 1 == fibres ? last : (u64)begins[fibre + 1]) - first;
    real sum = (real)0;
    for (u64 k = fibre == 0 ? 0 : begins[fibre] - first; k < stop; ++k)
      sum = pd_fma(values[k], factors[indices[k]], sum);
    out[fibre] = sum;
  }
}
