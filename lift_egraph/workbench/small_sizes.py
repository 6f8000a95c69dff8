"""The same plan at small sizes: what the interpreter can check whole."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

from lift_egraph.errors import LiftError
from lift_egraph.language import ir
from lift_egraph.language.binders import alpha_equal
from lift_egraph.language.check import size_of, specialise, type_of
from lift_egraph.language.grammar import Source
from lift_egraph.language.heads import Reading
from lift_egraph.language.nat import Nat
from lift_egraph.language.pretty import print_program
from lift_egraph.language.syntax import parse_program
from lift_egraph.language.types import Array, DataType, Pair, leaves
from lift_egraph.meaning.time_limit import require_time
from lift_egraph.meaning.workload import effort
from lift_egraph.workbench.chunked import EVEN

MOST_EFFORT = 8e6  # of the small program: 0.2 seconds
LEAST = 12  # of a small size …
FEWEST = 2  # … and of one at which errors do not grow until no bound of them is finite
LARGE = 10_000  # what is no small size of a loop
TURNS = 3  # of each loop over tiles, if that is not too much
NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")  # a whole one: 90.0 is no size
TRIES = 200  # terms that are read for one plan
WIDEST = 16  # elements of a vector: what no sizes may be called
LONG = 64  # elements of a chunk that may be shorter at small sizes: no vector or block is so long


@dataclass(frozen=True)
class Twin:
    """A program and a low-level term of it, both at small sizes, or with so many turns of their loops at most."""

    program: ir.Program
    lowered: ir.Program
    turns: int | None = None

    @property
    def where(self) -> str:
        """Its sizes and turns, in words."""
        sizes = [f"{name} = {size}" for name, size in self.program.sizes]
        return ", ".join([*sizes, *([f"{self.turns} turns of each loop"] if self.turns else [])])


def twin(
    source: ir.Program, sizes: Mapping[str, int], lowered: ir.Program, least: int = LEAST
) -> Twin | None:
    """A low-level term that differs from another in its sizes only, and those small, but with all its numbers.

    The numbers of the term (tiles, vector widths, windows) say which sizes it has; those that are a size of the program
    themselves become the small one. Long chunks of a size become chunks of the small one, as many or fewer, and what
    remains behind them stays as it is. Sizes that are equal stay equal.

    Parameters
    ----------
    source
        The program with open sizes.
    sizes
        Of the program that `lowered` comes from.
    least
        Of a small size.

    Returns
    -------
    Twin or None
        None where no smaller sizes were found. Whether both mean the same, only the interpreter says.

    Raises
    ------
    TimeProblem
        If the time for interpreting is over.

    Examples
    --------
    >>> source = parse_program("program f(x: [f32]N) where N = 1000000 = map(abs, x)")
    >>> lowered = parse_program("program f(x: [f32]1000000) = join(mapGlb(0, mapSeq(abs), split(16, x)))")
    >>> dict(twin(source, {"N": 1000000}, lowered).program.sizes)
    {'N': 48}
    """
    found = _twin(source, sizes, lowered, least)
    if found is None and (opened := with_open_lengths(source)) is not None:
        return _twin(opened, {**dict(opened.sizes), **sizes}, lowered, least)
    return found


@lru_cache(64)
def with_open_lengths(program: ir.Program) -> ir.Program | None:
    """A program with names, whose values it gives, for the lengths of inputs, and of what it generates, that it says in
    numbers, from `LEAST` on, but for those that it needs to be these very numbers; None where no length is open then.

    Examples
    --------
    >>> with_open_lengths(parse_program("program f(x: [f32]1000) = map(abs, x)")).sizes
    (('length1000', 1000),)
    """
    sizes = [size for i in program.inputs for _, sizes, _ in leaves(i.type) for size in sizes]
    sizes += [part.size for part in ir.subterms(program.body) if isinstance(part, ir.Generate | ir.Fill)]
    opened = None
    for n in sorted({n for size in sizes if (n := size.constant) and n >= LEAST}, reverse=True):
        opened = _with_open_length(opened or program, n) or opened
    return opened


def _with_open_length(program: ir.Program, length: int) -> ir.Program | None:
    name, number = f"length{length}", re.compile(rf"(?<![\w.]){length}(?![\w.])")
    head, equals, body = print_program(replace(program, sizes=(), laws=())).partition("=\n")
    sizes = (*program.sizes, (name, length))
    opened = f"{number.sub(name, head)}where {', '.join(f'{n} = {size}' for n, size in sizes)} {equals}"
    for text in (opened + number.sub(name, body), opened + body):
        try:
            made = replace(parse_program(text), laws=program.laws)
            if name not in head + body and alpha_equal(specialise(made, {}).body, specialise(program, {}).body):
                return made
        except LiftError:
            continue
    return None


def _twin(source: ir.Program, sizes: Mapping[str, int], lowered: ir.Program, least: int) -> Twin | None:
    chosen, tries = dict(sizes), iter(range(TRIES))
    numbers, text = _numbers(lowered.body), _text_of(source, lowered)
    best: Twin | None = None
    for value in sorted(set(sizes.values()), reverse=True):
        names = [name for name, v in sizes.items() if v == value]
        others = sum({v for v in chosen.values() if v < min(value, LARGE)})
        working: list[tuple[int, Twin]] = []
        for small, _ in zip(_candidates(value, numbers, others, least), tries, strict=False):
            at_small = {**chosen, **dict.fromkeys(names, small)}
            require_time()
            made = _at(source, at_small, sizes, text, numbers)
            if made is not None:
                working.append((small, made))
            if len(working) == TURNS:
                break
        if working:
            fitting = [w for w in working if effort(w[1].program.body) <= MOST_EFFORT] or working[:1]
            small, best = fitting[-1]
            chosen.update(dict.fromkeys(names, small))
    return best if best is not None and effort(best.program.body) <= MOST_EFFORT else None


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


def _numbers(body: ir.Expr) -> Numbers:
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


def _candidates(value: int, numbers: Numbers, others: int, least: int) -> Iterator[int]:
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


class _Text:
    """A low-level term as text, in which numbers that may be others are names: it is read once, and made with many."""

    def __init__(self, source: ir.Program, lowered: ir.Program) -> None:
        text = print_program(replace(lowered, inputs=source.inputs, sizes=(), laws=()))
        self._head, _, self._body = text.partition("=\n")
        self.numbers = frozenset(int(word) for word in NUMBER.findall(self._body))
        self._prefix = "number"
        while self._prefix in text:
            self._prefix += "_"
        self._open = self._with({n: f"{self._prefix}{n}" for n in self.numbers if n > WIDEST})
        self._made: dict[tuple[object, ...], ir.Expr | None] = {}

    def _with(self, names: Mapping[int, str]) -> Reading:
        body = NUMBER.sub(lambda m: names.get(int(m[0]), m[0]), self._body)
        return Reading(Source(f"{self._head}=\n{body}", "<text>"))

    def at(self, sizes: Mapping[str, int], others: Mapping[int, int]) -> ir.Expr | None:
        """The term at sizes, with other numbers in the places of some; None if it is none."""
        changed = {n: others[n] for n in self.numbers if others.get(n, n) != n}
        key = *sizes.items(), *sorted(changed.items())
        if key not in self._made:
            self._made[key] = None
            with suppress(LiftError):
                self._made[key] = self._at(sizes, changed)
        return self._made[key]

    def _at(self, sizes: Mapping[str, int], changed: Mapping[int, int]) -> ir.Expr:
        if any(n <= WIDEST for n in changed):
            return self._with({n: str(other) for n, other in changed.items()})(dict(sizes)).body
        named = {f"{self._prefix}{n}": changed.get(n, n) for n in self.numbers if n > WIDEST}
        return self._open({**sizes, **named}).body


def _at(
    source: ir.Program, small: dict[str, int], sizes: Mapping[str, int], text: _Text, numbers: Numbers
) -> Twin | None:
    try:
        program = specialise(source, small)
    except LiftError:
        return None
    derived = _derived(source.body, sizes, small)
    for others in _others(text.numbers, derived, sizes, small, numbers):
        body = text.at(small, others)
        if body is not None and type_of(body) == type_of(program.body):
            return Twin(program, replace(program, body=body))
    return None


@lru_cache(8)
def _text_of(source: ir.Program, lowered: ir.Program) -> _Text:
    """It is kept: where no small sizes are found, smaller ones are looked for."""
    return _Text(source, lowered)


def _derived(body: ir.Expr, sizes: Mapping[str, int], small: Mapping[str, int]) -> dict[int, int]:
    """The numbers that sizes of the program make, such as ``2 * N`` and ``N - 1``, and what stands for them."""
    found: dict[int, set[int]] = {}
    for size in {size for part in ir.subterms(body) for size in _sizes_of(part) if size.variables}:
        before, after = (size.substitute(dict(chosen)).constant for chosen in (sizes, small))
        if before is not None and after is not None:
            found.setdefault(before, set()).add(after)
    return {before: after.pop() for before, after in found.items() if len(after) == 1}


def _sizes_of(part: ir.Part) -> Iterator[Nat]:
    """Of a node: its own sizes, and the lengths of its value."""
    yield from (value for name in part.__dataclass_fields__ if isinstance(value := getattr(part, name), Nat))  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(part, ir.Expr):
        todo: list[DataType] = [type_of(part)]
        while todo:
            match todo.pop():
                case Array(element=element, size=size):
                    todo.append(element)
                    yield size
                case Pair(first=first, second=second):
                    todo += [first, second]
                case _:
                    pass


def _others(
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
