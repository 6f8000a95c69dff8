"""``python -m lift_egraph`` is ``lift-egraph``."""

from lift_egraph.cli import app

app(prog_name="lift-egraph")
