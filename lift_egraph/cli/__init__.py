"""The command ``lift-egraph``: options, tables and messages around the workbench."""
