"""Smaller sizes that a term may have: its numbers say which, and what stands in their places then."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from lift_egraph.language import ir
from lift_egraph.language.check import size_of
from lift_egraph.workbench.changes.chunked import EVEN

LARGE = 10_000  # what is no small size of a loop
TURNS = 3  # of each loop over tiles, if that is not too much
LONG = 64  # elements of a chunk that may be shorter at small sizes: no vector or block is so long


@dataclass(frozen=True)
class Numbers:
    """The numbers of a term that say which sizes it has.

    Attributes
    ----------
    cuts
        Its chunk sizes, vector widths and steps.
    padded
        The lengths of arrays that are padded.
    chunks
        The lengths of arrays in chunks, and of these.
    """

    cuts: frozenset[int]
    padded: frozenset[int]
    chunks: frozenset[tuple[int, int]]

    def behind(self, value: int) -> list[int]:
        """How much more than so many elements padded arrays have."""
        return [length - value for length in sorted(self.padded) if value < length < 2 * value]


def numbers_of(body: ir.Expr) -> Numbers:
    """The numbers that say of a low-level term which sizes it has."""
    found, chunks = set[int | None](), set[tuple[int, int]]()
    for part in ir.subterms(body):
        match part:
            case ir.Split(chunk=n) | ir.Slide(step=n):
                found.add(n.constant)
                if isinstance(part, ir.Split) and (length := size_of(part.array).constant) and n.constant:
                    chunks.add((length, n.constant))
            case ir.AsVector(width=width):
                found.add(width)
    padded = (size_of(part).constant for part in ir.subterms(body) if isinstance(part, ir.Pad))
    cuts = frozenset(n for n in found if n is not None and n > 1)
    return Numbers(cuts, frozenset(n for n in padded if n), frozenset(chunks))


def smaller(value: int, numbers: Numbers, others: int, least: int) -> Iterator[int]:
    """Sizes below one, smallest first: its divisors, and what leaves the same rests; or any, where none is small.

    There are some above what all the `others` are together: a length is not below that of its windows.
    """
    found = _divisors(value)
    for period in (math.lcm(*numbers.cuts), math.prod(numbers.cuts)):
        for above in (0, others // period * period):
            found |= {value % period + above + turns * period for turns in range(1, 2 * TURNS)}
    chunks, rest = _long_chunks(value, numbers)
    turns = [t * even for even in (1, EVEN, EVEN**2) for t in range(1, 2 * TURNS) if t * even > 1]
    found |= {rest + t * math.lcm(*(value // c for c in chunks)) for t in turns if chunks}
    for c, count, rest in _counts(value, numbers):
        parts = math.gcd(*_parts_of(count, c, numbers))
        found |= {rest + c * (count * m // parts) for m in range(1, 2 * TURNS) if parts}
    found |= {whole // factor - (whole - value) for whole, factor, _ in _padded_in_proportion(value, numbers)}
    for pad, _, shorter in _padded_chunks(value, numbers):
        found |= {shorter * (pad // shorter + turns) - pad for turns in range(1, 2 * TURNS)}
    found = {n for n in found if least <= n < value}
    if min(found, default=LARGE) >= LARGE:
        found |= {above + turns * least for above in (0, others) for turns in range(1, 2 * TURNS)}
    yield from sorted(n for n in found if n < value)


def _divisors(n: int) -> set[int]:
    return {d for k in range(1, math.isqrt(n) + 1) if n % k == 0 for d in (k, n // k)}


def _long_chunks(value: int, numbers: Numbers) -> tuple[list[int], int]:
    """The numbers that are long chunks of a size, and what all of them leave: a few elements for each chunk."""
    rests = {value % c for c in numbers.cuts if LONG <= c < value and value % c < EVEN * (value // c)}
    rest = min(rests, default=0)
    return [c for c in numbers.cuts if LONG <= c < value and value % c == rest], rest


def _padded_chunks(value: int, numbers: Numbers) -> Iterator[tuple[int, int, int]]:
    """How much stands behind so many elements, the longest chunk that they have then, and a shorter one of two parts
    that all others divide.
    """
    for pad in numbers.behind(value):
        chunk = max((c for c in numbers.cuts if c >= LONG and (value + pad) % c == 0), default=0)
        if chunk:
            yield pad, chunk, min(chunk, 2 * math.lcm(*(c for c in numbers.cuts if c < chunk and chunk % c == 0)))


def _padded_in_proportion(value: int, numbers: Numbers) -> Iterator[tuple[int, int, list[int]]]:
    """The length that so many elements are padded to, a factor by which it may be shorter, and the long chunks that it
    has in several ways, each of which may be shorter by that, too: all parts of chunks divide what is left of them.
    """
    for pad in numbers.behind(value):
        whole = value + pad
        chunks = [chunk for length, chunk in numbers.chunks if length == whole]
        parts = [(c, d) for c in chunks for d in numbers.cuts.difference(chunks) if c % d == 0]
        common = math.gcd(*chunks) if len(chunks) > 1 else 1
        for factor in _divisors(common) - {1}:
            if whole // factor > pad and all(c // factor % d == 0 for c, d in parts):
                yield whole, factor, chunks


def _parts_of(count: int, chunk: int, numbers: Numbers) -> set[int]:
    """The numbers that are parts of how many chunks there are, none of a chunk: so many totals are taken at once."""
    return {n for n in numbers.cuts if EVEN < n <= count and count % n == 0 != chunk % n}


def _counts(value: int, numbers: Numbers) -> list[tuple[int, int, int]]:
    """The long chunks that a size may have, how many, and what is left: less than nothing where it is padded."""
    long, behind = [c for c in sorted(numbers.cuts) if LONG <= c < value], numbers.behind(value)
    rests = ((c, rest) for c in long for rest in (value % c, *(-pad for pad in behind)))
    return [(c, (value - rest) // c, rest) for c, rest in dict.fromkeys(rests) if (value - rest) % c == 0]


def _fewer(sizes: Mapping[str, int], small: Mapping[str, int], numbers: Numbers) -> dict[int, int]:
    """The parts of how many chunks of a size there are, and those of as many as the small one has, and what sizes are
    padded to.
    """
    found: dict[int, int] = {}
    for name, value in sizes.items():
        for c, count, rest in _counts(value, numbers):
            fewer, left = divmod(small[name] - rest, c)
            if fewer > 0 and left == 0:
                found |= {n: n * fewer // count for n in _parts_of(count, c, numbers) if n * fewer % count == 0}
                found |= {value - rest: small[name] - rest} if rest < 0 else {}
    return found


def _shorter(
    sizes: Mapping[str, int], small: Mapping[str, int], numbers: Numbers, written: Collection[int], fewer: int
) -> dict[int, int]:
    """The numbers of a term that are parts of what its long chunks take of a size, and those of the small one, which
    has so many times `fewer` chunks.
    """
    found: dict[int, int] = {}
    for name, value in sizes.items():
        chunks, rest = _long_chunks(value, numbers)
        whole, less = value - rest, (small[name] - rest) * fewer
        for n in written if chunks else ():
            if n >= LONG and whole % n == 0 and 0 < less <= whole:
                if less * n % whole:
                    return {}  # so few elements have no such part
                found[n] = less * n // whole
    return found


def _padded(sizes: Mapping[str, int], small: Mapping[str, int], numbers: Numbers) -> dict[int, int]:
    """The lengths that sizes are padded to, and the chunks of these, with those of the small ones."""
    found: dict[int, int] = {}
    for name, value in sizes.items():
        for pad, chunk, shorter in _padded_chunks(value, numbers):
            if (small[name] + pad) % shorter == 0:
                found |= {value + pad: small[name] + pad, chunk: shorter}
    return found


def _in_proportion(sizes: Mapping[str, int], small: Mapping[str, int], numbers: Numbers) -> dict[int, int]:
    """The lengths that sizes are padded to, and all long chunks of these, with those of the small ones."""
    found: dict[int, int] = {}
    for name, value in sizes.items():
        for whole, factor, chunks in _padded_in_proportion(value, numbers):
            if small[name] == whole // factor - (whole - value):
                found |= {n: n // factor for n in (whole, *chunks)}
    return found


def replacements(
    written: Collection[int],
    derived: Mapping[int, int],
    sizes: Mapping[str, int],
    small: Mapping[str, int],
    numbers: Numbers,
) -> Iterator[Mapping[int, int]]:
    """What may stand for the numbers that are written in a term: these, unless it has sizes of the program; those with
    the sizes replaced, with what they make, too, with what they are padded to, with what is left of them beside a rest,
    with their parts by its numbers, with fewer chunks, and with as many or fewer, but shorter ones.
    """
    whole, cuts = {sizes[name]: small[name] for name in sizes}, numbers.cuts
    if not ({n for n, s in whole.items() if n != s} - cuts).intersection(written):
        yield {}
    made = {n: s for n, s in derived.items() if n not in cuts} | whole
    rests = range(1, max(cuts, default=0) + 1)
    divided = {v - r: s - r for v, s in sorted(made.items(), reverse=True) for r in rests if r < s and v not in cuts}
    divisors = cuts | {a * b for a in cuts for b in cuts}
    parts = {v // d: s // d for v, s in whole.items() for d in divisors if v % d == 0 and s % d == 0}
    kept = ({n: s for n, s in found.items() if n not in cuts} | made for found in (divided, parts))
    shorter = (_shorter(sizes, small, numbers, written, fewer) | whole for fewer in (1, EVEN, EVEN**2))
    fewer = divided | _fewer(sizes, small, numbers) | whole
    padded = [of(sizes, small, numbers) | whole for of in (_padded, _in_proportion)]
    told = {frozenset[tuple[int, int]]()}
    for others in (whole, made, *padded, *kept, fewer, *shorter):
        changed = frozenset((n, others[n]) for n in written if others.get(n, n) != n)
        if changed not in told:
            told.add(changed)
            yield others
