// Folds that are no reductions as they stand, over N elements: a chunk each for CHUNKS work-items; then one combines what
// the chunks make of where they start.
#define LENGTH (N / CHUNKS)
#define LARGER(a, b) ((a) < (b) ? (b) : (a))

static inline float power(float k, int n) {
  float made = 1.0f;
  for (; n > 0; n >>= 1, k *= k) made = n & 1 ? made * k : made;
  return made;
}

// Four vectors of neighbours are multiplied by k to the power of 64 at a time.
kernel void horner(global const float *restrict xs, const float k, global float *restrict partial) {
  global const float *own = xs + get_group_id(0) * LENGTH;
  const float16 step = BROAD(power(k, 64));
  float16 a = BROAD(0.0f), b = a, c = a, d = a;
  for (int i = 0; i < LENGTH; i += 64) {
    a = a * step + AT(own + i);
    b = b * step + AT(own + i + 16);
    c = c * step + AT(own + i + 32);
    d = d * step + AT(own + i + 48);
  }
  float lanes[64];
  *(private loose *)lanes = a;
  *(private loose *)(lanes + 16) = b;
  *(private loose *)(lanes + 32) = c;
  *(private loose *)(lanes + 48) = d;
  float sum = 0.0f;
  for (int i = 0; i < 64; i++) sum = sum * k + lanes[i];
  partial[get_group_id(0)] = sum;
}

kernel void horner_of_chunks(const float k, global const float *restrict partial, global float *restrict result) {
  const float step = power(k, LENGTH);
  float sum = 0.0f;
  for (int i = 0; i < CHUNKS; i++) sum = sum * step + partial[i];
  result[0] = sum;
}

// Of neighbouring elements: their sum, and the largest sum of any that begin first, end last, or stand anywhere.
#define HALVES(t, from, to) \
  const t sum##to##a = sum##from.even, sum##to##b = sum##from.odd, first##to##a = first##from.even, \
          first##to##b = first##from.odd, last##to##a = last##from.even, last##to##b = last##from.odd, \
          any##to##a = any##from.even, any##to##b = any##from.odd; \
  t sum##to, first##to, last##to, any##to; \
  JOINED(to)
#define JOINED(n) \
  any##n = LARGER(LARGER(any##n##a, any##n##b), last##n##a + first##n##b); \
  first##n = LARGER(first##n##a, sum##n##a + first##n##b); \
  last##n = LARGER(last##n##b, last##n##a + sum##n##b); \
  sum##n = sum##n##a + sum##n##b

// Sixteen lanes have RUN neighbouring elements each, of which they read one at a time.
kernel void mss(global const float *restrict xs, global float *restrict partial) {
  global const float *own = xs + get_group_id(0) * LENGTH;
  float sum = 0.0f, first = -INFINITY, last = -INFINITY, any = -INFINITY;
  for (int block = 0; block < LENGTH; block += 16 * RUN) {
    float16 sum16 = BROAD(0.0f), first16 = BROAD(-INFINITY), last16 = first16, any16 = first16;
    for (int i = 0; i < RUN; i++) {
      global const float *p = own + block + i;
      const float16 x = (float16)(p[0], p[RUN], p[2 * RUN], p[3 * RUN], p[4 * RUN], p[5 * RUN], p[6 * RUN], p[7 * RUN],
                                  p[8 * RUN], p[9 * RUN], p[10 * RUN], p[11 * RUN], p[12 * RUN], p[13 * RUN],
                                  p[14 * RUN], p[15 * RUN]);
      last16 = LARGER(last16 + x, x);
      any16 = LARGER(any16, last16);
      sum16 += x;
      first16 = LARGER(first16, sum16);
    }
    HALVES(float8, 16, 8);
    HALVES(float4, 8, 4);
    HALVES(float2, 4, 2);
    HALVES(float, 2, 1);
    any = LARGER(LARGER(any, any1), last + first1);
    first = LARGER(first, sum + first1);
    last = LARGER(last1, last + sum1);
    sum += sum1;
  }
  global float *made = partial + 4 * get_group_id(0);
  made[0] = sum;
  made[1] = first;
  made[2] = last;
  made[3] = any;
}

kernel void mss_of_chunks(global const float *restrict partial, global float *restrict any_result,
                          global float *restrict last_result) {
  float last = -INFINITY, any = -INFINITY;
  for (int i = 0; i < CHUNKS; i++) {
    global const float *own = partial + 4 * i;
    any = LARGER(LARGER(any, own[3]), last + own[1]);
    last = LARGER(own[2], last + own[0]);
  }
  any_result[0] = any;
  last_result[0] = last;
}
