"""From statements to better ones: barriers, unrolling, running indices, values that are computed once.

`in_order` has all that is done to a kernel, one pass after the other.
"""
