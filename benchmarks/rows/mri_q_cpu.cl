// Q at some voxels from K samples of k-space: a work-item has VECTORS times sixteen voxels.
typedef float16 __attribute__((aligned(4))) vector;
#define AT(p) (*(global vector *)(p))
#define CONST_AT(p) (*(global const vector *)(p))
#ifdef ON_POCL  // its built-in functions on sixteen floats are not safe on every CPU
#define SIN(v) ((float16)(sin((v).lo), sin((v).hi)))
#define COS(v) ((float16)(cos((v).lo), cos((v).hi)))
#else
#define SIN(v) sin(v)
#define COS(v) cos(v)
#endif

__attribute__((reqd_work_group_size(1, 1, 1)))
kernel void mri_q(global const float *restrict xs, global const float *restrict ys, global const float *restrict zs,
                  global const float *restrict kx, global const float *restrict ky, global const float *restrict kz,
                  global const float *restrict magnitude,
                  global float *restrict real, global float *restrict imaginary) {
  const int begin = get_global_id(0) * VECTORS * 16;
  for (int i = begin; i < begin + VECTORS * 16; i += 16) {
    const float16 x = CONST_AT(xs + i), y = CONST_AT(ys + i), z = CONST_AT(zs + i);
    float16 re = 0.0f, im = 0.0f;
    for (int k = 0; k < K; ++k) {
      const float16 angle = 6.2831853f * (kx[k] * x + ky[k] * y + kz[k] * z);
      re += magnitude[k] * COS(angle);
      im += magnitude[k] * SIN(angle);
    }
    AT(real + i) = re;
    AT(imaginary + i) = im;
  }
}
