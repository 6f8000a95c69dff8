"""Low-level terms for a program: by plans, by rules alone, stage by stage, and with other numbers (`tuned`)."""
