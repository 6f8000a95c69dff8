"""What a program names of OpenCL C's functions, declared in its text: PoCL need not read all that there are.

Its compiler begins with a header of a megabyte, and that is nine tenths of the build of a small kernel, 0.13 s. The
header is empty where its guard is defined. What a program names of it, with all overloads and under the header's own
conditions, then stands before the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

_GUARD = "_OPENCL_H_"
WITHOUT_HEADER = f"-D{_GUARD}"
_PACKAGE, _PLACE = "pocl-binary-distribution", "pocl_binary_distribution/.libs/share/pocl/include/opencl-c.h"

_Item = tuple[tuple[str, ...], str, str | None]  # conditions, a text, and the name of a function that it declares


def declared(source: str, platform: str) -> str | None:
    """A program behind the declarations of what it names, for a build `WITHOUT_HEADER`; its lines keep their numbers.

    It may need others, by macros of PoCL: then it does not build.

    Parameters
    ----------
    platform
        The version of the platform. Only of the PoCL that pip brings the header is known.
    """
    header = _header(platform)
    if header is None:
        return None
    names = {None, *re.findall(r"[A-Za-z_]\w*", source)}
    lines: list[str] = []
    within: tuple[str, ...] = ()
    for conditions, text, name in header:
        if name not in names:
            continue
        if conditions != within:
            lines += [*["#endif"] * len(within), *conditions]
            within = conditions
        lines.append(text)
    return "\n".join((*lines, *["#endif"] * len(within), "#line 1", source))


@cache
def _header(platform: str) -> tuple[_Item, ...] | None:
    try:
        package = metadata.distribution(_PACKAGE)
        if not re.search(rf"\bPoCL {re.escape(package.version)}\b", platform):
            return None
        text = Path(str(package.locate_file(_PLACE))).read_text(encoding="utf-8")
    except (metadata.PackageNotFoundError, OSError):
        return None
    return tuple(items(text)) if f"#ifndef {_GUARD}\n" in text else None


def items(header: str) -> Iterator[_Item]:
    r"""The directives and declarations of a header without `#else`, each with the conditions that it stands under.

    Examples
    --------
    >>> header = "#define ovld\n#ifdef cl_khr_fp64\ndouble ovld sin(double); // of\nint /* x; */ f(int);\n#endif\n"
    >>> for item in items(header):
    ...     print(item)
    ((), '#define ovld', None)
    (('#ifdef cl_khr_fp64',), 'double ovld sin(double);', 'sin')
    (('#ifdef cl_khr_fp64',), 'int  f(int);', 'f')
    """
    text = _COMMENT.sub("", header.replace("\\\n", " "))
    within: tuple[str, ...] = ()
    for piece in _PIECE.findall(text):
        piece = piece.strip()
        if piece[0] != "#":
            yield within, piece, piece.partition("(")[0].split()[-1]
        elif piece.startswith("#endif"):
            within = within[:-1]  # the last is the guard's
        elif piece.startswith("#if"):
            within = within if piece == f"#ifndef {_GUARD}" else (*within, piece)
        elif not piece.startswith(("#include", f"#define {_GUARD}")):
            yield within, piece, None


_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_PIECE = re.compile(r"^#[^\n]*|\w[^;#]*;", re.MULTILINE)
