"""The grammar of the text form, its syntax trees, and messages that point into the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Any, TypeVar

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedToken, v_args

from lift_egraph.errors import SizeProblem, SyntaxProblem, TypeProblem
from lift_egraph.language.other_words import ELSEWHERE, FUNCTION, NAMED
from lift_egraph.language.scalar import OPERATIONS
from lift_egraph.language.types import SCALAR_BYTES, Scalar

T = TypeVar("T")

MAX_DEPTH, MAX_LETS = 128, 1000
SHOWN = 60  # characters of a line that messages show on each side of a place
SUFFIXES = tuple(name for name in SCALAR_BYTES if name != "bool")  # of numbers
WHOLE = tuple(name for name in SUFFIXES if Scalar(name).is_integer)


def _symbols(level: int) -> str:
    """The infix symbols that bind alike, but for minus, which is a sign too."""
    return " | ".join(f'"{op.symbol}"' for op in OPERATIONS.values() if op.level == level and op.symbol != "-")


GRAMMAR = rf"""
program: (function | alternative)* main alternative*
main: PROGRAM NAME "(" [input ("," input)*] ")" [WHERE size ("," size)*] "=" expr
function: FUNCTION NAME "(" input ("," input)* ")" [WHERE law ("," law)*] "=" expr
law: NAME [unary]
alternative: ALTERNATIVE NAME [WHERE _demand ("," _demand)*] "=" expr
_demand: tunable | guard | device
tunable: NAME range
guard: sum COMPARE sum
device: NAME NAME
input: NAME ":" type [range]
annotation: type [range]
range: "in" sum [".." sum]
size: NAME "=" (NUMBER | "?")

type: "[" type "]" extent        -> array_type
    | NAME                       -> named_type
    | "(" type ("," type)+ ")"   -> tuple_type

?extent: NUMBER -> number
    | NAME      -> name
    | "(" expr ")"

?expr: composition
    | FUN pattern "=>" expr             -> fun
    | LET pattern "=" expr "in" expr    -> let
    | IF expr "then" expr "else" expr   -> choice
    | NAME "=>" expr                    -> index
?composition: disjunction
    | disjunction COMPOSE expr          -> compose
?disjunction: conjunction
    | disjunction OR conjunction        -> infix
?conjunction: comparison
    | conjunction AND comparison        -> infix
?comparison: sum
    | sum COMPARE sum                   -> infix
?sum: product
    | sum (PLUS | MINUS) product        -> infix
?product: unary
    | product TIMES unary               -> infix
?unary: postfix
    | MINUS unary                       -> negate
    | NOT unary                         -> deny
?postfix: atom
    | postfix "(" [expr ("," expr)*] ")"  -> call
    | postfix "[" expr "]"                -> element
?atom: NAME                             -> name
    | NUMBER                            -> number
    | (TRUE | FALSE | INF | INF16 | INF64)      -> constant
    | "(" expr ")"
    | OPEN expr ("," expr)+ ")"         -> tuple

pattern: NAME                           -> bind
    | "(" entry ("," entry)* ")"        -> tuple_pattern
?entry: pattern
    | NAME ":" type                     -> bind

PROGRAM: "program"
FUNCTION: "function"
ALTERNATIVE: "alternative"
WHERE: "where"
FUN: "fun"
LET: "let"
IF: "if"
ARROW: "=>"
TRUE: "true"
FALSE: "false"
INF: "inf"
INF16: "inf16"
INF64: "inf64"
OPEN: "("
RANGE: ".."
COMPOSE: "." | "∘" | "◦"
OR: {_symbols(1)}
AND: {_symbols(2)}
COMPARE: {_symbols(3)}
PLUS: {_symbols(4)}
MINUS: "-"
NOT: "!"
TIMES: {_symbols(5)}
NUMBER: /[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?({"|".join(SUFFIXES)})?(?!\w)/
    | /0x[0-9a-fA-F]+({"|".join(WHOLE)})?(?!\w)/
NAME: /[^\W\d]\w*/
COMMENT: /--[^\n]*/
%ignore COMMENT
%ignore /\s+/
"""

_TERMINALS = {
    "NAME": "a name", "NUMBER": "a number", "COMPARE": "a comparison", "TIMES": "'*'", "COMPOSE": "'.'", "OR": "'||'",
    "AND": "'&&'", "PLUS": "'+'", "MINUS": "'-'", "LPAR": "'('", "OPEN": "'('", "RPAR": "')'", "LSQB": "'['",
    "RSQB": "']'", "COMMA": "','", "COLON": "':'", "EQUAL": "'='", "QMARK": "'?'", "IN": "'in'", "WHERE": "'where'",
    "RANGE": "'..'", "ARROW": "'=>'", "PROGRAM": "'program'", "NOT": "'!'",
    "FUNCTION": "'function'", "ALTERNATIVE": "'alternative'", "$END": "the end",
}  # fmt: skip
ARRAY, SIZES = "an array is [f32]N", "a size that others make is a value: let half = N / 2 in"
_LET_ENDS = f"; {ELSEWHERE[';']}"
_HINTS: tuple[tuple[set[str], str, str], ...] = (  # for what may stand in a place, and what does
    ({"RSQB"}, "COMMA", "; arrays of arrays are [[f32]M]N, their elements xs[i][j]"),
    ({"RSQB"}, "IN", "; a range stands behind the whole type: x: [[f32]N]M in 0..1"),
    *(({"RSQB"}, sign, "; a part of an array is slice(start, length, xs)") for sign in ("COLON", "RANGE")),
    ({"IN"}, "LSQB", f"; {ARRAY}"),
    ({"IN"}, "TIMES", "; a length that is computed stands in parentheses: [f32](2 * N)"),
    ({"IN"}, "PLUS", "; a length that is computed stands in parentheses: [f32](N + 1)"),
    ({"ARROW"}, "COLON", f"; {FUNCTION}"),
    ({"WHERE"}, "MINUS", "; what a program gives has no type annotation"),
    ({"WHERE"}, "COLON", "; what a program gives has no type annotation"),
    ({"WHERE"}, "COMMA", "; sizes stand behind where: where N = 4"),
    *(({"COMMA", "EQUAL"}, sign, f"; {SIZES}") for sign in ("PLUS", "MINUS", "TIMES")),
    ({"EQUAL"}, "COLON", "; a size is where N = 4, and only parameters have types, fun (x: f32) => e"),
    ({"IN", "PLUS"}, "NAME", _LET_ENDS),
    ({"IN", "PLUS"}, "LET", _LET_ENDS),
    ({"PLUS"}, "NAME", "; f of x is f(x)"),
    ({"NAME", "NUMBER", "NOT"}, "IF", "; an operand that begins with if stands in parentheses"),
    ({"NAME", "NUMBER", "NOT"}, "LET", "; an operand that begins with let stands in parentheses"),
    ({"NUMBER", "INF"}, "COMPOSE", "; a number is 0.5"),
    ({"FUN", "RPAR"}, "PLUS", "; the operation by itself is add"),
    ({"FUN", "RPAR"}, "TIMES", "; the operation by itself is mul, div or mod"),
    ({"FUN", "RPAR"}, "AND", "; the operation by itself is and"),
    ({"FUN", "RPAR"}, "OR", "; the operation by itself is or"),
    ({"FUN", "MINUS"}, "LSQB", "; arrays are inputs, or made by generate, fill and concat"),
    ({"PLUS", "TIMES"}, "EQUAL", f"; {NAMED}"),
    ({"ARROW"}, "COMMA", "; several parameters are fun (x, y) => …"),
    ({"COMMA", "EQUAL"}, "LET", "; = stands before what a program gives"),
    ({"NAME", "NUMBER"}, "LSQB", "; arrays are [f32]N, arrays of arrays [[f32]M]N"),
    ({"QMARK"}, "NAME", f"; {SIZES}"),
    ({"AND"}, "COMPARE", "; a value between two is 0 < x && x < 1"),
    ({"PLUS"}, "IF", "; a choice between values is if c then a else b"),
    ({"ELSE"}, "COMMA", "; a choice between values is if c then a else b"),
    ({"ELSE"}, "RPAR", "; a choice between values is if c then a else b"),
    ({"PLUS"}, "WHERE", "; where and sizes stand in front of the = behind the inputs"),
    ({"$END"}, "PROGRAM", "; a text has one program, and functions stand above it"),
    *(({"$END"}, sign, "; functions stand above the program") for sign in ("FUNCTION", "ALTERNATIVE")),
    ({"COLON"}, "COMMA", "; each input has its type: x: [f32]N, y: [f32]N"),
    ({"PROGRAM"}, "NAME", "; a program is program f(x: [f32]N) = …"),
)
_ONLY = ({"ARROW"}, "NAME", "; several parameters are fun (x, y) => …")  # where nothing else may stand
_STARTS = {"NAME", "NUMBER", "FUN", "LET", "IF", "TRUE", "FALSE", "INF", "INF16", "INF64", "OPEN", "LPAR"}
_STARTS |= {"MINUS", "NOT"}
_INFIX = {"PLUS", "MINUS", "TIMES", "COMPARE", "AND", "OR", "COMPOSE"}


@dataclass(frozen=True)
class Place:
    """A line and a column of a text, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Tree:
    """A node of the syntax tree; `items` are its parts: trees, texts and numbers.

    `depth` says how deep it is nested, not counting what stands after ``in``; `lets` how many lets stand in each other.
    """

    kind: str
    items: tuple[Any, ...]
    place: Place
    depth: int = 1
    lets: int = 0


@dataclass(frozen=True)
class Source:
    """A text and the name that messages call it by."""

    text: str
    name: str

    def message(self, problem: str, place: Place) -> str:
        """The problem with its place, the part of the line around it, and a caret below the column."""
        lines = re.split(r"\r\n|\r|\n", self.text)
        line = lines[place.line - 1] if place.line <= len(lines) else ""
        line = "".join(c if c == "\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
        before, after = line[: place.column - 1], line[place.column - 1 :]
        if len(before) > SHOWN:
            before = "…" + before[1 - SHOWN :]
        if len(after) > SHOWN:
            after = after[: SHOWN - 1] + "…"
        blank = "".join(c if c == "\t" else " " for c in before)
        return f"{self.name}:{place.line}:{place.column}: {problem}\n  {before}{after}\n  {blank}^"

    def at(self, place: Place) -> str:
        """A place in the text, as messages begin."""
        return f"{self.name}:{place.line}:{place.column}"


class Misplaced(Exception):
    """A problem found inside the text, before the text's name and lines are known."""

    def __init__(self, problem: str, place: Place, kind: type[Exception] = SyntaxProblem) -> None:
        super().__init__(problem)
        self.place = place
        self.kind = kind

    def located(self, source: Source) -> Exception:
        """The problem as the user's exception."""
        return self.kind(source.message(str(self), self.place))


@contextmanager
def located(place: Place) -> Iterator[None]:
    """What is wrong with types and sizes in the ``with`` block is wrong at a place."""
    try:
        yield
    except (TypeProblem, SizeProblem) as problem:
        raise Misplaced(str(problem), place, type(problem)) from None


def suggestion(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'map'?``, where a known name is close."""
    if meant := ELSEWHERE.get(name):
        return f"; {meant}"
    names = list(known)
    swapped = [k for k in names if sorted(k.lower()) == sorted(name.lower())]
    close = swapped or (get_close_matches(name, names, n=1, cutoff=0.5) if len(name) > 1 else [])
    return f"; did you mean {close[0]!r}?" if close else ""


def _place(token: Token) -> Place:
    return Place(token.line or 1, token.column or 1)


def _place_of(text: str, at: int) -> Place:
    """The place of a character, by how many stand before it."""
    return Place(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def _tree(kind: str, place: Place, *items: Any) -> Tree:
    below = [i for item in items for i in (item if isinstance(item, tuple) else (item,)) if isinstance(i, Tree)]
    depth = 1 + max((i.depth for i in below), default=0)
    if depth > MAX_DEPTH:
        raise Misplaced(f"this is nested deeper than {MAX_DEPTH} levels; name parts of it with let", place)
    return Tree(kind, items, place, depth, max((i.lets for i in below), default=0))


@v_args(inline=True)
class _Trees(Transformer[Token, Any]):
    """Builds syntax trees while parsing, so that no recursion follows the nesting of the text."""

    def __default__(self, data: str, children: list[Any], meta: Any) -> Any:
        """A node with its children as they are, placed where the first stands; a word or sign in front is no part."""
        if data.startswith("_"):  # a rule of the parser's own
            return super().__default__(data, children, meta)
        first, *rest = children
        if isinstance(first, Tree):
            return _tree(str(data), first.place, *children)
        return _tree(str(data), _place(first), *([str(first)] if first.type == "NAME" else []), *rest)

    def program(self, *parts: Tree) -> Tree:
        return Tree("program", parts, parts[0].place)

    def main(self, start: Token, name: Token, *items: Any) -> Tree:
        parts = [i for i in items if isinstance(i, Tree)]
        inputs = tuple(p for p in parts if p.kind == "input")
        sizes = tuple(p for p in parts if p.kind == "size")
        return Tree("main", (str(name), inputs, sizes, parts[-1]), _place(start))

    def function(self, start: Token, name: Token, *items: Any) -> Tree:
        *parts, body = (i for i in items if isinstance(i, Tree))
        inputs = tuple(p for p in parts if p.kind == "input")
        return Tree("function", (str(name), inputs, tuple(p for p in parts if p.kind == "law"), body), _place(start))

    def law(self, name: Token, about: Tree | None = None) -> Tree:
        return _tree("law", _place(name), str(name), about)

    def alternative(self, start: Token, name: Token, *items: Any) -> Tree:
        *demands, body = (i for i in items if isinstance(i, Tree))
        return Tree("alternative", (str(name), tuple(demands), body), _place(start))

    def tunable(self, name: Token, values: Tree) -> Tree:
        return _tree("tunable", _place(name), str(name), values)

    def guard(self, left: Tree, sign: Token, right: Tree) -> Tree:
        return _tree("guard", left.place, str(sign), left, right)

    def device(self, preposition: Token, kind: Token) -> Tree:
        return _tree("device", _place(preposition), str(preposition), str(kind))

    def input(self, name: Token, type: Tree, range: Tree | None = None) -> Tree:
        return _tree("input", _place(name), str(name), type, range)

    def annotation(self, type: Tree, range: Tree | None = None) -> Tree:
        return _tree("annotation", type.place, type, range)

    def size(self, name: Token, value: Token | None = None) -> Tree:
        return _tree("size", _place(name), str(name), None if value is None else self.number(value))

    def let(self, start: Token, pattern: Tree, value: Tree, body: Tree) -> Tree:
        above = _tree("let", _place(start), pattern, value)  # a chain of lets is as deep as its deepest part
        lets = 1 + max(above.lets, body.lets)
        if lets > MAX_LETS:
            raise Misplaced(f"more than {MAX_LETS} lets stand inside each other", above.place)
        return Tree("let", (pattern, value, body), above.place, max(above.depth, body.depth), lets)

    def compose(self, outer: Tree, sign: Token, inner: Tree) -> Tree:
        return _tree("compose", _place(sign), outer, inner)

    def infix(self, left: Tree, sign: Token, right: Tree) -> Tree:
        return _tree("infix", _place(sign), str(sign), left, right)

    def negate(self, sign: Token, value: Tree) -> Tree:
        if value.kind == "number" and not isinstance(value.items[0], bool):
            number, type = value.items
            return _tree("number", _place(sign), -number, type)
        return _tree("negate", _place(sign), value)

    def deny(self, sign: Token, value: Tree) -> Tree:
        return _tree("deny", _place(sign), value)

    def number(self, token: Token) -> Tree:
        is_hex = token.startswith("0x")
        suffix = next((s for s in (WHOLE if is_hex else SUFFIXES) if token.endswith(s)), None)
        digits = str(token).removesuffix(suffix or "")
        whole = is_hex or digits.isdigit()
        if len(digits) > 400:
            raise Misplaced("this number is too long", _place(token))
        wants_whole = suffix is not None and Scalar(suffix).is_integer
        if wants_whole and not whole:
            raise Misplaced(f"{digits} is no whole number, as {suffix} needs", _place(token))
        is_int = whole and (suffix is None or wants_whole)
        value = int(digits, 16 if is_hex else 10) if is_int else float(digits)
        if value == float("inf"):
            raise Misplaced(f"{digits} is beyond the range of f64; infinity is inf", _place(token))
        return _tree("number", _place(token), value, suffix)

    def constant(self, token: Token) -> Tree:
        value = {"true": True, "false": False}.get(str(token), float("inf"))
        return _tree("number", _place(token), value, {"inf16": "f16", "inf64": "f64"}.get(str(token)))

    def bind(self, name: Token, type: Tree | None = None) -> Tree:
        return _tree("bind", _place(name), str(name), type)

    def tuple_pattern(self, *entries: Tree) -> Tree:
        return entries[0] if len(entries) == 1 else _tree("pattern", entries[0].place, *entries)


@cache
def _parser() -> Lark:
    """The parser, made for the first text: it takes a tenth of a second, and most processes read none."""
    return Lark(
        GRAMMAR,
        parser="lalr",
        lexer="basic",
        start=["program", "expr", "type", "annotation"],
        transformer=_Trees(),
        maybe_placeholders=False,
    )


@lru_cache(16)
def parse_tree(source: Source, start: str) -> Tree:
    """The syntax tree of a text; that of one which is read at several sizes is kept.

    Raises
    ------
    Misplaced
        Where the text leaves the grammar.
    """
    try:
        return _parser().parse(source.text, start=start)  # pyright: ignore[reportReturnType]
    except UnexpectedCharacters as error:
        raise Misplaced(*_no_word(error, source)) from None
    except UnexpectedToken as error:
        raise Misplaced(*_unexpected(error, source)) from None


def parsed(source: Source, start: str, read: Callable[[Tree], T]) -> T:
    """What is read from the syntax tree of a text.

    Raises
    ------
    SyntaxProblem, TypeProblem, SizeProblem
        With line, column, the line and a caret.
    """
    try:
        return read(parse_tree(source, start))
    except Misplaced as problem:
        raise problem.located(source) from None
    except RecursionError:
        raise SyntaxProblem(f"{source.name}: this is nested too deeply") from None


def _no_word(error: UnexpectedCharacters, source: Source) -> tuple[str, Place]:
    at = error.pos_in_stream
    found, line = source.text[at], source.text.rfind("\n", 0, at) + 1
    before = source.text[line:at]
    if found == ";" and before.count("[") > before.count("]"):
        return f"';' cannot stand here; {ARRAY}", Place(error.line, error.column)
    if not found.isdigit():
        found = both if (both := source.text[at : at + 2]) in ELSEWHERE else found
        return f"{found!r} cannot stand here{suggestion(found, ())}", Place(error.line, error.column)
    begin = at - len(re.sub(r".*?((\d+\.)?)\Z", r"\1", before, flags=re.DOTALL))
    number = re.match(r"[\d.]*\w+", source.text[begin:])
    text = number[0] if number else found
    hint = f"numbers are 2, 0x2F, 2.0 or 1e-3, and with their type 2f32; the types are {', '.join(SUFFIXES)}"
    return f"{text!r} is no number; {hint}", Place(error.line, error.column - (at - begin))


def _unexpected(error: UnexpectedToken, source: Source) -> tuple[str, Place]:
    token, expected = error.token, set(error.accepts or error.expected)
    expected = expected - {"FUNCTION", "ALTERNATIVE"} or expected  # which stand beside a program
    start = source.text[: token.start_pos].rstrip()
    number = re.search(r"\b\d+\.\Z", start if token.type != "$END" else source.text.rstrip())
    point = f"; a number with a point is {number[0]}0" if number else ""
    word = re.search(r"[-*<>/]\Z|\w*\Z", start)
    before = word[0] if word else ""
    after = source.text[token.end_pos : token.end_pos + 1] if token.end_pos else ""
    here, there = _place(token), _place_of(source.text, len(start) - len(before))
    both = before + str(token)
    for text, place in ((str(token) + after, here), (str(token), here), (before, there), (both, there)):
        if text in ELSEWHERE:
            return f"{text!r} cannot stand here; {ELSEWHERE[text]}", place
    words: list[str] = []
    possible = frozenset(expected)
    if {"FUN", "LET", "IF"} <= expected:
        words, expected = ["an expression"], expected - _STARTS
    if expected >= _INFIX:
        words, expected = ["an operator"], expected - _INFIX
    words += sorted({_TERMINALS.get(t, repr(t.lower())) for t in expected})
    wanted = " or ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else "nothing more"
    if token.type != "$END":
        hints = (h for needed, found, h in _HINTS if needed <= possible and token.type == found)
        hint = next(hints, _ONLY[2] if (possible, token.type) == _ONLY[:2] else "")
        if not hint and "NAME" in possible and "FUN" not in possible and token.isidentifier():
            hint = f"; {str(token)!r} is a word of the language; choose another name"
        return f"expected {wanted}, found {str(token)!r}{point or hint}", _place(token)
    read = source.text.rstrip()
    return f"expected {wanted}, but the text ends{point}", Place(read.count("\n") + 1, len(read) - read.rfind("\n"))
