// SPDX-License-Identifier: MIT
// What the MTTKRP texts share: who works on what, the product of factor rows, and where sums of rows go.
//
// A group is PD_ITEMS_0 lanes, one column each, times PD_ITEMS_1 workers. A group takes a run of nonzeros, a worker a
// piece of it; groups in the second direction take further blocks of columns.
//
// Where nonzeros are sorted by the output row, a worker adds up a row in a register. All rows between the first and the
// last of its piece are its own. The first and the last rows of the workers meet in local memory; there the same
// holds for the group: only its first and its last row can be shared with other groups. These are the seams.
#define PD_SEAMS_ATOMIC 0  // added atomically
#define PD_SEAMS_SIDE 1    // put aside; add_seams adds them in order: the same bits every time
#define PD_SEAMS_OWN 2     // not shared: groups have rows of their own
#ifndef PD_SEAMS
#define PD_SEAMS PD_SEAMS_ATOMIC
#endif
#ifndef PD_FAULT
#define PD_FAULT 0  // planted by tests: 1 no barrier, 2 no atomic addition, 3 beyond the output, 4 beyond local memory,
                    // 5 not written
#endif

#define PD_PARAMETERS                                                                               \
  PD_GLOBAL const u8 *PD_RESTRICT slot, PD_GLOBAL const u64 *PD_RESTRICT head,                     \
      PD_GLOBAL const real *PD_RESTRICT factors, PD_GLOBAL real *PD_RESTRICT out, PD_GLOBAL real *PD_RESTRICT seams

// Array k of the part.
#define PD_SLOT(type, k) ((PD_GLOBAL const type*)(slot + head[PD_HEAD_ARRAYS + (k)]))
// Where the factor of level k (numbers[PD_HEAD_MODES + k] is its mode) begins, with the column of this work-item.
#define PD_FACTOR(k, arrays) (factors + head[PD_HEAD_ARRAYS + (arrays) + head[PD_HEAD_MODES + (k)]] * stride + column)

#define PD_NO_ROW (~(u64)0)

PD_FUNCTION u64 pd_least(u64 a, u64 b) { return a < b ? a : b; }

// The column of this work-item; lanes beyond the last one read the last and write nothing.
PD_FUNCTION u64 pd_column(void) { return pd_group_id(1) * PD_ITEMS_0 + pd_local_id(0); }

// The piece [*begin, *end) of a run that belongs to this worker, one behind the other.
PD_FUNCTION void pd_share(u64 run_begin, u64 run_end, u64* begin, u64* end) {
  const u64 each = (run_end - run_begin + PD_ITEMS_1 - 1) / PD_ITEMS_1;
  *begin = pd_least(run_begin + pd_local_id(1) * each, run_end);
  *end = pd_least(*begin + each, run_end);
}

#ifdef PD_RANGE
// The last of `count` ranges that begins at x or before; PD_RANGE is the type of their begins.
PD_FUNCTION u64 pd_range_of(PD_GLOBAL const PD_RANGE* begins, u64 count, u64 x) {
  u64 low = 0;
  u64 high = count;
  while (high - low > 1) {
    const u64 middle = low + (high - low) / 2;
    if (begins[middle] <= x) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}
#endif

// What kernels begin with that add up rows in registers: the column of this work-item, and where the group's first and
// last rows will meet.
#define PD_ROWS_BEGIN(row_stride)                            \
  PD_LOCAL(real, side_sums, 2 * PD_ITEMS_1 * PD_ITEMS_0);    \
  PD_LOCAL(u64, side_rows, 2 * PD_ITEMS_1);                  \
  const u64 stride = row_stride;                             \
  const u64 lane_column = pd_column();                       \
  const u64 column = pd_least(lane_column, stride - 1);      \
  const int writes = lane_column == column;                  \
  pd_rows rows;                                              \
  pd_begin_rows(&rows)

// And what they end with. All work-items of the group come here.
#define PD_ROWS_END(chunks) \
  pd_finish_rows(&rows, side_sums, side_rows, out + column, seams, stride, column, writes, chunks)

PD_FUNCTION void pd_add_shared(PD_GLOBAL real* to, real x) {
#if PD_FAULT == 2
  *to += x;
#else
  pd_atomic_add(to, x);
#endif
}

// The rows of a worker: the first that is over, and the one that is being added up.
typedef struct {
  u64 first_row;
  u64 row;
  real first_sum;
  real sum;
  u32 rows;  // so far
} pd_rows;

PD_FUNCTION void pd_begin_rows(pd_rows* r) {
  r->first_row = PD_NO_ROW;
  r->row = PD_NO_ROW;
  r->first_sum = (real)0;
  r->sum = (real)0;
  r->rows = 0;
}

// Adds x to a row; rows come in ascending order. `out_column` is the column of this work-item.
PD_FUNCTION void pd_add_to_row(pd_rows* r, u64 row, real x, PD_GLOBAL real* out_column, u64 stride, int writes) {
  if (row == r->row) {
    r->sum += x;
  } else {
    if (r->rows == 1) {
      r->first_row = r->row;
      r->first_sum = r->sum;
    } else if (r->rows > 1 && writes) {
      out_column[r->row * stride] = r->sum;
    }
    r->row = row;
    r->sum = x;
    ++r->rows;
  }
}

// A row that the group adds to what others add.
PD_FUNCTION void pd_put_seam(u64 side, u64 row, real x, PD_GLOBAL real* out_column, PD_GLOBAL real* seams, u64 stride,
                             u64 column, u64 chunks) {
  if (PD_SEAMS == PD_SEAMS_SIDE) {
    // [2 chunks] rows, then [2 chunks][stride] sums
    ((PD_GLOBAL real*)((PD_GLOBAL u64*)seams + 2 * chunks))[side * stride + column] = x;
    if (column == 0) ((PD_GLOBAL u64*)seams)[side] = row;
  } else if (PD_SEAMS == PD_SEAMS_OWN) {
    out_column[row * stride] += x;
  } else {
    pd_add_shared(out_column + row * stride, x);
  }
}

// The end of a group: all its work-items call this. `sums` has room for 2 * workers * lanes, `rows` for 2 * workers;
// both in local memory.
PD_FUNCTION void pd_finish_rows(const pd_rows* r, PD_IN_LOCAL real* sums, PD_IN_LOCAL u64* rows,
                                PD_GLOBAL real* out_column, PD_GLOBAL real* seams, u64 stride, u64 column, int writes,
                                u64 chunks) {
  const u32 lane = pd_local_id(0);
  const u32 worker = pd_local_id(1);
  const u64 chunk = pd_group_id(0);
  sums[2 * worker * PD_ITEMS_0 + lane] = r->rows > 1 ? r->first_sum : r->sum;
#if PD_FAULT != 5
  sums[(2 * worker + 1) * PD_ITEMS_0 + lane] = r->sum;
#endif
#if PD_FAULT == 4
  sums[(2 * worker + 2) * PD_ITEMS_0 + lane] = r->sum;
#endif
  if (lane == 0) {
    rows[2 * worker] = r->rows > 1 ? r->first_row : r->row;
    rows[2 * worker + 1] = r->rows > 1 ? r->row : PD_NO_ROW;
  }
#if PD_FAULT != 1
  PD_BARRIER();
#endif
  if (worker == 0 && writes) {
    u64 row = PD_NO_ROW;
    real sum = (real)0;
    u32 found = 0;
    for (u32 i = 0; i < 2 * PD_ITEMS_1; ++i) {
      const u64 next = rows[i];
      if (next != PD_NO_ROW) {
        const real x = sums[i * PD_ITEMS_0 + lane];
        if (next == row) {
          sum += x;
        } else {
          if (found == 1) {
            pd_put_seam(2 * chunk, row, sum, out_column, seams, stride, column, chunks);
          } else if (found > 1) {
            out_column[row * stride] = sum;
          }
          row = next;
          sum = x;
          ++found;
        }
      }
    }
    if (found > 0) pd_put_seam(2 * chunk + (found > 1), row, sum, out_column, seams, stride, column, chunks);
    if (PD_SEAMS == PD_SEAMS_SIDE && column == 0) {
      if (found == 0) ((PD_GLOBAL u64*)seams)[2 * chunk] = PD_NO_ROW;
      if (found < 2) ((PD_GLOBAL u64*)seams)[2 * chunk + 1] = PD_NO_ROW;
    }
#if PD_FAULT == 3
    out_column[(row + 1) * stride] = sum;
#endif
  }
}
