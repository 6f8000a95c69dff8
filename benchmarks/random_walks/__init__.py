"""Random rewriting of single terms, a peer of search in e-graphs."""
