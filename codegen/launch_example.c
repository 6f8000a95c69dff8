/* A host program in C for a kernel.cl and its launch.json: what launch_json.md describes, step by step.

   The program is dot.lift, with its size open:

     program dot(xs: [f32]N, ys: [f32]N) =
       reduceSeq(add, 0.0,
         mapGlb(0,
           reduceSeq(fun (a, p) => a + get(0, p) * get(1, p), 0.0),
           split(4, zip(xs, ys))))

     lift-egraph compile dot.lift --open N --device 0 --out DIR

   It becomes two kernels with a temporary buffer between them. Names in quotes are fields of launch.json.

     cc launch_example.c -lOpenCL -o dot && ./dot DIR/kernel.cl 1000
*/
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

static void check(cl_int status, const char *what) {
  if (status != CL_SUCCESS) {
    fprintf(stderr, "%s: OpenCL error %d\n", what, status);
    exit(1);
  }
}

static char *contents(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    exit(1);
  }
  fseek(file, 0, SEEK_END);
  const long length = ftell(file);
  rewind(file);
  char *text = calloc(length + 1, 1);
  if (!text || fread(text, 1, length, file) != (size_t)length) {
    fprintf(stderr, "%s cannot be read\n", path);
    exit(1);
  }
  fclose(file);
  return text;
}

static long long at_least_1(long long n) { return n < 1 ? 1 : n; }

/* "length" elements of 4 bytes; OpenCL has no empty buffers. */
static cl_mem buffer(cl_context context, long long length) {
  cl_int status;
  cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE, 4 * at_least_1(length), NULL, &status);
  check(status, "clCreateBuffer");
  return made;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s kernel.cl N\n", argv[0]);
    return 2;
  }

  /* "sizes": N is an int from "low" to "high". Expressions are computed in 64 bits. */
  const long long N = atoll(argv[2]);
  if (N < 0 || N > 2147483647) {
    fprintf(stderr, "N must be from 0 to 2147483647\n");
    return 1;
  }

  /* "requires", in order. */
  if (N % 4 != 0) {
    fprintf(stderr, "split(4) does not divide an array of length N\n");
    return 1;
  }
  if (N / 4 > 2147483647 || 4 * (N / 4) - 1 > 2147483647 || at_least_1(N / 4) > 1073741824) {
    fprintf(stderr, "N is too large\n");
    return 1;
  }

  cl_platform_id platform;
  cl_device_id device;
  cl_int status;
  check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
  check(status, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status); /* in order */
  check(status, "clCreateCommandQueue");

  const char *source = contents(argv[1]);
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
  check(status, "clCreateProgramWithSource");
  status = clBuildProgram(program, 1, &device, "-cl-mad-enable" /* "build_options" */, NULL, NULL);
  if (status != CL_SUCCESS) {
    char log[4096] = "";
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    fprintf(stderr, "%s\n", log);
  }
  check(status, "clBuildProgram");

  /* "buffers": inputs are filled before the first kernel. */
  cl_mem xs = buffer(context, N), ys = buffer(context, N), tmp = buffer(context, N / 4), result = buffer(context, 1);
  float *x = malloc(4 * at_least_1(N)), *y = malloc(4 * at_least_1(N));
  for (long long i = 0; i < N; i += 1) {
    x[i] = i % 7;
    y[i] = i % 5;
  }
  if (N > 0) {
    check(clEnqueueWriteBuffer(queue, xs, CL_TRUE, 0, 4 * N, x, 0, NULL, NULL), "xs");
    check(clEnqueueWriteBuffer(queue, ys, CL_TRUE, 0, 4 * N, y, 0, NULL, NULL), "ys");
  }

  /* "kernels", in order; "arguments" in order: a buffer is a cl_mem, a size a cl_int. */
  const cl_int n = N;
  cl_kernel first = clCreateKernel(program, "dot__1", &status);
  check(status, "dot__1");
  check(clSetKernelArg(first, 0, sizeof xs, &xs), "xs");
  check(clSetKernelArg(first, 1, sizeof ys, &ys), "ys");
  check(clSetKernelArg(first, 2, sizeof tmp, &tmp), "tmp");
  check(clSetKernelArg(first, 3, sizeof n, &n), "N");
  const size_t global_size[3] = {at_least_1(N / 4) /* "max(1, N / 4)" */, 1, 1}, local_size[3] = {1, 1, 1};
  check(clEnqueueNDRangeKernel(queue, first, 3, NULL, global_size, local_size, 0, NULL, NULL), "dot__1");

  cl_kernel second = clCreateKernel(program, "dot__2", &status);
  check(status, "dot__2");
  check(clSetKernelArg(second, 0, sizeof tmp, &tmp), "tmp");
  check(clSetKernelArg(second, 1, sizeof result, &result), "result");
  check(clSetKernelArg(second, 2, sizeof n, &n), "N");
  const size_t one[3] = {1, 1, 1};
  check(clEnqueueNDRangeKernel(queue, second, 3, NULL, one, one, 0, NULL, NULL), "dot__2");

  /* The buffer whose role is "output". */
  float dot;
  check(clEnqueueReadBuffer(queue, result, CL_TRUE, 0, sizeof dot, &dot, 0, NULL, NULL), "result");
  printf("%.1f\n", dot);
  return 0;
}
