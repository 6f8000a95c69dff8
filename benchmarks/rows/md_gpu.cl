// The Lennard-Jones force on N atoms from NEIGHBOURS neighbours each: an atom a work-item,
// neighbours[number][atom], so that a group reads its lists coalesced.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
kernel void md(global const float4 *restrict positions, global const int *restrict neighbours,
               global float4 *restrict forces) {
  const int i = get_global_id(0);
  if (i >= N) return;
  const float4 own = positions[i];
  float fx = 0.0f, fy = 0.0f, fz = 0.0f;
  for (int j = 0; j < NEIGHBOURS; ++j) {
    const float4 other = positions[neighbours[j * N + i]];
    const float dx = own.x - other.x, dy = own.y - other.y, dz = own.z - other.z;
    const float square = dx * dx + dy * dy + dz * dz;
    if (square < CUT_OFF) {
      const float inverse = 1.0f / square;
      const float sixth = inverse * inverse * inverse;
      const float scale = inverse * sixth * (LJ1 * sixth - LJ2);
      fx += dx * scale;
      fy += dy * scale;
      fz += dz * scale;
    }
  }
  forces[i] = (float4)(fx, fy, fz, 0.0f);
}
