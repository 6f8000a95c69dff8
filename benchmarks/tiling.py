"""Tiling of maps over arrays of one to four dimensions, guided by a sketch for each dimension, and unguided."""

from __future__ import annotations

import goals
import harness

from lift_egraph.api import Limits, Phase, parse_program
from lift_egraph.guided.sketch import call
from lift_egraph.guided.stages import Stage, guide
from lift_egraph.language import ir
from lift_egraph.rules.fusion import map_fission
from lift_egraph.rules.interchange import map_map_on_matrix
from lift_egraph.rules.macros import SIMPLIFICATION, Macro, tiling_on_grid
from lift_egraph.rules.split_join import split_join

TILE = 32


def lengths(dimensions: int, tile: int = TILE) -> tuple[int, ...]:
    """Lengths with a different number of blocks in each dimension, so that a sketch tells them apart."""
    return tuple((5 + i) * tile for i in range(dimensions))


def program(sizes: tuple[int, ...]) -> ir.Program:
    """Every element of an array doubled, by a map in each dimension."""
    t, f = "f32", "fun x => x * 2.0"
    for n in reversed(sizes):
        t, f = f"[{t}]{n}", f"map({f})"
    return parse_program(f"program doubled(xs: {t}) = ({f})(xs)")


def tiling(sizes: tuple[int, ...], tile: int = TILE) -> Macro:
    """The macro rule that tiles it."""
    return tiling_on_grid(sizes, tile, call("mul"))


def unguided(sizes: tuple[int, ...], limits: Limits) -> Stage:
    """The macro's rules all at once, with its last sketch."""
    macro = tiling(sizes)
    rules = (split_join, map_fission, map_map_on_matrix)
    phase = Phase("all at once", rules, SIMPLIFICATION, macro.stages[0].phase.tiles, (), limits)
    return Stage(phase, macro.stages[-1].sketch)


def main() -> None:
    parser = harness.options("tiling", __doc__ or "", has_device=False)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each unguided search (default: %(default)s)")
    parser.add_argument("--memory", type=int, default=2000, help="MB for each unguided search (default: %(default)s)")
    arguments = parser.parse_args()
    free = Limits(iterations=100, nodes=10**9, seconds=arguments.seconds, memory_mb=arguments.memory)
    rows: list[harness.Row] = []
    for dimensions in (1, 2, 3, 4):
        sizes = lengths(dimensions)
        term, stages = program(sizes).body, tiling(sizes).stages
        rows.append((f"{dimensions}D", "guided", len(stages), *goals.figures(guide(term, stages))))
        rows.append((f"{dimensions}D", "unguided", 1, *goals.figures(guide(term, (unguided(sizes, free),)))))
    harness.report(
        arguments.out,
        f"Tiling of nested maps, tile {TILE} in each dimension",
        ("program", "", "sketches", *goals.FIGURES),
        rows,
        notes=(
            "seconds are those of saturation, matching and extraction in the search process; its start takes "
            "another 1 to 2 s for each search; CPU seconds are those of the search process, which other work on the "
            "machine does not change much",
            "e-nodes and e-classes are those of the largest stage; the peak is that of the whole search process",
            f"unguided: the same rules all at once, within {free.seconds:.0f} s and {free.memory_mb} MB",
        ),
    )


if __name__ == "__main__":
    main()
