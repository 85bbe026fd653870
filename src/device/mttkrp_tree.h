// SPDX-License-Identifier: MIT
// MTTKRP on trees of fibres: CSF (Smith and Karypis), and B-CSF (Nisa et al., section IV), whose long fibres are several
// nodes and whose heavy slices are spread over groups.
//
// A worker walks along a piece of the leaves. Sums go upwards from the leaves to the output's level, products of factor
// rows downwards from the root to it:
//
//   root   out(i_0) += sum over i_1 of factor_1(i_1) * sum over i_2 of factor_2(i_2) * ...
//   level  out(i_L) += factor_0(i_0) * .. * factor_{L-1}(i_{L-1}) * (the sum below i_L)
//
// PD_ORDER; PD_LEVEL of the output mode; PD_INDEX of ids, PD_OFFSET of pointers.
// PD_RUNS who takes which leaves: 0 a group per slice, 1 a group per PD_BINS bins, 2 equal runs.
// head: first leaf, end of the leaves, leaves of a group (runs 2) or bins (runs 1), stride, chunks, mode of every level,
//       first node of every level, nodes of every level;
//       ids per level, pointers per level but the last, values, segments of the bins (runs 1)
// Nodes are counted in the tree, not in the part; a part may begin and end inside any node.
#undef PD_LEAST_GROUPS
#define PD_LEAST_GROUPS , 2  // CUDA: no spills (prelude_cuda.h)
#define PD_RANGE PD_OFFSET
#define PD_HEAD_MODES 5
#define PD_HEAD_FIRST (PD_HEAD_MODES + PD_ORDER)
#define PD_HEAD_NODES (PD_HEAD_FIRST + PD_ORDER)
#define PD_HEAD_ARRAYS (PD_HEAD_NODES + PD_ORDER)
#include "rows.h"

#define PD_LEAF (PD_ORDER - 1)
#define PD_FIBRE (PD_ORDER - 2)
#define PD_ARRAYS (2 * PD_ORDER + (PD_RUNS == 1))

PD_KERNEL void mttkrp_tree(PD_PARAMETERS) {
  PD_ROWS_BEGIN(head[3]);
  PD_ARRAY(PD_GLOBAL const PD_INDEX*, ids, PD_ORDER);        // ids[l][node - first[l]]
  PD_ARRAY(PD_GLOBAL const PD_OFFSET*, pointers, PD_ORDER);  // the last is not there
  PD_ARRAY(PD_GLOBAL const real*, factor, PD_ORDER);
  PD_ARRAY(u64, first, PD_ORDER);
  PD_ARRAY(u64, node, PD_ORDER);  // where the walk is
  PD_ARRAY(u64, stop, PD_ORDER);  // end of the children of node[l]
  PD_ARRAY(real, sum, PD_ORDER);  // of the children of node[l] so far
  PD_ARRAY(real, down, PD_ORDER); // product of the rows of levels up to l
  PD_GLOBAL const real* values = PD_SLOT(real, 2 * PD_ORDER - 1);
  PD_UNROLL for (int l = 0; l < PD_ORDER; ++l) {
    ids[l] = PD_SLOT(PD_INDEX, l);
    pointers[l] = PD_SLOT(PD_OFFSET, PD_ORDER + (l < PD_LEAF ? l : 0));
    factor[l] = PD_FACTOR(l, PD_ARRAYS);
    first[l] = head[PD_HEAD_FIRST + l];
    sum[l] = (real)0;
    down[l] = (real)1;
  }

  // The leaves of the group.
  u64 run_begin = head[0];
  u64 run_end = head[1];
  if (PD_RUNS == 0) {
    u64 begin = pd_group_id(0);
    u64 end = begin + 1;
    begin += first[0];
    end += first[0];
    PD_UNROLL for (int l = 0; l < PD_LEAF; ++l) {
      // Nodes at the ends of a part have children outside of it.
      const u64 low = first[l];
      const u64 high = low + head[PD_HEAD_NODES + l];
      begin = begin <= low ? first[l + 1] : (u64)pointers[l][begin - low];
      end = end >= high ? first[l + 1] + head[PD_HEAD_NODES + l + 1] : (u64)pointers[l][end - low];
    }
    run_begin = begin;
    run_end = end;
  } else if (PD_RUNS == 1) {
    PD_GLOBAL const u64* segments = PD_SLOT(u64, 2 * PD_ORDER);  // [bins + 1]
    const u64 bin = pd_group_id(0) * PD_BINS;
    run_begin = pointers[PD_FIBRE][segments[bin] - first[PD_FIBRE]];
    run_end = pointers[PD_FIBRE][segments[pd_least(bin + PD_BINS, head[2])] - first[PD_FIBRE]];
  } else {
    run_begin = pd_least(head[0] + pd_group_id(0) * head[2], head[1]);
    run_end = pd_least(run_begin + head[2], head[1]);
  }

  u64 z;
  u64 end;
  pd_share(run_begin, run_end, &z, &end);
  if (z < end) {
    node[PD_LEAF] = z;
    PD_UNROLL for (int l = PD_FIBRE; l >= 0; --l)
      node[l] = first[l] + pd_range_of(pointers[l], head[PD_HEAD_NODES + l], node[l + 1]);
  }
  int changed = 0;  // levels from here on are at other nodes than before
  while (z < end) {
    PD_UNROLL for (int l = 0; l < PD_LEAF; ++l) {
      if (l >= changed) {
        stop[l] = pointers[l][node[l] - first[l] + 1];
        if (l < PD_LEVEL)
          down[l] = (l > 0 ? down[l > 0 ? l - 1 : 0] : (real)1) * factor[l][ids[l][node[l] - first[l]] * stride];
      }
    }
    const u64 fibre_end = pd_least(stop[PD_FIBRE], end);
    real x = (real)0;
    if (PD_LEVEL == PD_LEAF) {
      for (; z < fibre_end; ++z)
        if (writes)
          pd_add_shared(out + ids[PD_LEAF][z - first[PD_LEAF]] * stride + column,
                        down[PD_FIBRE] * values[z - first[PD_LEAF]]);
    } else {
      for (; z < fibre_end; ++z)
        x = pd_fma(values[z - first[PD_LEAF]], factor[PD_LEAF][ids[PD_LEAF][z - first[PD_LEAF]] * stride], x);
    }
    // Upwards as long as a node is over; at the end of the piece all are.
    int over = 1;
    PD_UNROLL for (int l = PD_FIBRE; l >= 0; --l) {
      if (over) {
        const int up = l > 0 ? l - 1 : 0;
        if (l == PD_LEVEL && l == 0) {
          pd_add_to_row(&rows, ids[l][node[l] - first[l]], x, out + column, stride, writes);
        } else if (l == PD_LEVEL) {
          if (writes) pd_add_shared(out + ids[l][node[l] - first[l]] * stride + column, down[up] * x);
        } else if (l > PD_LEVEL) {
          sum[up] = pd_fma(x, factor[l][ids[l][node[l] - first[l]] * stride], sum[up]);
        }
        ++node[l];
        changed = l;
        over = l > 0 && (node[l] == stop[up] || z == end);
        if (over && l > PD_LEVEL) {
          x = sum[up];
          sum[up] = (real)0;
        }
      }
    }
  }
  if (PD_LEVEL == 0)
    PD_ROWS_END(head[4]);
}
