// The distance of records to (lat, lng): CHUNK records a work-item, sixteen at a time.
typedef float16 __attribute__((aligned(4))) vector;
#ifdef ON_POCL  // its built-in functions on sixteen floats are not safe on every CPU
#define SQRT(v) ((float16)(sqrt((v).lo), sqrt((v).hi)))
#else
#define SQRT(v) sqrt(v)
#endif

__attribute__((reqd_work_group_size(1, 1, 1)))
kernel void nn(global const float *restrict record_lat, global const float *restrict record_lng,
               const float lat, const float lng, global float *restrict distance) {
  const int first = get_global_id(0) * CHUNK;
  for (int i = first; i < first + CHUNK; i += 16) {
    const float16 north = lat - *(global const vector *)(record_lat + i);
    const float16 east = lng - *(global const vector *)(record_lng + i);
    const float16 square = north * north + east * east;
    *(global vector *)(distance + i) = SQRT(square);
  }
}
