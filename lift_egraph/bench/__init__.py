"""The best kernels of programs beside libraries, on every device here: measured, kept, and shown as tables."""
