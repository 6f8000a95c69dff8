// Q at N voxels from K samples of k-space (kx, ky, kz, squared magnitude): a voxel a work-item.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
kernel void mri_q(global const float *restrict xs, global const float *restrict ys, global const float *restrict zs,
                  global const float4 *restrict samples, global float *restrict real, global float *restrict imaginary) {
  const int i = get_global_id(0);
  if (i >= N) return;
  const float x = xs[i], y = ys[i], z = zs[i];
  float re = 0.0f, im = 0.0f;
  #pragma unroll 32
  for (int k = 0; k < K; ++k) {
    const float4 sample = samples[k];
    float c;
    const float s = sincos(6.2831853f * (sample.x * x + sample.y * y + sample.z * z), &c);
    re += sample.w * c;
    im += sample.w * s;
  }
  real[i] = re;
  imaginary[i] = im;
}
