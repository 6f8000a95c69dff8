// C = A B, A by columns: 16 x 16 work-items compute a tile of 128 x 128 in steps of DEPTH, through local memory;
// each has 8 x 8 elements in registers, as two times four rows and two vectors of four columns.
__attribute__((reqd_work_group_size(16, 16, 1)))
kernel void mm(global const float *restrict A, global const float *restrict B, global float *restrict result) {
  local float4 a_tile[DEPTH][32], b_tile[DEPTH][32];
  const int x = get_local_id(0), y = get_local_id(1), item = y * 16 + x;
  const int row = get_group_id(1) * 128, column = get_group_id(0) * 128;
  float4 sums[8][2];
  #pragma unroll
  for (int i = 0; i < 8; i++) sums[i][0] = sums[i][1] = (float4)(0.0f);
  #pragma unroll 8
  for (int k = 0; k < K; k += DEPTH) {
    #pragma unroll
    for (int part = 0; part < DEPTH * 32; part += 256) {
      const int line = (part + item) / 32, place = (part + item) % 32;
      a_tile[line][place] = *(global const float4 *)(A + (k + line) * M + row + 4 * place);
      b_tile[line][place] = *(global const float4 *)(B + (k + line) * N + column + 4 * place);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll
    for (int step = 0; step < DEPTH; step++) {
      const float4 a0 = a_tile[step][y], a1 = a_tile[step][y + 16];
      const float4 b0 = b_tile[step][x], b1 = b_tile[step][x + 16];
      const float a[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
      #pragma unroll
      for (int i = 0; i < 8; i++) {
        sums[i][0] += a[i] * b0;
        sums[i][1] += a[i] * b1;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  #pragma unroll
  for (int i = 0; i < 8; i++) {
    global float *line = result + (row + i / 4 * 64 + 4 * y + i % 4) * N + column + 4 * x;
    *(global float4 *)line = sums[i][0];
    *(global float4 *)(line + 64) = sums[i][1];
  }
}
