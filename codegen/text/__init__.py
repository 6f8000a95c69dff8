"""From statements to OpenCL C, its indices and its scalar functions, under a header that says what it takes."""
