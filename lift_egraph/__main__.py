"""The command ``lift-egraph``, also ``python -m lift_egraph``: clean also when it is interrupted while it is loaded."""

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


if __name__ == "__main__":
    main()
