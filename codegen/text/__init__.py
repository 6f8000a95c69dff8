"""Statements to OpenCL C, with the indices and scalar functions in it, and the header that says what it takes."""
