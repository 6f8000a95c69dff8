"""How near a stage came to a sketch that it did not reach: the nearest term, what it lacks, and what makes that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lift_egraph.egraph.frozen import ClassId
from lift_egraph.egraph.pattern_nodes import CONSTANTS, PATTERN_NODES
from lift_egraph.egraph.rule import Rule
from lift_egraph.egraph.rule_forms import Constant, Pattern, forms, subpatterns
from lift_egraph.guided.matcher import Matcher
from lift_egraph.guided.sketch import ANY, Contains, Hole, Named, OfType, OneOf, PatternSketch, Sketch, subsketches
from lift_egraph.language import ir
from lift_egraph.language.syntax import print_term

MOST_PARTS = 40  # of a sketch that is taken apart


@dataclass(frozen=True)
class Nearest:
    """A term that satisfies a sketch but for one part of it."""

    term: ir.Expr
    lacks: Sketch

    def __str__(self) -> str:
        return f"the nearest term lacks {self.lacks}:\n{print_term(self.term)}"


def nearest(matcher: Matcher, root: ClassId, sketch: Sketch) -> Nearest | None:
    """The cheapest member of a class that lacks least of a sketch: the part with the fewest parts of its own.

    None if no part but the whole makes up for what is lacking.
    """
    inner = [part for part in dict.fromkeys(subsketches(sketch)) if part not in (ANY, sketch)]
    for part in sorted(inner[:MOST_PARTS], key=lambda part: sum(1 for _ in subsketches(part))):
        found = matcher.matches(root, _without(sketch, part))
        if found:
            return Nearest(found[0].term, part)
    return None


def _without(sketch: Sketch, part: Sketch) -> Sketch:
    """The sketch with a hole where a part of it stood."""
    if sketch == part:
        return ANY
    match sketch:
        case Hole():
            return sketch
        case PatternSketch(parts=parts):
            return replace(sketch, parts=tuple(_without(p, part) for p in parts))
        case OneOf(alternatives=alternatives):
            return OneOf(tuple(_without(p, part) for p in alternatives))
        case Contains(inner=inner) | OfType(inner=inner) | Named(inner=inner):
            return replace(sketch, inner=_without(inner, part))


def makers(part: Sketch, rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules whose right-hand side has more of what a part of a sketch begins with than their left-hand side; first
    those of which that holds of most patterns in the part.

    >>> from lift_egraph.guided import sketch as sk
    >>> from lift_egraph.rules import map_fusion, partial_reduce
    >>> [rule.name for rule in makers(sk.contains(sk.split(4)), (map_fusion, partial_reduce))]
    ['partial_reduce']
    """
    patterns = dict.fromkeys(p.name for p in _outside_in(part) if isinstance(p, PatternSketch))
    wanted = next(iter(patterns), None)

    def makes(rule: Rule) -> set[str]:
        return {name for f in forms(rule) for name in patterns if _makes(f.left, f.right, name)}

    found = ((rule, makes(rule)) for rule in (rules if wanted else ()))
    return tuple(rule for rule, made in sorted(found, key=lambda each: -len(each[1])) if wanted in made)


def _outside_in(part: Sketch) -> Iterator[Sketch]:
    return iter(tuple(subsketches(part))[::-1])


def _makes(left: Pattern, right: Pattern, wanted: str) -> bool:
    before, after = (sum(_is_called(p, wanted) for p in subpatterns(side)) for side in (left, right))
    return after > before


def _is_called(pattern: Pattern, wanted: str) -> bool:
    """Whether a pattern of a rule may be what sketches call so: a level or a space that it leaves open may be any."""
    op = getattr(pattern, "op", "")
    node = PATTERN_NODES.get(op) or CONSTANTS.get(op)
    first = next(iter(getattr(pattern, "parts", ())), None)
    if op == "map_level":
        if wanted == "mapPar":
            return not (isinstance(first, Constant) and first.value == ir.SEQ.kind)
        return wanted.lower().startswith(f"map{first.value if isinstance(first, Constant) else ''}") and wanted != "map"
    if op == "to_memory":
        return isinstance(first, Constant) and wanted == ir.memory_name(str(first.value))
    if op.startswith("call") or op == "Op_scalar":
        return isinstance(first, Constant) and first.value == wanted
    if op == "Fn_vec":
        return wanted == "vectorize"
    return node is not None and node.signature.name == wanted
