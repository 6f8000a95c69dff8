"""Why a stage of a plan fails, in words."""

from __future__ import annotations

from lift_egraph import rules as book
from lift_egraph.egraph.saturate import Saturation
from lift_egraph.guided.matcher import Matcher
from lift_egraph.guided.nearest import makers, nearest
from lift_egraph.guided.stages import Reached
from lift_egraph.language.syntax import print_term

MOST_NAMED = 6  # rules


def why_not_reached(reached: Reached, saturation: Saturation, *, nearby: bool = True) -> str:
    """What the sketch of a stage asks in vain, and what rules of the book that it lacks would make such.

    `nearby` looks for the nearest term, which takes longer, and names rules that would make it lack less.
    """
    stage = reached.stage
    text = f"its sketch is not satisfied: {reached.why_not}"
    matcher = Matcher(saturation.graph, stage.weigh)
    lacking = matcher.unmet(saturation.root, stage.sketch)
    if nearby and (found := nearest(matcher, saturation.root, stage.sketch)) is not None:
        text += f"; the nearest term, {print_term(found.term, 1 << 30)}, lacks {found.lacks}"
        lacking = found.lacks
    makes = makers(lacking, book.all_rules) if lacking else ()
    known = [rule.name for rule in makes if rule not in stage.phase.rules]
    more = "" if len(known) <= MOST_NAMED else f" and {len(known) - MOST_NAMED} others"
    return f"{text}; of other rules {', '.join(known[:MOST_NAMED])}{more} make such" if known else text
