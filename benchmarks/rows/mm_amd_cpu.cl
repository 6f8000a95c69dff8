// C = A B, A by columns: each work-item has eight rows of two vectors in registers, by name: PoCL keeps arrays in
// memory. Those of ITEMS_M x ITEMS_N work-items are interleaved.
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define START(i) float16 left##i = (float16)(0.0f), right##i = (float16)(0.0f);
#define ADD(i)                                     \
  {                                                \
    const float a = A[k * M + row + i * ITEMS_M];  \
    left##i += a * b0;                             \
    right##i += a * b1;                            \
  }
#define FINISH(i)                                                                        \
  *(global vector *)(result + (row + i * ITEMS_M) * N + column) = left##i;               \
  *(global vector *)(result + (row + i * ITEMS_M) * N + column + 16 * ITEMS_N) = right##i;
typedef float16 __attribute__((aligned(4))) vector;

__attribute__((reqd_work_group_size(ITEMS_N, ITEMS_M, 1)))
kernel void mm(global const float *restrict A, global const float *restrict B, global float *restrict result) {
  const int x = get_local_id(0), y = get_local_id(1), group_m = get_group_id(1), group_n = get_group_id(0);
  const int row = group_m * ITEMS_M * 8 + y, column = group_n * ITEMS_N * 32 + 16 * x;
  EACH(START)
  #pragma unroll 4
  for (int k = 0; k < K; k++) {
    const float16 b0 = *(global const vector *)(B + k * N + column);
    const float16 b1 = *(global const vector *)(B + k * N + column + 16 * ITEMS_N);
    EACH(ADD)
  }
  EACH(FINISH)
}
