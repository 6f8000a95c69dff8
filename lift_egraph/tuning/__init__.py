"""Tuning: one derivation of a term, then any of its numbers.

The numbers of a term that was derived at a few sizes are read back as expressions of sizes and parameters (`forms`,
`numbers`), so the term stands for all others that are derived so (`parametric`). What a term and a device demand of the
parameters is solved to a space of points (`demands`, `space`), which is counted, sampled and walked through.
"""
