"""Guided search: sketches say what a stage must reach, the matcher finds it in the frozen e-graph."""
