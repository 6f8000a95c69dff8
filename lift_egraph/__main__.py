"""``python -m lift_egraph`` is ``lift-egraph``."""

from lift_egraph.entry import main

main()
