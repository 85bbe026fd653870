// SPDX-License-Identifier: MIT
// Every kernel text has its own layout of the head.
#undef PD_ARRAYS
#undef PD_HEAD_ARRAYS
#undef PD_HEAD_FIRST
#undef PD_HEAD_FIRST_ROW
#undef PD_HEAD_MODES
#undef PD_HEAD_NODES
#undef PD_HEAD_SLICES
#undef PD_RANGE
