// A layer of convolutions, 56 x 56: each channel is copied between borders of zeros, in rows of 64 elements. Then a
// work-item for two filters: a row of both is summed in fourteen vectors of eight, over all channels.
typedef float8 __attribute__((aligned(4))) eight;
#define HERE(p) (*(global const eight *)(p))
#define CHANNEL (58 * 64)

kernel void bordered(global const float *restrict X, global float *restrict padded) {
  global const float *from = X + get_group_id(0) * 56 * 56;
  global float *to = padded + get_group_id(0) * CHANNEL;
  for (int j = 0; j < 64; j++) to[j] = to[57 * 64 + j] = 0.0f;
  for (int i = 0; i < 56; i++) {
    global float *row = to + (i + 1) * 64;
    row[0] = 0.0f;
    for (int j = 0; j < 56; j++) row[j + 1] = from[i * 56 + j];
    for (int j = 57; j < 64; j++) row[j] = 0.0f;
  }
}

#define STEP(k, sum, other)                \
  {                                        \
    float8 v = HERE(row + 8 * k);          \
    sum += v * f;                          \
    other += v * h;                        \
  }
kernel void convolved(global const float *restrict padded, global const float *restrict F, global float *restrict result) {
  const int o = 2 * get_group_id(0);
  for (int i = 0; i < 56; i++) {
    float8 a0 = (float8)(0.0f), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0;
    float8 b0 = a0, b1 = a0, b2 = a0, b3 = a0, b4 = a0, b5 = a0, b6 = a0;
    for (int c = 0; c < C; c++) {
      #pragma unroll
      for (int k = 0; k < 9; k++) {
        global const float *row = padded + c * CHANNEL + (i + k / 3) * 64 + k % 3;
        const float f = F[(o * C + c) * 9 + k], h = F[((o + 1) * C + c) * 9 + k];
        STEP(0, a0, b0) STEP(1, a1, b1) STEP(2, a2, b2) STEP(3, a3, b3) STEP(4, a4, b4) STEP(5, a5, b5) STEP(6, a6, b6)
      }
    }
    global eight *out = (global eight *)(result + (o * 56 + i) * 56), *next = (global eight *)(result + ((o + 1) * 56 + i) * 56);
    out[0] = a0, out[1] = a1, out[2] = a2, out[3] = a3, out[4] = a4, out[5] = a5, out[6] = a6;
    next[0] = b0, next[1] = b1, next[2] = b2, next[3] = b3, next[4] = b4, next[5] = b5, next[6] = b6;
  }
}
