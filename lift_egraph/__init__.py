"""The language of LIFT, its e-graph, and the workbench that joins all packages."""
