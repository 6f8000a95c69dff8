"""Proofs of rules for all sizes: both sides as functions of indices, whose equality z3 decides."""
