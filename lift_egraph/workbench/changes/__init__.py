"""What a search does to a program before it plans loops: `steps` says in which order; each change has its module."""
