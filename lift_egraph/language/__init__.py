"""The language: types, sizes, its terms (`ir`), the checker, builders in Python, and the text form.

Everything else speaks about programs in these words. Nothing here knows the e-graph, NumPy's values or OpenCL.
"""

from lift_egraph.language import operators as operators  # terms have Python's operators wherever they come from
