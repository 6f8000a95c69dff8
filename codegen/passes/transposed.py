"""Rows that the lanes of a vector go along side by side, read in squares that are transposed in registers.

Where each lane folds a chunk of its own, a step reads an element of each chunk, and puts a vector together of as many
reads as it has lanes: on a CPU each costs a shuffle, and these are what the loop waits for. Here as many steps are
taken at once. Each chunk gives a vector of neighbours, and log2 w rounds of w shuffles make of w such vectors those of
the steps: w log2 w of them in place of w (w - 1).

    for (i = 0; i < n; i += 1)  x = (a[i], a[i + n]); …
    becomes
    for (i = 0; i < n; i += 2)  r0 = vload2(a + i); r1 = vload2(a + i + n);
                                x = (r0.s0, r1.s0); …  x = (r0.s1, r1.s1); …

Source: Eklundh, "A fast computer method for matrix transposing", IEEE Transactions on Computers 1972.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from lift_egraph.codegen.c_ast import (
    AROUND,
    Barrier,
    Block,
    Body,
    CExpr,
    For,
    If,
    Lane,
    Let,
    Load,
    Name,
    Pack,
    Statement,
    SteppedVar,
)
from lift_egraph.codegen.c_walk import data_in, depends, rewrite, statements, stores, substitute, walk, with_body
from lift_egraph.codegen.names import c_name
from lift_egraph.language.nat import Nat, NatVar, nat
from lift_egraph.language.types import bytes_of, scalar_of

LEAST = 4  # lanes: two take as many shuffles one by one
WORD = 4  # bytes of elements whose shuffles are fast: squares of bytes take 20 times as long as bytes one by one
MOST_SQUARES = 2  # that a loop reads: their vectors have to stay in registers
MOST_STATEMENTS = 256  # that this may make of the body of a loop


def transposed_reads(body: Body, taken: set[str]) -> Body:
    """A kernel's body that reads in squares where lanes go along rows of global memory that it does not write.

    Parameters
    ----------
    taken
        Names that are in use; those of the vectors join them.
    """
    return _changed(body, {place.buffer.name for place in stores(body)}, taken)


def _changed(body: Body, written: set[str], taken: set[str]) -> Body:
    made: list[Statement] = []
    for statement in body:
        if not isinstance(statement, AROUND):
            made.append(statement)
            continue
        if isinstance(statement, For) and (squares := _squares(statement, written)):
            made += _in_squares(statement, squares, taken)
        else:
            made.append(with_body(statement, _changed(statement.body, written, taken)))
    return tuple(made)


def _squares(loop: For, written: set[str]) -> list[Pack]:
    """The vectors that a loop puts together of elements of rows, if it may take their width of steps at once."""
    count = loop.count.constant
    if loop.is_parallel or loop.step != 1 or loop.ticket or count is None:
        return []
    inside = list(statements(loop.body))
    if any(isinstance(s, For | If | Block | Barrier) for s in inside):
        return []
    found = [p for p in dict.fromkeys(walk(loop.body)) if isinstance(p, Pack) and is_square(p, loop.variable, written)]
    widths = {len(pack.items) for pack in found}
    if len(widths) != 1 or len(found) > MOST_SQUARES or any(bytes_of(scalar_of(p.type)) < WORD for p in found):
        return []
    (width,) = widths
    return found if LEAST <= width <= count and width * len(inside) <= MOST_STATEMENTS else []


def is_square(pack: Pack, variable: NatVar, written: set[str]) -> bool:
    """Whether each item is the next element of a row of its own, with every step."""
    reads = [item for item in pack.items if isinstance(item, Load) and item.width == 1]
    width = len(pack.items)
    if len(reads) < width or width & (width - 1) or any(data_in(read.index) for read in reads):
        return False
    (buffer, *others) = {read.buffer.name: read.buffer for read in reads}.values()
    if others or buffer.space != "global" or buffer.name in written:
        return False
    if reads[0].index.coefficient_of(variable) != nat(1):
        return False
    apart = [after.index - before.index for before, after in pairwise(reads)]
    return not any(depends(d, variable) or (d.constant is not None and abs(d.constant) < width) for d in apart)


def _in_squares(loop: For, squares: list[Pack], taken: set[str]) -> Iterator[Statement]:
    """The loop in steps as wide as the vectors, and what is left."""
    width, old = len(squares[0].items), loop.variable
    whole, rest = divmod(loop.most, width)
    variable = SteppedVar(old.name, 0, (whole - 1) * width, step=width)
    lets: list[Statement] = []
    names = {square: _transposed(square, {old.name: nat(variable)}, lets, taken) for square in squares}
    blocks: list[Block] = []
    for step in range(width):
        of_step = {square: vectors[step] for square, vectors in names.items()}
        body = rewrite(loop.body, lambda part, of=of_step: of.get(part) if isinstance(part, Pack) else None)
        blocks.append(Block(substitute(body, {old.name: nat(variable) + step}), origin=loop.origin))
    yield replace(loop, variable=variable, count=nat(whole), step=width, body=(*lets, *blocks))
    if rest:
        left = NatVar(old.name, 0, rest - 1)
        body = substitute(loop.body, {old.name: nat(left) + whole * width})
        yield replace(loop, variable=left, count=nat(rest), body=body)


def _transposed(square: Pack, place: dict[str, Nat], lets: list[Statement], taken: set[str]) -> list[Name]:
    """The names of the vectors across rows, in constants: in each round pairs exchange half of their lanes."""
    width = len(square.items)
    rows = [replace(row, width=width) for row in substitute(square, place).items]

    def named(value: CExpr) -> Name:
        name = c_name("row", taken)
        lets.append(Let(name, value))
        return Name(name, square.type)

    vectors, distance = [named(row) for row in rows], 1
    while distance < width:
        made = dict[int, Name]()
        for first in (n for n in range(width) if not n & distance):
            a, b = vectors[first], vectors[first + distance]
            for number, shift in ((first, 0), (first + distance, distance)):
                lanes = (Lane(b if lane & distance else a, nat((lane & ~distance) | shift)) for lane in range(width))
                made[number] = named(Pack(tuple(lanes), square.type))
        vectors, distance = [made[n] for n in range(width)], 2 * distance
    return vectors
