"""How loops are cut for a device: `plan` says what a plan is, `plans` which there are; each kind has its module."""
