"""What a program means: the NumPy interpreter over domains of values, inputs to run it on, and error bounds."""
