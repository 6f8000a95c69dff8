// Prefix sums in two passes over CHUNKS chunks: the sum of each; then each from the sum of those before it.
#define LENGTH (N / CHUNKS)
typedef int16 __attribute__((aligned(4))) ints;

kernel void sums(global const int *restrict xs, global int *restrict partial) {
  global const int *own = xs + get_group_id(0) * LENGTH;
  int16 a = (int16)(0), b = a;
  for (int i = 0; i < LENGTH; i += 32) {
    a += *(global const ints *)(own + i);
    b += *(global const ints *)(own + i + 16);
  }
  a += b;
  int8 h = a.lo + a.hi;
  int4 q = h.lo + h.hi;
  partial[get_group_id(0)] = (q.s0 + q.s1) + (q.s2 + q.s3);
}

kernel void scanned(global const int *restrict xs, global const int *restrict partial, global int *restrict result) {
  const int at = get_group_id(0) * LENGTH;
  int sum = 0;
  for (int k = 0; k < (int)get_group_id(0); k++) sum += partial[k];
  for (int i = at; i < at + LENGTH; i++) {
    sum += xs[i];
    result[i] = sum;
  }
}
