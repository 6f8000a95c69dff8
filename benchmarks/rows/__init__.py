"""The rows of Table 4.2 of thesis 000, and the partial dot product of its Listing 4.5."""

from .nn import ROW as NN
from .row import HandKernel, Row, lane, map_vectors, on_gpu, plan_by_hand

ROWS = (NN,)

__all__ = ["ROWS", "HandKernel", "Row", "lane", "map_vectors", "on_gpu", "plan_by_hand"]
