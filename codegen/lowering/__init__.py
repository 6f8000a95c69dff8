"""From a low-level term to the statements of one work-item, kernel by kernel.

`host` cuts a program into kernels, `lower` computes the terms of one into its `state`, `sharing` allocates, copies and
stores. `views` and `term_views` say where an element lies instead of moving it, `ownership` which work-item has it,
`memory` and `launch` what is allocated and started for it.
"""
