"""Statements to better statements: barriers, unrolling, running indices, common subexpressions."""
