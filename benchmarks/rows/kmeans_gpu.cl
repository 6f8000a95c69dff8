// The nearest of CENTRES centres for each of N points: a point a work-item, features[feature][point].
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
kernel void kmeans(global const float *restrict features, global const float *restrict centres,
                   global int *restrict membership) {
  const int point = get_global_id(0);
  if (point >= N) return;
  int nearest = 0;
  float least = MAXFLOAT;
  #pragma unroll
  for (int c = 0; c < CENTRES; ++c) {
    float distance = 0.0f;
    #pragma unroll
    for (int f = 0; f < FEATURES; ++f) {
      const float d = features[f * N + point] - centres[c * FEATURES + f];
      distance += d * d;
    }
    if (distance < least) {
      least = distance;
      nearest = c;
    }
  }
  membership[point] = nearest;
}
