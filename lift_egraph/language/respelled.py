"""Programs in other words: what is changed of a program's body before a search, whatever that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lift_egraph.language import ir
from lift_egraph.language.binders import unique_names


def respelled(program: ir.Program, change: Callable[[ir.Expr], ir.Expr]) -> ir.Program:
    """The program with another body, made of the same with binders that have names of their own.

    It stays as it is where nothing changes.
    """
    named = unique_names(program.body)
    body = change(named)
    return program if body is named else replace(program, body=body)
