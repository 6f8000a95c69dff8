"""Values as text, with numbers for their integers: the elements that a counterexample tells apart."""

from __future__ import annotations

from typing import Any

from lift_egraph.egraph.rule_forms import Constant, Node, shown
from lift_egraph.soundness.proofs.values import Call, Loop, Made, Neutral, Number, Pair, Repeat, Unknown, Value


def element_text(value: Value, model: Any) -> str:
    """A value, as far as a line shows it: ``f(xs[2])``."""
    match value:
        case Number():
            return str(model.eval(value.value, True))
        case Pair():
            return f"({element_text(value.first, model)}, {element_text(value.second, model)})"
        case Neutral():
            return _head(value.head, model) + "".join(_part(kind, i, model) for kind, i in value.way)
    return "an array" if type(value).__name__ == "Arr" else "…"


def _head(head: Any, model: Any) -> str:
    match head:
        case Unknown():
            inside = ", ".join(element_text(a, model) for a in head.arguments)
            return f"{head.name}({inside})" if inside else head.name
        case Call():
            name = head.name.value if isinstance(head.name, Constant) else shown(head.name)
            inside = ", ".join(element_text(a, model) for a in head.arguments)
            return name if isinstance(head.name, Node) else f"{name}({inside})"
        case Loop():
            start = element_text(head.initial, model)
            return f"a {head.kind} of {model.eval(head.array.size, True)} elements from {start}"
        case Repeat():
            return f"a function {model.eval(head.times, True)} times"
        case Made():
            return head.name.partition("!")[0]
    return "…"


def _part(kind: str, i: Any, model: Any) -> str:
    if kind == "component":
        return ".second" if i else ".first"
    return f"[{model.eval(i, True)}]"
