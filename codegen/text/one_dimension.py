"""The lines of a kernel for a launch in one dimension, whose groups have one work-item each."""

from __future__ import annotations

import re
from math import prod

from lift_egraph.codegen.c_ast import Body, For
from lift_egraph.codegen.c_walk import loads, statements
from lift_egraph.codegen.plans.kernel import Launch

MOST = 2**31 - 1  # work-items in one dimension whose numbers are ints
_PLACE = re.compile(r"get_(?:global|group)_id\(([012])\)")
_NUMBER = re.compile(r"get_(?:global_size|num_groups)\(([012])\)")


def can_be_flat(launch: Launch) -> bool:
    """Whether a launch has groups of one work-item in several dimensions, and one dimension may have as many."""
    items = prod(launch.global_size)
    return launch.local_size == (1, 1, 1) and launch.global_size[0] < items <= MOST


def neighbours_share_vectors(body: Body) -> bool:
    """Whether neighbours in the first dimension read the same vectors: else their own order is as good, or better."""
    first = {s.variable for s in statements(body) if isinstance(s, For) and s.is_parallel and s.level.dimension == 0}
    vectors = (load for load in loads(body) if load.width > 1 and load.buffer.space == "global")
    return not any(first & set(load.index.variables) for load in vectors)


def flat_launch(launch: Launch) -> Launch:
    """As many groups in one dimension."""
    return Launch((prod(launch.global_size), 1, 1), launch.local_size)


def flat(text: str, launch: Launch) -> str:
    """A line of a kernel for the launch in one dimension that stands for one in several.

    >>> flat("const int glb_1 = get_global_id(1);", Launch((4, 3, 1), (1, 1, 1)))
    'const int glb_1 = (int)get_global_id(0) / 4;'
    >>> flat("const int wrg_1 = get_group_id(1);", Launch((4, 3, 2), (1, 1, 1)))
    'const int wrg_1 = (int)get_global_id(0) / 4 % 3;'
    >>> flat("x[2 * get_group_id(0)] = get_num_groups(0);", Launch((4, 3, 1), (1, 1, 1)))
    'x[2 * ((int)get_global_id(0) % 4)] = 4;'
    """

    def place(found: re.Match[str]) -> str:
        d = int(found[1])
        if launch.global_size[d] == 1:
            return "0"
        before, behind = prod(launch.global_size[:d]), prod(launch.global_size[d + 1 :])
        divided = f" / {before}" * (before > 1)
        value = f"(int)get_global_id(0){divided}{f' % {launch.global_size[d]}' * (behind > 1)}"
        is_whole = text[: found.start()].endswith(" = ") and text[found.end() :] == ";"
        return value if is_whole else f"({value})"

    return _NUMBER.sub(lambda found: str(launch.global_size[int(found[1])]), _PLACE.sub(place, text))
