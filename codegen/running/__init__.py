"""Kernels on a device, each run in a worker process, and whether what they compute is right."""
