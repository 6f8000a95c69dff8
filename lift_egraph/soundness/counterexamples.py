"""Programs that a rule gets wrong, and values compared and shown."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent
from typing import Any

import numpy as np

from lift_egraph.egraph.rule import Rule
from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name, stem, unique_names
from lift_egraph.language.syntax import print_program, print_term
from lift_egraph.meaning.values import Value, leaves_of

UP_TO = {
    "signed_zero": "the signs of zeros",
    "reassociates": "rounding",
    "nan_unsafe": "what is infinite or not a number",
}  # by the flags of rules that may change it


@dataclass(frozen=True)
class Counterexample:
    """A program that a rule turns into something else.

    Attributes
    ----------
    program
        The program, which contains a match of the rule.
    rewritten
        The term that the rule made of its body.
    inputs
        The inputs for which they differ.
    expected, found
        Their results; `found` is a message where the rewritten term has no result or another type.
    reproducer
        Three lines of Python that find it again, names and all: the text form gives binders names of their own.
    """

    rule: Rule
    program: ir.Program
    rewritten: ir.Expr
    inputs: dict[str, Value]
    expected: Value
    found: Value | str
    reproducer: str = ""

    @property
    def size(self) -> int:
        """The number of nodes of the program, and of elements in its inputs."""
        return sum(1 for _ in ir.subterms(self.program.body)) + sum(
            x.size for x in leaves_of(tuple(self.inputs.values()))
        )

    def __str__(self) -> str:
        values = "\n".join(f"  {name} = {shown(value)}" for name, value in self.inputs.items())
        return (
            f"{self.rule.name} is not sound: {self.rule.law}\n"
            f"{print_program(self.program)}becomes\n{indent(print_term(self.rewritten), '  ')}\nfor\n{values}\n"
            f"expected\n  {shown(self.expected)}\nfound\n  {shown(self.found)}{_if_allowed(self.expected, self.found)}"
            + (f"\nthe same again\n{indent(self.reproducer, '  ')}" if self.reproducer else "")
        )


def closed(term: ir.Expr) -> ir.Expr:
    """The term with any value for each of its free variables, given as inputs.

    A class of closed terms may have an open member, as ``fst (a, x) = a``; its value must not depend on the variable.
    """
    term = applied(term)
    return term if bound_twice(term) else unique_names(term, base=stem)  # which would hide it


def applied(term: ir.Expr) -> ir.Expr:
    """As `closed`, with the names that it has."""
    names = {p.name for p in ir.subterms(term) if isinstance(p, ir.Input)}
    for v in sorted(ir.free_variables(term), key=str):
        given = ir.Input(fresh_name(f"any_{stem(v.name)}", names), v.type)
        term = ir.Apply(ir.Lambda(v, term), given)
    return term


def bound_twice(term: ir.Expr) -> str | None:
    """The name of a variable that one pattern of a term binds twice; None if there is none."""
    for part in ir.subterms(term):
        if isinstance(part, ir.Lambda):
            names = ir.bound_variables(part.binder)
            if len(set(names)) < len(names):
                return next(v.name for v in names if names.count(v) > 1)
    return None


def equal_values(left: Any, right: Any) -> bool:
    """Whether two values are equal: pairs by component, NaN equal to itself, zeros of either sign equal."""
    if isinstance(left, tuple) or isinstance(right, tuple):
        both = isinstance(left, tuple) and isinstance(right, tuple)
        return both and all(equal_values(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(right, str) or left.dtype != right.dtype:
        return False
    return np.array_equal(left, right, equal_nan=left.dtype.kind == "f")


def same_bits(left: Any, right: Any) -> bool:
    """Whether two values are equal bit for bit, NaN equal to itself."""
    if not equal_values(left, right):
        return False
    if isinstance(left, tuple):
        return all(map(same_bits, left, right))
    return left.dtype.kind != "f" or bool((np.isnan(left) | (np.signbit(left) == np.signbit(right))).all())


def _if_allowed(expected: Value, found: Value | str) -> str:
    """What a rule says that gives such results on purpose."""
    if isinstance(found, str):
        return ""
    pairs = [*zip(leaves_of(expected), leaves_of(found), strict=True)]
    if any(a.dtype.kind != "f" or a.dtype != b.dtype or a.shape != b.shape for a, b in pairs):
        return ""
    if equal_values(expected, found):
        flag = "signed_zero"
    elif all(np.allclose(a, b, rtol=32 * np.finfo(a.dtype).eps, atol=0, equal_nan=True) for a, b in pairs):
        flag = "reassociates"
    elif all(np.all((a == b) | ~np.isfinite(a) | ~np.isfinite(b)) for a, b in pairs):
        flag = "nan_unsafe"
    else:
        return ""
    return f"\nthey are equal up to {UP_TO[flag]}; a rule that is says so: @rule(…, {flag}=True)"


def shown(value: Value | str) -> str:
    """A value as text on one line, long ones shortened."""
    if isinstance(value, tuple):
        return f"({shown(value[0])}, {shown(value[1])})"
    return value if isinstance(value, str) else np.array2string(value, separator=", ", threshold=64).replace("\n", "")
