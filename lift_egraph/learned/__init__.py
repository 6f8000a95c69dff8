"""Performance models that are learned from records, and the order in which they let kernels be measured."""
