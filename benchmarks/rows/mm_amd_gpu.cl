// C = A B, A by columns: each work-item has 8 x 8 elements in registers, as two times four rows and two vectors of four
// columns; those of 16 x 16 work-items are interleaved, so that neighbours read neighbouring vectors.
__attribute__((reqd_work_group_size(16, 16, 1)))
kernel void mm(global const float *restrict A, global const float *restrict B, global float *restrict result) {
  const int x = get_local_id(0), y = get_local_id(1), group_m = get_group_id(1), group_n = get_group_id(0);
  const int row = group_m * 128 + 4 * y, column = group_n * 128 + 4 * x;
  float4 sums[8][2];
  #pragma unroll
  for (int i = 0; i < 8; i++) sums[i][0] = sums[i][1] = (float4)(0.0f);
  for (int k = 0; k < K; k++) {
    global const float4 *a_line = (global const float4 *)(A + k * M + row);
    global const float4 *b_line = (global const float4 *)(B + k * N + column);
    const float4 a0 = a_line[0], a1 = a_line[16], b0 = b_line[0], b1 = b_line[16];
    const float a[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
    #pragma unroll
    for (int i = 0; i < 8; i++) {
      sums[i][0] += a[i] * b0;
      sums[i][1] += a[i] * b1;
    }
  }
  #pragma unroll
  for (int i = 0; i < 8; i++) {
    global float *line = result + (row + i / 4 * 64 + i % 4) * N + column;
    *(global float4 *)line = sums[i][0];
    *(global float4 *)(line + 64) = sums[i][1];
  }
}
