"""The command line's ``lift-egraph rules``: the rule book, and the check of rules, a user's own among them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lift_egraph.cli.options import Json, ProgramText, SizeTexts, read_program, read_sizes
from lift_egraph.errors import InputProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from lift_egraph.egraph.rule import Rule
    from lift_egraph.soundness.many_rules import Verdict

SMALL = 6  # a size of an audited program, if no other is given

rules_app = typer.Typer(
    help="List, show and check rewrite rules.", invoke_without_command=True, pretty_exceptions_enable=False
)


@rules_app.callback()
def rules(context: typer.Context, as_json: Json = False) -> None:
    """List, show and check rewrite rules; without a command, list them."""
    if context.invoked_subcommand is None:
        list_rules(as_json)


@rules_app.command("list")
def list_rules(as_json: Json = False) -> None:
    """List the rules: what each says, where it comes from, when it is used, and whether it is proved or tested."""
    from lift_egraph.cli.show import print_json, stdout, table_of
    from lift_egraph.rules import all_rules

    facts = [{**rule.describe(), "checked": _checked(rule)} for rule in all_rules]
    if as_json:
        print_json(facts)
        return
    table = table_of("name", "law", "source", "family", "phase", "flags", "checked", "as right without")
    for fact in facts:
        flags, notes = ", ".join(fact["flags"]), ", ".join(fact["notes"])
        shown = fact["name"], fact["law"], fact["source"], fact["family"], fact["phase"], flags, fact["checked"], notes
        table.add_row(*shown)
    stdout().print(table)


@rules_app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="RULE", help="The name of a rule.")], as_json: Json = False
) -> None:
    """Show one rule: its law, source, family, phase, flags and notes, whether it is proved or tested, and its code."""
    import inspect

    from lift_egraph.cli.show import print_json
    from lift_egraph.soundness.proofs.table import known_proof

    rule = _named((name,))[0]
    proof = known_proof(rule)
    why = {} if proof is None or proof.proved else {"unproved": proof.text}
    facts = {
        **rule.describe(),
        "checked": _checked(rule),
        **why,
        "place": rule.place,
        "code": inspect.getsource(rule.body),
    }
    if as_json:
        print_json(facts)
        return
    typer.echo(f"{rule.name}: {rule.law}")
    for key in ("source", "family", "phase", "flags", "checked", *why, "place"):
        value = ", ".join(facts[key]) or "none" if key == "flags" else facts[key]
        typer.echo(f"  {key}: {value}")
    for change, why in facts["notes"].items():
        typer.echo(f"  as right {'if' if ' becomes ' in change else 'without'} {change}: {why}")
    typer.echo(f"\n{facts['code']}")


@rules_app.command()
def check(
    chosen: Annotated[
        list[str] | None,
        typer.Argument(metavar="RULE|FILE.py", help="Rules by name, or files with rules; all of ours if none."),
    ] = None,
    examples: Annotated[int, typer.Option(min=1, help="How many programs to make for each rule.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds make equal programs and inputs.")] = 0,
    jobs: Annotated[int | None, typer.Option(min=1, help="How many rules to check at the same time.")] = None,
    limit: Annotated[float, typer.Option(min=1.0, metavar="SECONDS", help="How long 20 programs may take.")] = 30.0,
    strict: Annotated[bool, typer.Option("--strict", help="Fail where a condition was broken by no program.")] = False,
    mutate: Annotated[bool, typer.Option("--mutate", help="Check mutants of the rules: what the check sees.")] = False,
    as_json: Json = False,
) -> None:
    """Look for programs that rules get wrong: run each on programs around its left-hand side, and compare the results.

    A rule fails that turns a program into one with another result, that fires in under 95 % of its programs, or
    that cannot be run; the exit code is then 1. Counterexamples are shrunk. Files are run in a child process. A
    condition is exercised if a program was run that breaks it and keeps the others.

    Up to ten programs that are polynomials of f32 are also run with i32 in its place on random 32-bit numbers, where
    there is no rounding, bit for bit; the chance that a wrong rewrite escapes there is said, errors that are multiples
    of 256 excepted.

    What passes is then tried to be proved for all sizes. A rule that is not proved may be right; the line below says
    where the proof fails, with sizes and an index if there are any. It takes z3 for rules that are not ours:
    the extra `prove` brings it.

    With --mutate, mutants of each rule that passes are checked: one condition is removed, weakened, shifted by one or
    asked of another variable, or one part of the right-hand side is exchanged. Each is caught, redundant, as the
    other conditions imply what was changed or the rule notes why it has it, or open: no example needs it; the exit
    code is then 1. A note counts only if the check finds nothing wrong with what it says.
    """
    import time

    from lift_egraph.cli.show import print_json
    from lift_egraph.rules import all_rules, simplification
    from lift_egraph.soundness.many_rules import JOBS, check_rules

    files, ours = _chosen(chosen, all_rules)
    sources = (*((ours,) if ours else ()), *files)
    began = time.perf_counter()
    verdicts = []
    with _progress() as listen:
        found = check_rules(
            sources, simplification=simplification, examples=examples, seed=seed, jobs=jobs or JOBS, seconds=limit,
            mutate=mutate, listen=listen,
        )  # fmt: skip
        for verdict in found:
            verdicts.append(verdict)
            if not as_json:
                _show_mutant(verdict) if mutate else _show_verdict(verdict)
    if as_json:
        print_json([{**vars(v), **({"outcome": v.outcome} if mutate else {"passed": v.passed})} for v in verdicts])
    else:
        spent = f"{time.perf_counter() - began:.1f} s, seed {seed}"
        typer.echo(f"{_mutants(verdicts) if mutate else _rules(verdicts)}; {spent}")
        left = next((v for v in verdicts if mutate and v.outcome == "open"), None)
        if left is not None:
            noted = left.change.partition(" becomes ")[0]
            typer.echo("open: no program tells the mutant from the rule. Leave out a condition that is not needed;")
            typer.echo(f'what has a reason the rule can note, which is checked: @rule(…, notes={{"{noted}": "…"}})')
    if mutate:
        failed = any(v.outcome == "open" or not v.kind for v in verdicts)
    else:
        failed = any(not v.passed or (strict and v.unexercised) for v in verdicts)
    if failed:
        raise typer.Exit(1)


@rules_app.command()
def audit(
    program: ProgramText,
    chosen: Annotated[
        list[str] | None,
        typer.Argument(metavar="RULE|FILE.py", help="What to saturate it with; the rules of `optimize` if none."),
    ] = None,
    size: Annotated[
        list[str] | None, typer.Option("--size", metavar="NAME=NUMBER", help="A size; small ones are enough.")
    ] = None,
    iterations: Annotated[int, typer.Option(min=1, help="How often to apply the rules.")] = 3,
    nodes: Annotated[int, typer.Option(min=1, help="How large the e-graph may become.")] = 20_000,
    members: Annotated[
        int | None, typer.Option(min=2, help="How many members of each class to compare; one for each node if none.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the values and samples.")] = 0,
    limit: Annotated[float, typer.Option(min=1.0, metavar="SECONDS", help="When to give up.")] = 300.0,
    as_json: Json = False,
) -> None:
    """Compare the members of every class of a program's e-graph: finds rules that are wrong only together.

    Each node of a class begins one of its members, so all that a rule put there is compared with what was there before.
    The exit code is 1 if two members of a class have different values.
    """
    from lift_egraph.cli.show import print_json
    from lift_egraph.egraph.saturate import Limits
    from lift_egraph.language.check import specialise
    from lift_egraph.process.child import call
    from lift_egraph.rules import algorithmic, lowering, simplification
    from lift_egraph.soundness.audit import audit_program
    from lift_egraph.soundness.many_rules import MEMORY

    source = read_program(program)
    given = read_sizes(size or [])
    sizes = {**{name: min(value, SMALL) for name, value in source.sizes}, **given}
    smaller = {name: value for name, value in source.sizes if name not in given and sizes[name] < value}
    if smaller:
        changed = "; ".join(f"{name} = {sizes[name]}, not {value}" for name, value in smaller.items())
        typer.echo(f"sizes made smaller: {changed} (--size says otherwise)", err=True)
    files, ours = _chosen(chosen, algorithmic + lowering)
    found, tuples, reason = call(
        audit_program, specialise(source, sizes), ours, files, simplification,
        Limits(iterations, nodes, limit), members, seed, time_limit=limit, memory_limit=MEMORY,
    )  # fmt: skip
    if as_json:
        differ = [{"first": d.first, "second": d.second, "text": str(d)} for d in found.disagreements]
        print_json({
            "sizes": sizes, "made_smaller": smaller, "classes": found.classes, "nodes": found.nodes,
            "members": found.members, "disagreements": differ, "tuples": tuples, "stop_reason": reason, "seed": seed,
        })  # fmt: skip
    else:
        for wrong in found.disagreements:
            typer.echo(f"WRONG {wrong}")
        differing = f"{len(found.disagreements)} classes whose members differ"
        typer.echo(
            f"{found.classes} classes, {found.members} members of {found.nodes} nodes, {differing}; {tuples} tuples "
            f"({reason}), seed {seed}"
        )
    if found.disagreements:
        raise typer.Exit(1)


@rules_app.command()
def matches(
    chosen: Annotated[str, typer.Argument(metavar="RULE|FILE.py", help="A rule by name, or a file with rules.")],
    program: ProgramText,
    size: SizeTexts = None,
    tile: Annotated[
        list[int] | None, typer.Option(min=1, metavar="NUMBER", help="A size of chunks that arrays may be split by.")
    ] = None,
    width: Annotated[
        list[int] | None, typer.Option(min=1, metavar="NUMBER", help="A width of vectors that rules may introduce.")
    ] = None,
    stage: Annotated[
        list[str] | None,
        typer.Option(metavar="local|private", help="Mark the data of parallel maps for this address space."),
    ] = None,
    near: Annotated[int, typer.Option(min=0, help="How many near misses to show.")] = 10,
    as_json: Json = False,
) -> None:
    """Show where a rule matches in a program and what it makes there, and where it almost matches and why it fails.

    A place is the patterns on the way to it: map.f/reduce.xs is the array of the reduce in a map. Near misses where
    all of the rule's left-hand side fits but a condition fails come first, then those where one part of it does not.
    """
    from lift_egraph.cli.show import print_json
    from lift_egraph.derivation.explore import survey
    from lift_egraph.language.check import specialise
    from lift_egraph.process.child import call
    from lift_egraph.rules import all_rules
    from lift_egraph.soundness.many_rules import BATCH_SECONDS, MEMORY

    files, ours = _chosen([chosen], ())
    source = specialise(read_program(program), read_sizes(size or []))
    found = call(
        survey, source, ours, files, all_rules, tuple(tile or ()), tuple(width or ()), tuple(stage or ()),
        time_limit=BATCH_SECONDS, memory_limit=MEMORY,
    )  # fmt: skip
    if as_json:
        print_json(found)
        return
    for fact in found:
        typer.echo(f"{fact['rule']}: {fact['law']}")
        typer.echo(f"matches at {len(fact['matches'])} {'place' if len(fact['matches']) == 1 else 'places'}")
        for match in fact["matches"]:
            typer.echo(f"  {match['place']}: {match['before']}\n    becomes {match['after']}")
        misses = fact["near_misses"]
        typer.echo(f"almost matches at {len(misses)} {'place' if len(misses) == 1 else 'places'}")
        for miss in misses[:near]:
            typer.echo("\n    ".join((f"  {miss['place']}: {miss['part']}", *miss["reasons"])))
        if len(misses) > near:
            typer.echo(f"  and {len(misses) - near} more; --near {len(misses)} shows them")


def _chosen(chosen: list[str] | None, default: tuple[Rule, ...]) -> tuple[tuple[Path, ...], tuple[Rule, ...]]:
    """The files and the rules of ours that a user names."""
    files = tuple(Path(text) for text in chosen or () if text.endswith(".py"))
    for path in files:
        if not path.is_file():
            raise InputProblem(f"cannot read {path}: there is no such file")
    return files, _named(tuple(text for text in chosen or () if not text.endswith(".py"))) if chosen else default


def _show_verdict(v: Verdict) -> None:
    typer.echo(
        f"{'passed' if v.passed else 'WRONG':7}{v.name}: {v.words}{'; proved' if v.proved else ''}; {v.seconds:.1f} s"
    )
    if v.passed and v.unproved:
        typer.echo(f"    {'not proved' if v.proved is False else 'no proof tried'}: {v.unproved}")
    for condition in v.unexercised if v.passed else ():
        typer.echo(f"    no program broke {condition}")
    if v.counterexample is not None:
        typer.echo(_indented(f"{v.place}: {v.counterexample}"))
    if v.problem is not None:
        typer.echo(_indented(f"{v.place}: {v.name}: {v.problem}"))


def _show_mutant(v: Verdict) -> None:
    if not v.kind:
        _show_verdict(v)
        return
    word, _, why = v.outcome.partition(": ")
    typer.echo(f"{word:10}{v.name}: {v.kind}: {v.change}{f' ({why})' if why else ''}")


def _checked(rule: Rule) -> str:
    """Whether a rule of ours is proved for all sizes, or tested on programs."""
    from lift_egraph.soundness.proofs.table import known_proof

    proof = known_proof(rule)
    return "proved" if proof is not None and proof.proved else "tested"


def _rules(verdicts: list[Verdict]) -> str:
    of = "1 rule" if len(verdicts) == 1 else f"{len(verdicts)} rules"
    proved = sum(v.proved is True for v in verdicts)
    return f"{of}, {sum(not v.passed for v in verdicts)} wrong, {proved} proved"


def _mutants(verdicts: list[Verdict]) -> str:
    words = [v.outcome.partition(":")[0] for v in verdicts if v.kind]
    counted = ", ".join(f"{words.count(word)} {word}" for word in ("caught", "redundant", "open"))
    return f"{len(words)} mutants: {counted}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


@contextmanager
def _progress() -> Iterator[Callable[[Verdict], None]]:
    """A function that shows on stderr, if that is a terminal, which rules are being checked."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn

    console = Console(stderr=True, highlight=False, markup=False)
    if not console.is_terminal:
        yield lambda verdict: None
        return
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), console=console, transient=True) as bar:
        task = bar.add_task("starting")

        def tell(v: Verdict) -> None:
            bar.update(task, description=f"{v.name}: {v.fired} of {v.examples}")

        yield tell


def _named(names: tuple[str, ...]) -> tuple[Rule, ...]:
    """The rules of these names.

    Raises
    ------
    InputProblem
        If there is none of a name.
    """
    from lift_egraph.rules import all_rules

    known: dict[str, Any] = {rule.name: rule for rule in all_rules}
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]}?" if close else "`lift-egraph rules list` shows all"
            raise InputProblem(f"there is no rule {name!r}; {hint} (a file's name ends in .py)")
    return tuple(known[name] for name in names)
