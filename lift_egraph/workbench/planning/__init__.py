"""How loops are cut for a device: `plan` says what a plan is, `plans` which are tried; each kind has its module, and
`README.md` finds it by the loops of a program.
"""
