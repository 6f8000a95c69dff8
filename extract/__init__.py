"""Choosing terms: cost models, and the search for the best terms of an e-graph."""
