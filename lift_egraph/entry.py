"""The command ``lift-egraph``: clean also when it is interrupted while it is still being loaded."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        from lift_egraph.cli.main import app

        app(prog_name="lift-egraph")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
