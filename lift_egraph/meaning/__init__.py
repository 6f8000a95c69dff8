"""What programs mean: `interp`, over domains of values, and what follows for testing.

`values` and `inputs` are what programs run on, `bounds` says how far floats may be from exact results, `workload` how
much a program computes, and `agreement` compares two terms, element by element where the whole is too much.
"""
