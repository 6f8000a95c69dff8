// Rows of N elements: a work-item for ROWS of them, each read once from memory and again from the cache.
kernel void softmax_rows(global const float *restrict X, global float *restrict result) {
  const int first = get_group_id(0) * ROWS;
  for (int i = first; i < first + ROWS; i++) {
    global const float *row = X + i * N;
    global float *out = result + i * N;
    float16 most = AT(row), sum = BROAD(0.0f);
    for (int j = 16; j < N; j += 16) most = larger(most, AT(row + j));
    float8 m8 = most.lo < most.hi ? most.hi : most.lo;
    float4 m4 = m8.lo < m8.hi ? m8.hi : m8.lo;
    float2 m2 = m4.lo < m4.hi ? m4.hi : m4.lo;
    const float top = m2.x < m2.y ? m2.y : m2.x;
    for (int j = 0; j < N; j += 16) {
      const float16 v = AT(row + j) - top;
      const float16 e = (float16)(exp(v.lo), exp(v.hi));  // PoCL 3.0 crashes in functions of 64 bytes on some CPUs
      PUT(out + j, e);
      sum += e;
    }
    const float scale = 1.0f / sum16(sum);
    for (int j = 0; j < N; j += 16) PUT(out + j, AT(out + j) * scale);
  }
}

kernel void norm_rows(global const float *restrict X, global const float *restrict g, global const float *restrict b,
                      global float *restrict result) {
  const int first = get_group_id(0) * ROWS;
  for (int i = first; i < first + ROWS; i++) {
    global const float *row = X + i * N;
    global float *out = result + i * N;
    float16 s = BROAD(0.0f), t = s, u = s, v = s;
    for (int j = 0; j < N; j += 64) {
      s += AT(row + j);
      t += AT(row + j + 16);
      u += AT(row + j + 32);
      v += AT(row + j + 48);
    }
    const float mean = sum16((s + t) + (u + v)) * (1.0f / N);
    s = BROAD(0.0f), t = s, u = s, v = s;
    for (int j = 0; j < N; j += 64) {
      float16 c = AT(row + j) - mean, d = AT(row + j + 16) - mean, e = AT(row + j + 32) - mean, f = AT(row + j + 48) - mean;
      s += c * c;
      t += d * d;
      u += e * e;
      v += f * f;
    }
    const float scale = 1.0f / sqrt(sum16((s + t) + (u + v)) * (1.0f / N) + 1e-5f);
    for (int j = 0; j < N; j += 16) WRITE(out + j, (AT(row + j) - mean) * scale * AT(g + j) + AT(b + j));
  }
}

kernel void matvec(global const float *restrict A, global const float *restrict x, global float *restrict result) {
  const int first = get_group_id(0) * ROWS;
  for (int i = first; i < first + ROWS; i += 4) {
    global const float *a = A + i * N, *b = a + N, *c = b + N, *d = c + N;
    float16 s = BROAD(0.0f), t = s, u = s, v = s;
    for (int j = 0; j < N; j += 16) {
      float16 own = AT(x + j);
      s += AT(a + j) * own;
      t += AT(b + j) * own;
      u += AT(c + j) * own;
      v += AT(d + j) * own;
    }
    result[i] = sum16(s);
    result[i + 1] = sum16(t);
    result[i + 2] = sum16(u);
    result[i + 3] = sum16(v);
  }
}
