"""From statements to better ones: barriers, unrolling, running indices, values that are computed once."""
