// The distance of N records to (lat, lng): one record a work-item.
__attribute__((reqd_work_group_size(256, 1, 1)))
kernel void nn(global const float *restrict record_lat, global const float *restrict record_lng,
               const float lat, const float lng, global float *restrict distance) {
  const int i = get_global_id(0);
  if (i < N) {
    const float north = lat - record_lat[i];
    const float east = lng - record_lng[i];
    distance[i] = sqrt(north * north + east * east);
  }
}
