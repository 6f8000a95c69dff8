"""Validating and timing kernels while the search goes on: which is next (`race`), where (`lanes`, `executors`)."""
