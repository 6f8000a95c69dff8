// Prefix sums in two passes over CHUNKS chunks: the sum of each; then each from the sum of those before it.
#define LENGTH (N / CHUNKS)
#define CAT(a, b) a##b
#define WIDE(t, n) CAT(t, n)
typedef WIDE(T, 16) __attribute__((aligned(4))) elements;

kernel void sums(global const T *restrict xs, global T *restrict partial) {
  global const T *own = xs + get_group_id(0) * LENGTH;
  WIDE(T, 16) a = (WIDE(T, 16))(0), b = a;
  for (int i = 0; i < LENGTH; i += 32) {
    a += *(global const elements *)(own + i);
    b += *(global const elements *)(own + i + 16);
  }
  a += b;
  WIDE(T, 8) h = a.lo + a.hi;
  WIDE(T, 4) q = h.lo + h.hi;
  partial[get_group_id(0)] = (q.s0 + q.s1) + (q.s2 + q.s3);
}

kernel void scanned(global const T *restrict xs, global const T *restrict partial, global T *restrict result) {
  const int at = get_group_id(0) * LENGTH;
  T sum = 0;
  for (int k = 0; k < (int)get_group_id(0); k++) sum += partial[k];
  for (int i = at; i < at + LENGTH; i++) {
    sum += xs[i];
    result[i] = sum;
  }
}
