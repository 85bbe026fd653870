// SPDX-License-Identifier: MIT
// The dense part of CP-ALS on the rows of one factor, which stays where the MTTKRPs of the other modes read it:
//
//   solve_rows     A = V * W
//   gram_rows      A'A and, per column, the sum of V(i,r) * A(i,r), as partial sums over chunks of rows
//   scale_columns  A(:,r) *= scale[r]
//
// A group is PD_ITEMS_0 x PD_ITEMS_0 work-items, a tile; matrices of any rank are done tile by tile, through local
// memory. Nothing is added atomically: the same bits every time.
//
// slot     solve_rows: W, [stride][stride]; scale_columns: scale, [stride]
// head     rows of the mode, stride, where A begins in `out` in rows, rows of a chunk (a multiple of PD_DENSE_ROWS)
// factors  V: the output of the MTTKRP
// out      all factors
// seams    gram_rows: [chunks][pairs of tiles, then tiles][2][worker][lane]
#ifndef PD_FAULT
#define PD_FAULT 0  // planted by tests: 1 no barrier
#endif

#define PD_TILE PD_ITEMS_0
#define PD_DENSE_DEPTH 2  // rows of a work-item: a number of W is read once for so many; with 4, registers spill
#define PD_DENSE_ROWS (PD_DENSE_DEPTH * PD_TILE)

#define PD_DENSE_PARAMETERS                                                                         \
  PD_GLOBAL const u8 *PD_RESTRICT slot, PD_GLOBAL const u64 *PD_RESTRICT head,                      \
      PD_GLOBAL const real *PD_RESTRICT factors, PD_GLOBAL real *PD_RESTRICT out, PD_GLOBAL real *PD_RESTRICT seams

// Of the rows first, first + PD_TILE, .., which a work-item has: how many lie before `end`.
PD_FUNCTION int pd_rows_before(u64 first, u64 end) {
  const u64 rows = first < end ? (end - first + PD_TILE - 1) / PD_TILE : 0;
  return rows < PD_DENSE_DEPTH ? (int)rows : PD_DENSE_DEPTH;
}

// Groups in the first direction take PD_DENSE_ROWS rows, in the second a tile of columns.
PD_KERNEL void solve_rows(PD_DENSE_PARAMETERS) {
  PD_LOCAL(real, left, PD_DENSE_ROWS * PD_TILE);
  PD_LOCAL(real, right, PD_TILE * PD_TILE);
  const u64 stride = head[1];
  const u32 lane = pd_local_id(0);
  const u32 worker = pd_local_id(1);
  const u64 first = pd_group_id(0) * PD_DENSE_ROWS + worker;
  const u64 column = pd_group_id(1) * PD_TILE + lane;
  const int mine = pd_rows_before(first, head[0]);
  PD_GLOBAL const real* v = factors + first * stride + lane;
  PD_GLOBAL const real* w = (PD_GLOBAL const real*)slot + worker * stride + column;
  PD_ARRAY(real, sums, PD_DENSE_DEPTH);
  PD_UNROLL for (int j = 0; j < PD_DENSE_DEPTH; ++j) sums[j] = (real)0;
  for (u64 k = 0; k < stride; k += PD_TILE) {
    PD_UNROLL for (int j = 0; j < PD_DENSE_DEPTH; ++j)
        left[(j * PD_TILE + worker) * PD_TILE + lane] = j < mine && k + lane < stride ? v[j * PD_TILE * stride] : (real)0;
    right[worker * PD_TILE + lane] = k + worker < stride && column < stride ? *w : (real)0;
    v += PD_TILE;
    w += PD_TILE * stride;
#if PD_FAULT != 1
    PD_BARRIER();
#endif
    const u32 inner = stride - k < PD_TILE ? (u32)(stride - k) : PD_TILE;
    for (u32 r = 0; r < inner; ++r) {
      const real x = right[r * PD_TILE + lane];
      PD_UNROLL for (int j = 0; j < PD_DENSE_DEPTH; ++j)
          sums[j] = pd_fma(left[(j * PD_TILE + worker) * PD_TILE + r], x, sums[j]);
    }
    PD_BARRIER();
  }
  PD_GLOBAL real* a = out + (head[2] + first) * stride + column;
  PD_UNROLL for (int j = 0; j < PD_DENSE_DEPTH; ++j)
      if (j < mine && column < stride) a[j * PD_TILE * stride] = sums[j];
  (void)seams;
}

// A sum of many numbers and what was lost in rounding it (Knuth, The Art of Computer Programming 2, section 4.2.2):
// sums in f32 over long modes are as good as those of the processor, which are in f64.
typedef struct {
  real sum;
  real lost;
} pd_long_sum;

PD_FUNCTION void pd_add_long(pd_long_sum* s, real x) {
  const real sum = s->sum + x;
  const real back = sum - s->sum;
  s->lost += (s->sum - (sum - back)) + (x - back);
  s->sum = sum;
}

// Groups in the first direction take pairs of tiles (p, q <= p) of the Gram matrix: 0 0, 1 0, 1 1, 2 0, ..; in the
// second a chunk of rows. A work-item has one number of it: row `worker` of tile p, column `lane` of tile q.
PD_KERNEL void gram_rows(PD_DENSE_PARAMETERS) {
  PD_LOCAL(real, left, PD_DENSE_ROWS * PD_TILE);
  PD_LOCAL(real, right, PD_DENSE_ROWS * PD_TILE);
  const u64 stride = head[1];
  const u32 lane = pd_local_id(0);
  const u32 worker = pd_local_id(1);
  u64 p = 0;
  u64 q = pd_group_id(0);
  while (q > p) {
    ++p;
    q -= p;
  }
  const u64 row_end = (pd_group_id(1) + 1) * head[3] < head[0] ? (pd_group_id(1) + 1) * head[3] : head[0];
  const u64 p_column = p * PD_TILE + lane;
  const u64 q_column = q * PD_TILE + lane;
  PD_GLOBAL const real* a = out + head[2] * stride;
  pd_long_sum gram = {(real)0, (real)0};
  pd_long_sum inner = {(real)0, (real)0};  // of column p_column, over rows that this worker loads
  for (u64 first = pd_group_id(1) * head[3]; first < row_end; first += PD_DENSE_ROWS) {
    const int mine = pd_rows_before(first + worker, row_end);
    const u64 begin = (first + worker) * stride;
    real part = (real)0;
    PD_UNROLL for (int j = 0; j < PD_DENSE_DEPTH; ++j) {
      const u32 to = (j * PD_TILE + worker) * PD_TILE + lane;
      const u64 from = begin + j * PD_TILE * stride;
      const real x = j < mine && p_column < stride ? a[from + p_column] : (real)0;
      left[to] = x;
      right[to] = j < mine && q_column < stride ? a[from + q_column] : (real)0;
      if (p == q && j < mine && p_column < stride) part = pd_fma(factors[from + p_column], x, part);
    }
    pd_add_long(&inner, part);
    PD_BARRIER();
    part = (real)0;
    const u32 rows = row_end - first < PD_DENSE_ROWS ? (u32)(row_end - first) : PD_DENSE_ROWS;
    for (u32 i = 0; i < rows; ++i) part = pd_fma(left[i * PD_TILE + worker], right[i * PD_TILE + lane], part);
    pd_add_long(&gram, part);
    PD_BARRIER();
  }
  const u64 tiles = (stride + PD_TILE - 1) / PD_TILE;
  const u64 items = (u64)PD_TILE * PD_TILE;
  PD_GLOBAL real* sums = seams + pd_group_id(1) * (pd_group_count(0) + tiles) * 2 * items + worker * PD_TILE + lane;
  sums[pd_group_id(0) * 2 * items] = gram.sum;
  sums[pd_group_id(0) * 2 * items + items] = gram.lost;
  if (p == q) {
    sums[(pd_group_count(0) + p) * 2 * items] = inner.sum;
    sums[(pd_group_count(0) + p) * 2 * items + items] = inner.lost;
  }
  (void)slot;
}

// Groups as in solve_rows.
PD_KERNEL void scale_columns(PD_DENSE_PARAMETERS) {
  const u64 stride = head[1];
  const u64 first = pd_group_id(0) * PD_DENSE_ROWS + pd_local_id(1);
  const u64 column = pd_group_id(1) * PD_TILE + pd_local_id(0);
  const int mine = pd_rows_before(first, head[0]);
  PD_GLOBAL real* a = out + (head[2] + first) * stride + column;
  if (column < stride) {
    const real scale = ((PD_GLOBAL const real*)slot)[column];
    PD_UNROLL for (int j = 0; j < PD_DENSE_DEPTH; ++j)
        if (j < mine) a[j * PD_TILE * stride] *= scale;
  }
  (void)factors;
  (void)seams;
}
