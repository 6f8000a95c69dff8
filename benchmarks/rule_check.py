"""The check of every rule, as `lift-egraph rules check` does it: how long it takes, and how often each rule fires."""

from __future__ import annotations

import resource
import time

import harness

from lift_egraph.rules import all_rules, simplification
from lift_egraph.soundness.many_rules import FIRE_RATE, JOBS, Verdict, check_rules


def main() -> None:
    parser = harness.options("rule_check", __doc__ or "", has_device=False)
    parser.add_argument("--examples", type=int, default=200, help="programs for each rule (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=JOBS, help="rules checked at the same time (default: %(default)s)")
    arguments = parser.parse_args()
    began, used = time.perf_counter(), cpu_seconds()
    found: dict[str, Verdict] = {}
    with harness.PeakMemory() as memory:
        checks = check_rules(
            (all_rules,), simplification=simplification, examples=arguments.examples, jobs=arguments.jobs
        )
        for verdict in checks:
            print(f"{verdict.name}: {_outcome(verdict)}, {verdict.seconds:.1f} s", flush=True)
            found[verdict.name] = verdict
        seconds = time.perf_counter() - began
        while len(harness.family()) > 1:  # what a child used is known when it has ended
            time.sleep(0.05)
    used = cpu_seconds() - used
    verdicts = [(rule, found[rule.name]) for rule in all_rules]
    examples, fired = sum(v.examples for _, v in verdicts), sum(v.fired for _, v in verdicts)
    wrong = sum(not v.passed for _, v in verdicts)
    rows: list[harness.Row] = [
        (rule.name, rule.family, rule.phase, _share(v), v.seconds, _outcome(v)) for rule, v in verdicts
    ]
    done, asked = (sum(len(of) for _, v in verdicts for of in some(v)) for some in (_exercised, _conditions))
    whole = f"{wrong} wrong, {examples} examples, {done} of {asked} conditions exercised"
    rows.append((f"all {len(rows)} rules", "", "", f"{fired / examples:.0%}", seconds, whole))
    harness.report(
        arguments.out,
        f"The check of every rule at {arguments.examples} examples",
        ("rule", "family", "phase", "fired", "seconds", "found"),
        rows,
        notes=(
            f"{seconds:.0f} s by the clock with {arguments.jobs} rules at a time, {used:.0f} s of processor time: "
            f"{used / arguments.jobs:.0f} s on {arguments.jobs} processors that do nothing else",
            f"peak memory {memory.peak / 1e6:.0f} MB, of all processes together",
            f"beside the examples, one program for every four breaks one condition and must come to no harm; "
            f"a rule that fires in under {FIRE_RATE:.0%} of its examples fails",
            "polynomials over i32: programs that were also run with i32 for f32 on random 32-bit numbers, bit for bit; "
            "the chance is the largest that a wrong rewrite of one escapes, unless wrong by multiples of 256 alone",
            f"{sum(v.proved is True for _, v in verdicts)} of the rules are proved for all sizes as well",
            "seconds are those by the clock",
        ),
    )


def cpu_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in usages)


def _share(verdict: Verdict) -> str:
    return f"{verdict.fired / verdict.examples:.0%}" if verdict.examples else ""


def _exercised(verdict: Verdict) -> tuple[tuple[str, ...], ...]:
    return (verdict.exercised,)


def _conditions(verdict: Verdict) -> tuple[tuple[str, ...], ...]:
    return verdict.exercised, verdict.unexercised


def _outcome(verdict: Verdict) -> str:
    """The words of the check."""
    return verdict.problem or verdict.words


if __name__ == "__main__":
    main()
