// One step of N bodies: a work-item a body; each group keeps a tile of positions in local memory.
// A position is (x, y, z, mass).
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
kernel void nbody_a(global const float4 *restrict positions, global const float4 *restrict velocities,
                    global float4 *restrict new_positions, global float4 *restrict new_velocities) {
  local float4 tile[GROUP];
  const int i = get_global_id(0), item = get_local_id(0);
  const float4 own = positions[i];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int first = 0; first < N; first += GROUP) {
    tile[item] = positions[first + item];
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll 32
    for (int j = 0; j < GROUP; ++j) {
      const float4 other = tile[j];
      const float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
      const float inverse = rsqrt(dx * dx + dy * dy + dz * dz + SOFTENING);
      const float scale = other.w * inverse * inverse * inverse;
      ax += dx * scale;
      ay += dy * scale;
      az += dz * scale;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  float4 velocity = velocities[i];
  velocity.xyz = (velocity.xyz + (float3)(ax, ay, az) * STEP) * DAMPING;
  new_velocities[i] = velocity;
  new_positions[i] = (float4)(own.xyz + velocity.xyz * STEP, own.w);
}
