// The Lennard-Jones force on CHUNK atoms a work-item from NEIGHBOURS neighbours each; neighbours[number][atom].
__attribute__((reqd_work_group_size(1, 1, 1)))
kernel void md(global const float4 *restrict positions, global const int *restrict neighbours,
               global float4 *restrict forces) {
  const int begin = get_global_id(0) * CHUNK;
  for (int i = begin; i < begin + CHUNK; ++i) {
    const float4 own = positions[i];
    float4 force = 0.0f;
    for (int j = 0; j < NEIGHBOURS; ++j) {
      const float4 d = own - positions[neighbours[j * N + i]];
      const float4 squares = d * d;
      const float square = squares.x + squares.y + squares.z;
      const float inverse = 1.0f / square;
      const float sixth = inverse * inverse * inverse;
      const float scale = inverse * sixth * (LJ1 * sixth - LJ2);
      force += d * (square < CUT_OFF ? scale : 0.0f);
    }
    forces[i] = (float4)(force.xyz, 0.0f);
  }
}
