"""Several plans as one OpenCL program: what a device's compiler takes to begin, it then takes once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lift_egraph.codegen.plans.kernel import Plan


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
