// The nearest of CENTRES centres for CHUNK points a work-item, sixteen at a time; features[feature][point].
typedef float16 __attribute__((aligned(4))) vector;
typedef int16 __attribute__((aligned(4))) integers;

__attribute__((reqd_work_group_size(1, 1, 1)))
kernel void kmeans(global const float *restrict features, global const float *restrict centres,
                   global int *restrict membership) {
  const int begin = get_global_id(0) * CHUNK;
  for (int point = begin; point < begin + CHUNK; point += 16) {
    int16 nearest = 0;
    float16 least = MAXFLOAT;
    for (int c = 0; c < CENTRES; ++c) {
      float16 distance = 0.0f;
      for (int f = 0; f < FEATURES; ++f) {
        const float16 d = *(global const vector *)(features + f * N + point) - centres[c * FEATURES + f];
        distance += d * d;
      }
      const int16 is_nearer = distance < least;
      least = is_nearer ? distance : least;
      nearest = is_nearer ? (int16)(c) : nearest;
    }
    *(global integers *)(membership + point) = nearest;
  }
}
