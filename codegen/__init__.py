"""From low-level terms to OpenCL kernels, and running and validating them."""
