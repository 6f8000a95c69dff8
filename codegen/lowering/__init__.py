"""From a low-level term to statements: views instead of copies, memory, ownership, loops over threads."""
