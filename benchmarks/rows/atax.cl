// y = A'(A x), in two kernels. In the first ROWS rows a group, LANES work-items a row, STEPS elements each of a
// staged chunk of x; in the second COLUMNS columns a group, DEPTH work-items a column, STRIDES rows each of a chunk.
#define HALVE(left)                                                               \
  if (LANES > left) {                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                 \
    if (lane < left) sums[own * LANES + lane] += sums[own * LANES + lane + left]; \
  }
#define HALVE_DEPTH(left)                                                                \
  if (DEPTH > left) {                                                                    \
    barrier(CLK_LOCAL_MEM_FENCE);                                                        \
    if (own < left) sums[own * COLUMNS + lane] += sums[(own + left) * COLUMNS + lane];   \
  }

__attribute__((reqd_work_group_size(LANES, ROWS, 1)))
kernel void product(global const float *restrict A, global const float *restrict x, global float *restrict between) {
  local float staged[LANES * STEPS], sums[ROWS * LANES];
  const int lane = get_local_id(0), own = get_local_id(1), group = get_group_id(1);
  const int row = group * ROWS + own;
  float sum = 0.0f;
  for (int k = 0; k < K; k += LANES * STEPS) {
    if (STEPS >= ROWS || own < STEPS) {
      #pragma unroll
      for (int i = 0; i < STEPS; i += ROWS) {
        staged[(i + own) * LANES + lane] = x[k + (i + own) * LANES + lane];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll
    for (int i = 0; i < STEPS; i++) sum += A[row * K + k + i * LANES + lane] * staged[i * LANES + lane];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sums[own * LANES + lane] = sum;
  HALVE(128);
  HALVE(64);
  HALVE(32);
  HALVE(16);
  HALVE(8);
  HALVE(4);
  HALVE(2);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane == 0) between[row] = sums[own * LANES] + sums[own * LANES + 1];
}

__attribute__((reqd_work_group_size(COLUMNS, DEPTH, 1)))
kernel void transposed(global const float *restrict A, global const float *restrict between,
                       global float *restrict result) {
  local float staged[DEPTH * STRIDES], sums[DEPTH * COLUMNS];
  const int lane = get_local_id(0), own = get_local_id(1), group = get_group_id(0);
  const int column = group * COLUMNS + lane;
  float sum = 0.0f;
  for (int m = 0; m < M; m += DEPTH * STRIDES) {
    if (lane < STRIDES) staged[own * STRIDES + lane] = between[m + own * STRIDES + lane];
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll
    for (int i = 0; i < STRIDES; i++) sum += A[(m + i * DEPTH + own) * K + column] * staged[i * DEPTH + own];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sums[own * COLUMNS + lane] = sum;
  HALVE_DEPTH(16);
  HALVE_DEPTH(8);
  HALVE_DEPTH(4);
  HALVE_DEPTH(2);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (own == 0) result[column] = sums[lane] + sums[COLUMNS + lane];
}
