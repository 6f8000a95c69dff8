// The sums of 128 products, by a tree in local memory: one chunk of 128 elements a group.
// Indices are int from the start: a size_t that is cut to int hides from Intel's compiler that they are adjacent.
// ITEM is get_local_id(0) for PoCL and the variable for the others: each shortens its loop over work-items so.
#define HALVE(left)                     \
  barrier(CLK_LOCAL_MEM_FENCE);         \
  if (ITEM < left) sums[item] += sums[item + left]

__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void partial_dot(global const float *restrict x, global const float *restrict y, global float *restrict result) {
  local float sums[64];
  const int item = get_local_id(0), group = get_group_id(0);
  const int first = group * 128 + item;
  sums[item] = x[first] * y[first] + x[first + 64] * y[first + 64];
  HALVE(32);
  HALVE(16);
  HALVE(8);
  HALVE(4);
  HALVE(2);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) result[group] = sums[0] + sums[1];
}
