// SPDX-License-Identifier: MIT
// Tensor times vector on HOCOO (Yang, Li and Li 2019, Algorithm 3): multiply, then segmented reduction. The nonzeros of
// a part are sorted so that its fibres are runs of equal coordinates in the other modes.
//
//   out[run] = sum over the nonzeros k of the run of values[k] * vector[indices[k]]
//
// A group takes a chunk of PD_CHUNK nonzeros. A work-item sums PD_CHUNK / PD_ITEMS_0 of them that follow each other; a
// scan over the work-items joins runs that go over the border of two. What a chunk has of a run that began before it
// goes to seams[chunk], and the second kernel adds that in order: no atomics, the same bits every time.
// PD_INDEX, PD_OFFSET: u32 or u64; PD_ORDER modes.
// A part may begin inside a run; its first nonzero always counts as the beginning of one.
// head: nonzeros, chunks, the run of its first nonzero; begins [chunks + 1]: runs that begin before a chunk (counted in
//       the tensor), values, indices of the vector's mode, indices of the other modes (PD_ORDER - 1 arrays).
#define EACH (PD_CHUNK / PD_ITEMS_0)
// One empty place per work-item, so that neighbours that walk side by side do so in different banks.
#define PLACE(k) ((k) + (k) / EACH)

// Runs of the part that begin before a chunk.
PD_FUNCTION u64 runs_before(PD_GLOBAL const PD_OFFSET* begins, u64 first_run, u64 chunk) {
  return chunk == 0 ? 0 : begins[chunk] - first_run;
}

PD_KERNEL void ttv_hocoo(PD_GLOBAL const u8* PD_RESTRICT slot, PD_GLOBAL const u64* PD_RESTRICT head,
                         PD_GLOBAL const real* PD_RESTRICT factors, PD_GLOBAL real* PD_RESTRICT out,
                         PD_GLOBAL real* PD_RESTRICT seams) {
  PD_LOCAL(real, products, PD_CHUNK + PD_ITEMS_0);
  PD_LOCAL(u8, begins_run, PD_CHUNK);
  PD_LOCAL(real, tails, PD_ITEMS_0);  // what a work-item and those before it have of the run that goes on
  PD_LOCAL(u32, counts, PD_ITEMS_0);  // runs that begin in them
  PD_GLOBAL const PD_OFFSET* begins = (PD_GLOBAL const PD_OFFSET*)(slot + head[3]);
  PD_GLOBAL const real* values = (PD_GLOBAL const real*)(slot + head[4]);
  PD_GLOBAL const PD_INDEX* indices = (PD_GLOBAL const PD_INDEX*)(slot + head[5]);
  const u64 chunk = pd_group_id(0);
  const u64 first = chunk * PD_CHUNK;
  const u32 size = (u32)(head[0] - first < PD_CHUNK ? head[0] - first : PD_CHUNK);
  const u32 me = pd_local_id(0);

  for (u32 k = me; k < size; k += PD_ITEMS_0) {
    const u64 at = first + k;
    u32 differs = at == 0;
    for (u32 m = 0; at > 0 && m < PD_ORDER - 1; ++m) {
      PD_GLOBAL const PD_INDEX* other = (PD_GLOBAL const PD_INDEX*)(slot + head[6 + m]);
      differs |= other[at] != other[at - 1];
    }
    begins_run[k] = (u8)differs;
    products[PLACE(k)] = values[at] * factors[indices[at]];
  }
  PD_BARRIER();

  const u32 begin = me * EACH < size ? me * EACH : size;
  const u32 end = begin + EACH < size ? begin + EACH : size;
  u32 count = 0;
  real tail = (real)0;
  for (u32 k = begin; k < end; ++k) {
    tail = begins_run[k] ? products[PLACE(k)] : tail + products[PLACE(k)];
    count += begins_run[k];
  }
  tails[me] = tail;
  counts[me] = count;
  PD_BARRIER();
  // Segmented inclusive scan: (a, m) then (b, n) is (n > 0 ? b : a + b, m + n).
  for (u32 step = 1; step < PD_ITEMS_0; step *= 2) {
    const real tail_before = me >= step ? tails[me - step] : (real)0;
    const u32 count_before = me >= step ? counts[me - step] : 0;
    PD_BARRIER();
    if (count == 0) tail = tail_before + tail;
    count += count_before;
    tails[me] = tail;
    counts[me] = count;
    PD_BARRIER();
  }

  u32 begun = me > 0 ? counts[me - 1] : 0;  // runs of the chunk so far: the last of them is the one that goes on
  real sum = me > 0 ? tails[me - 1] : (real)0;
  const u64 run = runs_before(begins, head[2], chunk);
  for (u32 k = begin; k < end; ++k) {
    if (begins_run[k]) {
      if (begun > 0)
        out[run + begun - 1] = sum;
      else
        seams[chunk] = sum;
      ++begun;
      sum = products[PLACE(k)];
    } else {
      sum += products[PLACE(k)];
    }
  }
  if (begin < end && end == size) {
    if (begun > 0)
      out[run + begun - 1] = sum;
    else
      seams[chunk] = sum;
  }
}

// The first chunk after one in which a run begins collects what this and the next ones have of the last run in it.
PD_KERNEL void ttv_hocoo_seams(PD_GLOBAL const u8* PD_RESTRICT slot, PD_GLOBAL const u64* PD_RESTRICT head,
                               PD_GLOBAL const real* PD_RESTRICT factors, PD_GLOBAL real* PD_RESTRICT out,
                               PD_GLOBAL real* PD_RESTRICT seams) {
  PD_GLOBAL const PD_OFFSET* begins = (PD_GLOBAL const PD_OFFSET*)(slot + head[3]);
  const u64 chunks = head[1];
  u64 chunk = pd_group_id(0) * PD_ITEMS_0 + pd_local_id(0);
  if (chunk > 0 && chunk < chunks) {
    const u64 begun = runs_before(begins, head[2], chunk);
    if (begun > runs_before(begins, head[2], chunk - 1)) {
      real sum = out[begun - 1] + seams[chunk];
      while (chunk + 1 < chunks && runs_before(begins, head[2], chunk + 1) == begun) sum += seams[++chunk];
      out[begun - 1] = sum;
    }
  }
}
