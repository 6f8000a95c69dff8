"""Kernels on a device, in a worker process, and whether what they compute is right."""
