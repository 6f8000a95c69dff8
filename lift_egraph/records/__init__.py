"""Records: a journal of every kernel that was measured, what it knows of a program, and bundles for other machines."""
