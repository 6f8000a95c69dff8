"""What kernels are held against: whole results (`references`), samples of them, and small sizes of the same plan."""
