// One step of N bodies: a work-item a body; positions come straight from global memory.
// A position is (x, y, z, mass).
__attribute__((reqd_work_group_size(256, 1, 1)))
kernel void nbody_b(global const float4 *restrict positions, global const float4 *restrict velocities,
                    global float4 *restrict new_positions, global float4 *restrict new_velocities) {
  const int i = get_global_id(0);
  if (i >= N) return;
  const float4 own = positions[i];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  #pragma unroll 32
  for (int j = 0; j < N; ++j) {
    const float4 other = positions[j];
    const float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
    const float inverse = rsqrt(dx * dx + dy * dy + dz * dz + SOFTENING);
    const float scale = other.w * inverse * inverse * inverse;
    ax += dx * scale;
    ay += dy * scale;
    az += dz * scale;
  }
  float4 velocity = velocities[i];
  velocity.xyz = (velocity.xyz + (float3)(ax, ay, az) * STEP) * DAMPING;
  new_velocities[i] = velocity;
  new_positions[i] = (float4)(own.xyz + velocity.xyz * STEP, own.w);
}
