"""The power of the test suite: faults planted in the source, one at a time, and the test that reports each.

Each fault is a text that stands once in the library, in whatever file, and what it becomes in a copy of the checkout.
``pytest -x`` runs there until the first failure, beginning with the tests of the package of the file; a fault that no
test reports is a hole in the suite. Arguments that are none of ours go to pytest: ``-k rules``, ``-n 0``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
LIBRARY = ("lift_egraph", "rules", "extract", "codegen")
LEFT_OUT = shutil.ignore_patterns(".git", "__pycache__", ".hypothesis", ".pytest_cache", "*.egg-info", "build")


@dataclass(frozen=True)
class Fault:
    """A mistake of some kind: `right` stands once in the library, and becomes `wrong`."""

    kind: str
    right: str
    wrong: str


FAULTS = (
    Fault("a barrier dropped: a write after reads", "or (b_reads and a_writes)):", "):"),
    Fault(
        "a rule with a wrong law: tiles too short",
        "length = size + (k - 1) * step\n",
        "length = size + (k - 2) * step\n",
    ),
    Fault(
        "a rule without its capture condition",
        ".to(map_(Fn.lam(p, app(f, b)), xs), absent_in_function(p, f))\n",
        ".to(map_(Fn.lam(p, app(f, b)), xs))\n",
    ),
    Fault("a view off by one", "index = maximum(index, -1 - index)", "index = maximum(index, -index)"),
    Fault(
        "a wrong type in the e-graph",
        "yield has(sorts.component(i64(1), x), u,",
        "yield has(sorts.component(i64(1), x), t,",
    ),
    Fault("a wrong type in a signature", "[a]n, second: [b]n -> [(a, b)]n", "[a]n, second: [b]n -> [(b, a)]n"),
    Fault("a wrong free name in the e-graph", ".then(set_(fvf(f)).to(a - b))", ".then(set_(fvf(f)).to(a))"),
    Fault("a wrong meaning in the interpreter", "sources[indices] = np.arange(size)", "sources[:] = indices"),
    Fault(
        "an illegal nesting of parallel maps allowed",
        'allowed = {f"{kind}{d}" for d in range(dimension)}',
        'allowed = {f"{kind}{d}" for d in range(dimension + 1)}',
    ),
    Fault("a size not checked", "least.get(kind, max(1, amount.constant or 0))", "least.get(kind, 1)"),
    Fault(
        "parentheses left out in C",
        "zip(arguments, (level - 1, level), strict=True)",
        "zip(arguments, (level - 1, level - 1), strict=True)",
    ),
    Fault(
        "parentheses left out in the text form",
        "right = _term(term.arguments[1], names, op.level + 1)",
        "right = _term(term.arguments[1], names, op.level)",
    ),
    Fault("a time limit kept too late", "now - started > time_limit:", "now - started > 4 * time_limit:"),
    Fault(
        "an index simplified wrongly",
        "rest.constant == 0 or _is_rest(rest, divisor):\n        return quotient",
        "rest.constant is not None or _is_rest(rest, divisor):\n        return quotient",
    ),
    Fault("a comparison that takes too much", "return error, ~(error <= bound)", "return error, error > 2 * bound + 1"),
    Fault("too few work-items", "return (length + (group - 1)) // group * group", "return length // group * group"),
    Fault(
        "a reduction of extraction that forgets circles",
        "forced >> part & 1 and components[part] != components[owner]",
        "forced >> part & 1",
    ),
    Fault("a class counted twice in a lower bound", "price(r.beyond & ~taken)", "price(r.beyond)"),
)


def file_of(fault: Fault, root: Path = ROOT) -> Path:
    """The one file in which a fault can be planted.

    Raises
    ------
    ValueError
        If there is none, or the text stands in several places.
    """
    files = [f for name in LIBRARY for f in sorted((root / name).rglob("*.py"))]
    counts = {file: file.read_text(encoding="utf-8").count(fault.right) for file in files}
    if sum(counts.values()) != 1:
        raise ValueError(f"{fault.right!r} stands {sum(counts.values())} times in the library, not once")
    return max(files, key=lambda file: counts[file])


def first_report(fault: Fault, root: Path, arguments: list[str]) -> str | None:
    """The test that first fails with a fault planted; None where all pass."""
    with TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(root, Path(folder, "checkout"), symlinks=True, ignore=LEFT_OUT))
        file = file_of(fault, copy)
        file.write_text(file.read_text(encoding="utf-8").replace(fault.right, fault.wrong), encoding="utf-8")
        near = f"tests/{file.relative_to(copy).parts[0]}"
        for places in ([near], ["--ignore", near]):
            doubtful: list[str] = []
            while found := first_failure(copy, [*arguments, *places, *doubtful]):
                if first_failure(copy, [*arguments, found]):
                    return found
                doubtful += ["--deselect", found]  # it failed once: a busy machine disturbs what reads the clock
    return None


def first_failure(checkout: Path, arguments: list[str]) -> str | None:
    """The first test of a checkout that fails."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "HYPOTHESIS_PROFILE": "ci"}
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *arguments]
    ran = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", ran.stdout, re.MULTILINE)
    if ran.returncode not in (0, 1, 2) or bool(ran.returncode) != bool(found):
        raise RuntimeError(f"pytest ended with {ran.returncode}:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return found[1] if found else None


def main() -> None:
    """Plant every fault, and write which test reports it."""
    from harness import options, report

    parser = options("planted_faults", (__doc__ or "").partition("\n")[0], has_device=False)
    parser.add_argument("--checkout", type=Path, default=ROOT, help="whose library and tests (default: these)")
    own, arguments = parser.parse_known_args()
    rows: list[tuple[str, str, float, str | None]] = []
    for fault in FAULTS:
        began = time.perf_counter()
        found = first_report(fault, own.checkout, arguments)
        file = file_of(fault, own.checkout).relative_to(own.checkout)
        rows.append((fault.kind, str(file), time.perf_counter() - began, found))
        print(*rows[-1], sep=" | ", flush=True)
    report(own.out, "Planted faults", ("fault", "file", "seconds", "reported by"), rows)
    if missed := [kind for kind, *_, found in rows if not found]:
        sys.exit(f"not reported: {', '.join(missed)}")


if __name__ == "__main__":
    main()
