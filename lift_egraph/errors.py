"""Everything that can go wrong for a user, as a small tree of exceptions.

Each message says what was wrong, where, and what would be right. The command line prints
the message alone; a traceback there is a defect.
"""

from __future__ import annotations


class LiftError(Exception):
    """Base of all errors that a user of lift-egraph can cause or meet.

    `subterm` is the part of the program that it is about, where one is known; the message contains it.
    """

    subterm: str = ""


class SyntaxProblem(LiftError):
    """Text that is not a LIFT program; the message carries line, column and a caret."""


class TypeProblem(LiftError):
    """A term whose parts do not fit: types, sizes, tuple shapes."""


class SizeProblem(LiftError):
    """A size that is missing, negative, zero where it may not be, indivisible or too large."""


class NestingProblem(LiftError):
    """A low-level term that breaks OpenCL's thread hierarchy or its memory rules."""


class InputProblem(LiftError):
    """An input array that is missing, or has the wrong shape or element type."""


class OutputProblem(LiftError):
    """A place that cannot be written to."""


class DeviceProblem(LiftError):
    """No OpenCL platform, an unknown device, or a device limit that is exceeded."""


class BuildProblem(LiftError):
    """A kernel that the device's compiler refused; the message carries its log."""


class RunProblem(LiftError):
    """A kernel, or another child process, that crashed or ran past its limits."""


class TimeProblem(LiftError):
    """An interpretation that ran past its time; whoever limited it goes on without it."""


class SearchProblem(LiftError):
    """A program for which no legal low-level term was found."""


class BudgetProblem(LiftError):
    """A knob of the search that is of the wrong kind or out of range."""


class ModelProblem(LiftError):
    """A cost or performance model that fails, cannot be sent to another process, or gives no number."""


class RuleProblem(LiftError):
    """A rewrite rule that cannot be used; the message names the rule and where it stands.

    Attributes
    ----------
    rule
        The name of the rule, or of the file where it is no single rule's fault.
    place
        File and line.
    text
        What is wrong.
    """

    def __init__(self, rule: str, place: str, text: str) -> None:
        super().__init__(rule, place, text)
        self.rule, self.place, self.text = rule, place, text

    def __str__(self) -> str:
        return f"{self.place}: {self.rule}: {self.text}"


class SketchProblem(LiftError):
    """A sketch that no term of the e-graph satisfies; the message says which part of it."""


class ExplorationProblem(LiftError):
    """A rule, a place or a step that there is not, in interactive exploration."""
