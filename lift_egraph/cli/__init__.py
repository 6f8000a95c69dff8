"""The command ``lift-egraph``: `main` has its commands, `options` what several of them take, `show` what they print."""
