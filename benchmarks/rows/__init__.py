"""The rows of Table 4.2 of thesis 000, and the partial dot product of its Listing 4.5."""

from .atax import ROW as ATAX
from .convolution import ROW as CONVOLUTION
from .gemv import GEMV, GESUMMV
from .kmeans import ROW as KMEANS
from .md import ROW as MD
from .mm import AMD as MM_AMD, NVIDIA as MM_NVIDIA
from .mri_q import ROW as MRI_Q
from .nbody import ROW_A as NBODY_A, ROW_B as NBODY_B
from .nn import ROW as NN
from .partial_dot import ROW as PARTIAL_DOT
from .row import Row

ROWS = (NBODY_A, NBODY_B, MD, KMEANS, NN, MRI_Q, CONVOLUTION, ATAX, GEMV, GESUMMV, MM_AMD, MM_NVIDIA, PARTIAL_DOT)

__all__ = ["ROWS", "Row"]
