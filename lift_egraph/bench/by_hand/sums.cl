// Sums of N elements: a chunk each for ITEMS work-items, four vectors at a time; then the sum of their sums.
#define LENGTH (N / ITEMS)
#define ABS(v) as_float16(as_int16(v) & 0x7fffffff)

kernel void asum(global const float *restrict x, global float *restrict partial) {
  global const float *own = x + get_group_id(0) * LENGTH;
  float16 a = BROAD(0.0f), b = a, c = a, d = a;
  for (int i = 0; i < LENGTH; i += 64) {
    a += ABS(AT(own + i));
    b += ABS(AT(own + i + 16));
    c += ABS(AT(own + i + 32));
    d += ABS(AT(own + i + 48));
  }
  partial[get_group_id(0)] = sum16((a + b) + (c + d));
}

kernel void dots(global const float *restrict x, global const float *restrict y, global float *restrict partial) {
  const int at = get_group_id(0) * LENGTH;
  float16 a = BROAD(0.0f), b = a, c = a, d = a;
  for (int i = at; i < at + LENGTH; i += 64) {
    a += AT(x + i) * AT(y + i);
    b += AT(x + i + 16) * AT(y + i + 16);
    c += AT(x + i + 32) * AT(y + i + 32);
    d += AT(x + i + 48) * AT(y + i + 48);
  }
  partial[get_group_id(0)] = sum16((a + b) + (c + d));
}

kernel void combined(global const float *restrict partial, global float *restrict result) {
  float sum = 0.0f;
  for (int i = 0; i < ITEMS; i++) sum += partial[i];
  result[0] = sum;
}
