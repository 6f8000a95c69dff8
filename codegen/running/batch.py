"""The kernels of plans as OpenCL programs: those of several plans as one, for what a device's compiler takes to begin,
it then takes once, and of one plan those that others have not.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from functools import lru_cache

from lift_egraph.codegen.plans.kernel import Plan

KEPT = 128  # texts: a plan is run many times
_HEAD = re.compile(r"\bkernel void (\w+)\(([^()]*)\) \{")


def name_in_batch(kernel: str, number: int) -> str:
    """The name of a kernel of a plan, by its place in the batch; that of no kernel which we generate."""
    return f"{kernel}__{number}"


def batch_source(plans: Sequence[Plan]) -> str:
    r"""The text of all kernels, each with its name in the batch; types and functions that are alike are there once.

    Comments are left out. Functions of the same name that differ are not noticed: the compiler refuses them.

    Examples
    --------
    >>> text = "float twice(float x) { return 2 * x; }\n\nkernel void f(global float *x) {\n  *x = twice(*x);\n}\n"
    >>> from lift_egraph.codegen.plans.kernel import Kernel, Launch
    >>> plan = Plan("f", "", text, (Kernel("f", "", (), Launch((1, 1, 1)), 0),), (), ())
    >>> print(batch_source([plan, plan]), end="")
    float twice(float x) { return 2 * x; }
    kernel void f__0(global float *x) {
      *x = twice(*x);
    }
    kernel void f__1(global float *x) {
      *x = twice(*x);
    }
    """
    found: dict[str, None] = {}
    for number, plan in enumerate(plans):
        text = plan.source
        for name in dict.fromkeys(kernel.name for kernel in plan.kernels):
            text = re.sub(rf"\bvoid {name}\(", f"void {name_in_batch(name, number)}(", text)
        found.update(dict.fromkeys(_definitions(text)))
    return "".join(found)


def texts_of(plan: Plan) -> dict[str, str]:
    r"""What each kernel of a plan is built from, by its name: alike for kernels that differ in names alone.

    A kernel is given its arguments in their order, so its parameters are named by their places.

    Examples
    --------
    >>> text = "// once\nkernel void f(global const float *tmp9, global float *result) {\n  *result = *tmp9;\n}\n"
    >>> print(texts_of(Plan("f", "", text, (), (), ()))["f"], end="")
    kernel void (global const float *#0, global float *#1) {
      *#1 = *#0;
    }
    """
    return dict(_texts(plan.source))


@lru_cache(KEPT)
def _texts(source: str) -> tuple[tuple[str, str], ...]:
    definitions = [*_definitions(source)]
    beside = "".join(text for text in definitions if not _HEAD.search(text))
    heads = ((text, _HEAD.search(text)) for text in definitions)
    return tuple((head[1], beside + _unnamed(text, head)) for text, head in heads if head)


def source_of(plan: Plan, kernels: Container[str]) -> str:
    """The text of some kernels of a plan, by their names, without comments."""
    heads = ((text, _HEAD.search(text)) for text in _definitions(plan.source))
    return "".join(text for text, head in heads if head is None or head[1] in kernels)


def _unnamed(kernel: str, head: re.Match[str]) -> str:
    """The text of a kernel without its name, and with its parameters named by their places."""
    text = kernel[: head.start(1)] + kernel[head.end(1) :]
    if not head[2]:  # where nothing is computed
        return text
    places = {parameter.split("*")[-1].split()[-1]: n for n, parameter in enumerate(head[2].split(", "))}
    named = "|".join(map(re.escape, places))
    return re.sub(rf"(?<![\w.])(?:{named})\b", lambda found: f"#{places[found[0]]}", text)


def _definitions(text: str) -> Iterator[str]:
    """The directives, types, functions and kernels of a text, without comments."""
    lines, depth = list[str](), 0
    for line in text.splitlines():
        code = line.partition("//")[0].rstrip()
        if not code:
            continue
        lines.append(code + "\n")
        depth += code.count("{") - code.count("}")
        if (depth == 0 and code.endswith(("}", ";"))) or code.startswith("#"):
            yield "".join(lines)
            lines = []
    if lines:
        yield "".join(lines)
