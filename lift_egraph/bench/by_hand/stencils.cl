// Stencils with clamped borders: a work-item for ROWS rows, vectors along the row, columns at its ends one by one.
#define CELL(i, j) A[held(i, 0, M - 1) * N + held(j, 0, N - 1)]
#define ENDS(value)                                           \
  for (int e = 0; e < 32; e++) {                              \
    const int j = e < 16 ? e : N - 32 + e;                    \
    result[i * N + j] = value;                                \
  }

kernel void jacobi5(global const float *restrict A, global float *restrict result) {
  const int first = get_group_id(0) * ROWS;
  for (int i = first; i < first + ROWS; i++) {
    global const float *up = A + held(i - 1, 0, M - 1) * N, *row = A + i * N, *down = A + held(i + 1, 0, M - 1) * N;
    ENDS(0.2f * (CELL(i - 1, j) + CELL(i, j - 1) + CELL(i, j) + CELL(i, j + 1) + CELL(i + 1, j)))
    for (int j = 16; j < N - 16; j += 16)
      WRITE(result + i * N + j, 0.2f * (AT(up + j) + AT(row + j - 1) + AT(row + j) + AT(row + j + 1) + AT(down + j)));
  }
}

#define THREE(p, j) (AT(p + j - 1) + AT(p + j) + AT(p + j + 1))
#define ACROSS(i) (CELL(i, j - 1) + CELL(i, j) + CELL(i, j + 1))
kernel void j2d9pt(global const float *restrict A, global float *restrict result) {
  const int first = get_group_id(0) * ROWS;
  for (int i = first; i < first + ROWS; i++) {
    global const float *up = A + held(i - 1, 0, M - 1) * N, *row = A + i * N, *down = A + held(i + 1, 0, M - 1) * N;
    ENDS((ACROSS(i - 1) + ACROSS(i) + ACROSS(i + 1)) / 9.0f)
    for (int j = 16; j < N - 16; j += 16)
      WRITE(result + i * N + j, (THREE(up, j) + THREE(row, j) + THREE(down, j)) * (1.0f / 9.0f));
  }
}

#define FIVE(k, p, j) \
  (W[k] * AT(p + j - 2) + W[k + 1] * AT(p + j - 1) + W[k + 2] * AT(p + j) + W[k + 3] * AT(p + j + 1) + W[k + 4] * AT(p + j + 2))
#define WEIGHTED(k, i) \
  (W[k] * CELL(i, j - 2) + W[k + 1] * CELL(i, j - 1) + W[k + 2] * CELL(i, j) + W[k + 3] * CELL(i, j + 1) + W[k + 4] * CELL(i, j + 2))
kernel void gauss25(global const float *restrict A, global const float *restrict W, global float *restrict result) {
  const int first = get_group_id(0) * ROWS;
  for (int i = first; i < first + ROWS; i++) {
    global const float *a = A + held(i - 2, 0, M - 1) * N, *b = A + held(i - 1, 0, M - 1) * N, *c = A + i * N;
    global const float *d = A + held(i + 1, 0, M - 1) * N, *e = A + held(i + 2, 0, M - 1) * N;
    ENDS(WEIGHTED(0, i - 2) + WEIGHTED(5, i - 1) + WEIGHTED(10, i) + WEIGHTED(15, i + 1) + WEIGHTED(20, i + 2))
    for (int j = 16; j < N - 16; j += 16)
      WRITE(result + i * N + j, FIVE(0, a, j) + FIVE(5, b, j) + FIVE(10, c, j) + FIVE(15, d, j) + FIVE(20, e, j));
  }
}

#ifdef L
// In three dimensions: M planes of N rows of L elements; a work-item for ROWS rows of a plane.
#define CUBE(i, j, l) A[(held(i, 0, M - 1) * N + held(j, 0, N - 1)) * L + held(l, 0, L - 1)]
kernel void laplace7(global const float *restrict A, global float *restrict result) {
  const int first = get_group_id(0) * ROWS, i = get_group_id(1);
  for (int j = first; j < first + ROWS; j++) {
    global const float *row = A + (i * N + j) * L;
    global const float *near = A + (held(i - 1, 0, M - 1) * N + j) * L, *far = A + (held(i + 1, 0, M - 1) * N + j) * L;
    global const float *up = A + (i * N + held(j - 1, 0, N - 1)) * L, *down = A + (i * N + held(j + 1, 0, N - 1)) * L;
    global float *out = result + (i * N + j) * L;
    for (int e = 0; e < 32; e++) {
      const int l = e < 16 ? e : L - 32 + e;
      out[l] = near[l] + far[l] + up[l] + down[l] + CUBE(i, j, l - 1) + CUBE(i, j, l + 1) - 6.0f * row[l];
    }
    for (int l = 16; l < L - 16; l += 16)
      WRITE(out + l, AT(near + l) + AT(far + l) + AT(up + l) + AT(down + l) + AT(row + l - 1) + AT(row + l + 1) - 6.0f * AT(row + l));
  }
}
#endif
