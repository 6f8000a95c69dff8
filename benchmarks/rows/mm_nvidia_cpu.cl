// C = A B, A by columns: ITEMS_M x ITEMS_N work-items compute a tile in steps of DEPTH, through local memory; each has
// eight rows of two vectors in registers, by name: PoCL keeps arrays in memory.
#define TILE_M (ITEMS_M * 8)
#define ACROSS (ITEMS_N * 2)
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define START(i) float16 left##i = (float16)(0.0f), right##i = (float16)(0.0f);
#define ADD(i)                                             \
  {                                                        \
    const float a = a_tile[step * TILE_M + i * ITEMS_M + y]; \
    left##i += a * b0;                                     \
    right##i += a * b1;                                    \
  }
#define FINISH(i)                                                                                   \
  *(global vector *)(result + (row + i * ITEMS_M + y) * N + column + 16 * x) = left##i;             \
  *(global vector *)(result + (row + i * ITEMS_M + y) * N + column + 16 * (x + ITEMS_N)) = right##i;
typedef float16 __attribute__((aligned(4))) vector;

__attribute__((reqd_work_group_size(ITEMS_N, ITEMS_M, 1)))
kernel void mm(global const float *restrict A, global const float *restrict B, global float *restrict result) {
  local float a_tile[DEPTH * TILE_M] __attribute__((aligned(64)));
  local float16 b_tile[DEPTH * ACROSS];
  const int x = get_local_id(0), y = get_local_id(1), item = y * ITEMS_N + x;
  const int group_m = get_group_id(1), group_n = get_group_id(0);
  const int row = group_m * TILE_M, column = group_n * ACROSS * 16;
  EACH(START)
  for (int k = 0; k < K; k += DEPTH) {
    for (int part = 0; part < DEPTH * TILE_M / 16; part += ITEMS_M * ITEMS_N) {
      const int line = (part + item) / (TILE_M / 16), place = (part + item) % (TILE_M / 16);
      *(local float16 *)(a_tile + 16 * (part + item)) = *(global const vector *)(A + (k + line) * M + row + 16 * place);
    }
    for (int part = 0; part < DEPTH * ACROSS; part += ITEMS_M * ITEMS_N) {
      const int line = (part + item) / ACROSS, place = (part + item) % ACROSS;
      b_tile[part + item] = *(global const vector *)(B + (k + line) * N + column + 16 * place);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll 4  // else PoCL runs each step for the whole group, with the registers in memory
    for (int step = 0; step < DEPTH; step++) {
      const float16 b0 = b_tile[step * ACROSS + x], b1 = b_tile[step * ACROSS + x + ITEMS_N];
      EACH(ADD)
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  EACH(FINISH)
}
