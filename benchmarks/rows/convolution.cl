// A separable filter of 17 taps, along rows and then along columns; outside the image is 0. A group stages a tile in
// local memory, and each of its work-items has eight elements of the result.

__attribute__((reqd_work_group_size(16, 4, 1)))
kernel void rows(global const float *restrict image, global const float *restrict weights,
                 global float *restrict between) {
  local float tile[4][144];
  const int x = get_local_id(0), y = get_local_id(1), group_x = get_group_id(0), group_y = get_group_id(1);
  const int row = group_y * 4 + y, left = group_x * 128;
  #pragma unroll
  for (int part = 0; part < 9; part++) {
    const int column = left - 8 + part * 16 + x;
    tile[y][part * 16 + x] = column >= 0 && column < W ? image[row * W + column] : 0.0f;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  #pragma unroll
  for (int part = 0; part < 8; part++) {
    float sum = 0.0f;
    #pragma unroll
    for (int tap = 0; tap < 17; tap++) sum += tile[y][part * 16 + x + tap] * weights[tap];
    between[row * W + left + part * 16 + x] = sum;
  }
}

__attribute__((reqd_work_group_size(16, 8, 1)))
kernel void columns(global const float *restrict between, global const float *restrict weights,
                    global float *restrict result) {
  local float tile[80][16];
  const int x = get_local_id(0), y = get_local_id(1), group_x = get_group_id(0), group_y = get_group_id(1);
  const int column = group_x * 16 + x, top = group_y * 64;
  #pragma unroll
  for (int part = 0; part < 10; part++) {
    const int row = top - 8 + part * 8 + y;
    tile[part * 8 + y][x] = row >= 0 && row < H ? between[row * W + column] : 0.0f;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  #pragma unroll
  for (int part = 0; part < 8; part++) {
    float sum = 0.0f;
    #pragma unroll
    for (int tap = 0; tap < 17; tap++) sum += tile[part * 8 + y + tap][x] * weights[tap];
    result[(top + part * 8 + y) * W + column] = sum;
  }
}
