"""What compiled kernels are: the plan, the arrays that they take, and what sizes and index functions must fulfil."""
