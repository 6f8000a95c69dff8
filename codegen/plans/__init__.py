"""What a compiled kernel is: its plan, the arrays it takes, what sizes and index functions must fulfil."""
