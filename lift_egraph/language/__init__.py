"""The language: types, sizes, its terms (`ir`), the checker, builders in Python, and the text form.

Everything else speaks about programs in these words. Nothing here knows the e-graph, NumPy's values or OpenCL.
"""

import sys

from lift_egraph.language import operators as operators  # terms have Python's operators wherever they come from

# Terms are walked recursively, and a chain of lets nests as deep as it is long. Twice as many calls still fit into
# the 8 MB that a thread's stack has.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 16_000))
