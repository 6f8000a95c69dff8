"""Guided search: phases of rules in stages, each until a sketch is satisfied.

`sketch` says what a stage must reach, `matcher` finds it in the frozen e-graph, `stages` runs them, `weights` says
which of the terms that satisfy a sketch is taken, `nearest` how near a stage came that failed, and
`schedules` compares ways to spend the same effort.
"""
