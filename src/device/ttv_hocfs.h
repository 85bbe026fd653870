// SPDX-License-Identifier: MIT
// Tensor times vector on HOCFS (Yang, Li and Li 2019, Algorithm 6 and figures 6, 9, 10): a grid of two directions.
// Slices run over groups and over the second direction in a group, the fibres of a slice over the first; the groups of
// the second direction share the fibres of long slices. The paper starts as many groups in both directions as the
// longest slice needs, most of them with nothing to do where slices differ; here they go on in steps.
//
//   out[fibre] = sum over its elements of value * vector[index]
//
// PD_INDEX u32 or u64; PD_OFFSET, PD_SLICE_OFFSET: of the arrays of begins, those of the slices.
// head: slices, first fibre, end of the fibres, first element, end of the elements;
//       slice_begins [slices + 1] (fibres, counted in the tensor), begins, indices, values.
// A part has all of its slices' fibres from the first to the last one, and may begin and end inside a fibre.

PD_KERNEL void ttv_hocfs_csr(PD_GLOBAL const u8* PD_RESTRICT slot, PD_GLOBAL const u64* PD_RESTRICT head,
                             PD_GLOBAL const real* PD_RESTRICT factors, PD_GLOBAL real* PD_RESTRICT out,
                             PD_GLOBAL real* PD_RESTRICT seams) {
  PD_GLOBAL const PD_SLICE_OFFSET* slice_begins = (PD_GLOBAL const PD_SLICE_OFFSET*)(slot + head[5]);
  PD_GLOBAL const PD_OFFSET* begins = (PD_GLOBAL const PD_OFFSET*)(slot + head[6]);  // [fibres + 1]
  PD_GLOBAL const PD_INDEX* indices = (PD_GLOBAL const PD_INDEX*)(slot + head[7]);
  PD_GLOBAL const real* values = (PD_GLOBAL const real*)(slot + head[8]);
  const u64 slices = head[0];
  const u64 first_fibre = head[1];
  const u64 fibres = head[2] - first_fibre;
  const u64 first = head[3];
  const u64 slice = pd_group_id(0) * PD_ITEMS_1 + pd_local_id(1);
  if (slice < slices) {
    // Only the first slice or fibre can have begun before the part, and only the last one go on after it.
    const u64 stop = slice + 1 == slices ? fibres : slice_begins[slice + 1] - first_fibre;
    u64 fibre = slice == 0 ? 0 : slice_begins[slice] - first_fibre;
    fibre += pd_group_id(1) * PD_ITEMS_0 + pd_local_id(0);
    for (; fibre < stop; fibre += pd_group_count(1) * PD_ITEMS_0) {
      const u64 end = (fibre + 1 == fibres ? head[4] : (u64)begins[fibre + 1]) - first;
      real sum = (real)0;
      for (u64 k = fibre == 0 ? 0 : begins[fibre] - first; k < end; ++k)
        sum = pd_fma(values[k], factors[indices[k]], sum);
      out[fibre] = sum;
    }
  }
}

// Rows lie interleaved in groups of 16: neighbouring work-items read neighbouring elements. begins [slices + 1] is
// where a slice's elements begin. Padding, an index with all bits set, ends a row.
PD_KERNEL void ttv_hocfs_ell(PD_GLOBAL const u8* PD_RESTRICT slot, PD_GLOBAL const u64* PD_RESTRICT head,
                             PD_GLOBAL const real* PD_RESTRICT factors, PD_GLOBAL real* PD_RESTRICT out,
                             PD_GLOBAL real* PD_RESTRICT seams) {
  PD_GLOBAL const PD_SLICE_OFFSET* slice_begins = (PD_GLOBAL const PD_SLICE_OFFSET*)(slot + head[5]);
  PD_GLOBAL const PD_OFFSET* begins = (PD_GLOBAL const PD_OFFSET*)(slot + head[6]);
  PD_GLOBAL const PD_INDEX* indices = (PD_GLOBAL const PD_INDEX*)(slot + head[7]);
  PD_GLOBAL const real* values = (PD_GLOBAL const real*)(slot + head[8]);
  const u64 first_fibre = head[1];
  const u64 first = head[3];
  const u64 last = head[4];
  const u64 slices = head[0];
  const u64 slice = pd_group_id(0) * PD_ITEMS_1 + pd_local_id(1);
  if (slice < slices) {
    const u64 slice_begin = slice_begins[slice];
    const u64 slice_end = slice_begins[slice + 1];
    const u64 element_begin = begins[slice];
    const u64 rows = slice_end - slice_begin;
    const u64 length = rows == 0 ? 0 : (begins[slice + 1] - element_begin) / rows;
    const u64 stop = slice + 1 == slices ? head[2] : slice_end;
    u64 fibre = slice == 0 ? first_fibre : slice_begin;
    fibre += pd_group_id(1) * PD_ITEMS_0 + pd_local_id(0);
    for (; fibre < stop; fibre += pd_group_count(1) * PD_ITEMS_0) {
      const u64 row = fibre - slice_begin;
      const u64 group = row / 16 * 16;  // its first row
      const u64 width = rows - group < 16 ? rows - group : 16;
      const u64 end = element_begin + group * length + width * length;
      const u64 at_end = end < last ? end : last;
      u64 at = element_begin + group * length + (row - group);
      real sum = (real)0;
      if (at < first) at += (first - at + width - 1) / width * width;
      for (; at < at_end; at += width) {
        const PD_INDEX index = indices[at - first];
        if (index == (PD_INDEX) ~(PD_INDEX)0) break;
        sum = pd_fma(values[at - first], factors[index], sum);
      }
      out[fibre - first_fibre] = sum;
    }
  }
}
