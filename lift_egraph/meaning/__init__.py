"""What programs mean: `interp`, over domains of values, and what follows for testing.

`values` and `inputs` are what programs run on, `bounds` says how far floats may be from exact results, `in_order` which
they are bit for bit, `over_integers` what a program computes of whole numbers in their place, `workload` how much it
computes, and `agreement` compares two terms, element by element where the whole is too much.
"""
