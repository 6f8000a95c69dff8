// One step of N bodies: a work-item (its own group) moves sixteen, a vector per coordinate, and keeps a tile of
// the others in local memory.
typedef float16 __attribute__((aligned(4))) vector;
#define AT(p) (*(global vector *)(p))
#define CONST_AT(p) (*(global const vector *)(p))
#ifdef ON_POCL  // its built-in functions on sixteen floats are not safe on every CPU
#define RSQRT(v) ((float16)(rsqrt((v).lo), rsqrt((v).hi)))
#else
#define RSQRT(v) rsqrt(v)
#endif

__attribute__((reqd_work_group_size(1, 1, 1)))
kernel void nbody_a(global const float *restrict x, global const float *restrict y, global const float *restrict z,
                    global const float *restrict mass,
                    global const float *restrict vx, global const float *restrict vy, global const float *restrict vz,
                    global float *restrict new_x, global float *restrict new_y, global float *restrict new_z,
                    global float *restrict new_vx, global float *restrict new_vy, global float *restrict new_vz) {
  local float tile_x[TILE], tile_y[TILE], tile_z[TILE], tile_mass[TILE];
  const int i = get_global_id(0) * 16;
  const float16 own_x = CONST_AT(x + i), own_y = CONST_AT(y + i), own_z = CONST_AT(z + i);
  float16 ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int first = 0; first < N; first += TILE) {
    for (int j = 0; j < TILE; ++j) {
      tile_x[j] = x[first + j];
      tile_y[j] = y[first + j];
      tile_z[j] = z[first + j];
      tile_mass[j] = mass[first + j];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; j < TILE; ++j) {
      const float16 dx = tile_x[j] - own_x, dy = tile_y[j] - own_y, dz = tile_z[j] - own_z;
      const float16 square = dx * dx + dy * dy + dz * dz + SOFTENING;
      const float16 inverse = RSQRT(square);
      const float16 scale = tile_mass[j] * inverse * inverse * inverse;
      ax += dx * scale;
      ay += dy * scale;
      az += dz * scale;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const float16 ux = (CONST_AT(vx + i) + ax * STEP) * DAMPING;
  const float16 uy = (CONST_AT(vy + i) + ay * STEP) * DAMPING;
  const float16 uz = (CONST_AT(vz + i) + az * STEP) * DAMPING;
  AT(new_vx + i) = ux;
  AT(new_vy + i) = uy;
  AT(new_vz + i) = uz;
  AT(new_x + i) = own_x + ux * STEP;
  AT(new_y + i) = own_y + uy * STEP;
  AT(new_z + i) = own_z + uz * STEP;
}
