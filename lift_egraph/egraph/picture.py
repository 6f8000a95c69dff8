"""Pictures of small e-graphs: classes as dashed boxes around their nodes.

Types, binding patterns and sizes that only restate a type are left out: a node shows its operator, its
primitive arguments and, for a lambda, the names that it binds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lift_egraph.egraph.frozen import ClassId, ENode, FrozenEGraph, term_classes
from lift_egraph.egraph.pattern_nodes import PATTERN_NODES, name_in_language, pattern_node
from lift_egraph.errors import SearchProblem

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIMIT = 60  # classes that a picture may have
SWEEPS = 12  # over the layers, to order the classes within them

_CHARACTER, _LINE = 0.085, 0.22  # inches of a character, and of a line of text
_MARGIN, _GAP, _LAYER_GAP = 0.08, 0.18, 0.42

_NAMES = {"Fn_vec": "vectorize", "Op_lift": "lift", "Op_fn": "operator"}
_TYPE_SIZES = ("Fn_map",)  # their primitive arguments say what the type says already


def to_networkx(graph: FrozenEGraph, root: ClassId) -> networkx.DiGraph:
    """The part of an e-graph that is reachable from a class, as a directed graph.

    Parameters
    ----------
    graph
        The e-graph.
    root
        A class of terms, such as `Saturation.root`.

    Returns
    -------
    networkx.DiGraph
        A class is the node ``class_id``; its e-nodes are the nodes ``(class_id, 0)``, ``(class_id, 1)`` …
        Both have the attributes ``kind`` (``class`` or ``node``) and ``label``; a class also has its ``sort``
        and whether it is the ``root``, an e-node the `ENode` as ``node``. Edges lead from a class to its
        e-nodes, and from an e-node to the classes of its arguments, whose positions are in ``positions``.
    """
    import networkx as nx

    found = reachable(graph, root)
    names = _variable_names(graph, found)
    made = nx.DiGraph()
    for c in found:
        made.add_node(c, kind="class", label=str(c), sort=graph.sorts[c], root=c == root)
    for c in found:
        for index, n in enumerate(graph.nodes[c]):
            made.add_node((c, index), kind="node", label=_label(graph, n, names), node=n)
            made.add_edge(c, (c, index))
            for position, part in enumerate(term_classes(graph, n)):
                if made.has_edge((c, index), part):
                    made.edges[(c, index), part]["positions"] += (position,)
                else:
                    made.add_edge((c, index), part, positions=(position,))
    return made


def draw(
    graph: FrozenEGraph,
    root: ClassId,
    *,
    highlight: Collection[tuple[ClassId, ENode]] = (),
    axes: Axes | None = None,
    limit: int = LIMIT,
) -> Figure:
    """A picture of the part of a small e-graph that is reachable from a class.

    Every class is a dashed box around its e-nodes, with its number; an arrow leads from an e-node to the
    class of each argument, from left to right. The box of the root is drawn thicker.

    Parameters
    ----------
    highlight
        Nodes to fill with a colour, each with its class: those that a rule added, say.
    axes
        Where to draw; a new figure of fitting size if it is left out.
    limit
        How many classes to draw at most.

    Returns
    -------
    matplotlib.figure.Figure
        In a notebook with ``%matplotlib inline`` it shows itself.

    Raises
    ------
    SearchProblem
        If there are more classes.
    """
    count = len(reachable(graph, root))
    if count > limit:
        raise SearchProblem(
            f"the e-graph has {count} classes, too many to read in a picture of at most {limit}: use a smaller "
            "program or fewer iterations"
        )
    net = to_networkx(graph, root)
    boxes, width, height = _place(net, root)
    if axes is None:
        from matplotlib.figure import Figure

        axes = Figure(figsize=(max(width, 2), height), layout="constrained").add_subplot()
    axes.set_xlim(0, width)
    axes.set_ylim(-height, 0)
    axes.set_axis_off()
    _paint(axes, net, boxes, set(highlight))
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def reachable(graph: FrozenEGraph, root: ClassId) -> list[ClassId]:
    """The classes of terms, functions and operators below a class, itself first."""
    found = {root: None}
    waiting = [root]
    for c in waiting:
        for part in (p for n in graph.nodes[c] for p in term_classes(graph, n)):
            if part not in found:
                found[part] = None
                waiting.append(part)
    return list(found)


# --- labels -------------------------------------------------------------------------------------------


def _variable_names(graph: FrozenEGraph, found: list[ClassId]) -> dict[ClassId, str]:
    """A name for each class of binders, with its number only where two have the same name."""
    used: dict[str, list[ClassId]] = {}
    inside = [k for c in found for n in graph.nodes[c] for k in n.classes]
    for k in dict.fromkeys(inside):
        for v in _binders(graph, k):
            owners = used.setdefault(graph.variable(v).name.removesuffix(f"_{v}"), [])
            if v not in owners:
                owners.append(v)
    return {v: name if len(owners) == 1 else f"{name}_{v}" for name, owners in used.items() for v in owners}


def _binders(graph: FrozenEGraph, class_id: ClassId) -> Iterator[ClassId]:
    """The classes of the binders in a pattern or a variable."""
    sort = graph.sorts[class_id]
    if sort == "V":
        yield class_id
    elif sort == "P":
        for k in graph.nodes[class_id][0].classes:
            yield from _binders(graph, k)


def _label(graph: FrozenEGraph, n: ENode, names: dict[ClassId, str]) -> str:
    primitive = [] if n.op in _TYPE_SIZES else [str(c) for c in n.children[: len(n.children) - len(n.classes)]]
    if n.op == "Ex___init__":
        return names[n.classes[0]]
    if n.op in ("Ex_input", "Ex_literal", "Op_scalar", "call1", "call2", "call3"):
        return primitive[0]
    if n.op == "Fn_lam":
        return "λ " + ", ".join(names[v] for v in _binders(graph, n.classes[0]))
    if n.op == "component":
        return "snd" if primitive[0] == "1" else "fst"
    if n.op in ("map_level", "to_memory"):
        return name_in_language(PATTERN_NODES[n.op], n.children)
    if n.op in ("gather", "scatter"):
        primitive = [str(graph.order(n.classes[0]))]
    pattern = pattern_node(n.op)
    return " ".join([_NAMES.get(n.op, n.op) if pattern is None else pattern.signature.name, *primitive])


# --- layout, in inches from the upper left corner --------------------------------------------------------


@dataclass
class _Box:
    """A class: its layer, its place, and the e-nodes in it, each with its left edge and width."""

    layer: int
    width: float
    nodes: list[tuple[float, float]]
    x: float = 0.0
    y: float = 0.0

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


_HEIGHT = _LINE + 2 * _MARGIN


def _place(net: networkx.DiGraph, root: ClassId) -> tuple[dict[ClassId, _Box], float, float]:
    """The box of each class, and the extent of the picture."""
    below = {c: _children(net, c) for c in net if net.nodes[c]["kind"] == "class"}
    layers = _layers(below, root)
    boxes: dict[ClassId, _Box] = {}
    for c in below:
        nodes, x = [], _MARGIN
        for n in net.successors(c):
            wide = _CHARACTER * (len(net.nodes[n]["label"]) + 1)
            nodes.append((x, wide))
            x += wide + _MARGIN
        boxes[c] = _Box(layers[c], x, nodes)
    rows = _ordered(below, layers)
    extent = max(sum(boxes[c].width + _GAP for c in row) for row in rows)
    step = _HEIGHT + _LAYER_GAP
    for level, row in enumerate(rows):
        spare = extent - sum(boxes[c].width + _GAP for c in row)
        gap = _GAP + spare / len(row)
        x = gap / 2
        for c in row:
            boxes[c].x, boxes[c].y = x, -(level * step + _LINE)
            x += boxes[c].width + gap
    return boxes, extent + _GAP, len(rows) * step + _MARGIN


def _children(net: networkx.DiGraph, c: ClassId) -> list[ClassId]:
    """The classes of the arguments of all nodes in a class, from left to right."""
    found: dict[ClassId, None] = {}
    for n in net.successors(c):
        parts = sorted(net.successors(n), key=lambda part, n=n: net.edges[n, part]["positions"])
        found.update(dict.fromkeys(parts))
    return list(found)


def _layers(below: dict[ClassId, list[ClassId]], root: ClassId) -> dict[ClassId, int]:
    """The longest way from the root to each class; edges that close a cycle are left out."""
    order: list[ClassId] = []
    forward: dict[ClassId, list[ClassId]] = {}
    active: set[ClassId] = set()

    def visit(c: ClassId) -> None:
        forward[c] = []
        active.add(c)
        for part in below[c]:
            if part in active:
                continue
            forward[c].append(part)
            if part not in forward:
                visit(part)
        active.remove(c)
        order.append(c)

    visit(root)
    layers = dict.fromkeys(below, 0)
    for c in reversed(order):
        for part in forward[c]:
            layers[part] = max(layers[part], layers[c] + 1)
    return layers


def _ordered(below: dict[ClassId, list[ClassId]], layers: dict[ClassId, int]) -> list[list[ClassId]]:
    """The classes of each layer from left to right, near the middle of their neighbours."""
    rows: list[list[ClassId]] = [[] for _ in range(max(layers.values()) + 1)]
    for c in below:
        rows[layers[c]].append(c)
    neighbours: dict[ClassId, list[ClassId]] = {c: list(parts) for c, parts in below.items()}
    for c, parts in below.items():
        for part in parts:
            neighbours[part].append(c)
    for sweep in range(SWEEPS):
        upper = range(len(rows)) if sweep % 2 == 0 else range(len(rows) - 1, -1, -1)
        for level in upper:
            place = {c: (i + 0.5) / len(row) for row in rows for i, c in enumerate(row)}
            wanted = {
                c: sum(place[k] for k in neighbours[c]) / len(neighbours[c]) if neighbours[c] else place[c]
                for c in rows[level]
            }
            rows[level].sort(key=wanted.__getitem__)
    return rows


# --- painting ------------------------------------------------------------------------------------------


def _paint(
    axes: Axes, net: networkx.DiGraph, boxes: dict[ClassId, _Box], highlight: set[tuple[ClassId, ENode]]
) -> None:
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

    def box(x: float, y: float, width: float, height: float, **style: Any) -> None:
        axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.05", **style))

    for c, b in boxes.items():
        is_root = net.nodes[c]["root"]
        style = {"facecolor": "#f4f6fa", "edgecolor": "#55607a", "linestyle": (0, (4, 2)), "zorder": 1}
        box(b.x, b.y - _HEIGHT, b.width, _HEIGHT, linewidth=1.8 if is_root else 0.8, **style)
        axes.text(b.x + 0.02, b.y + 0.01, str(c), fontsize=5.5, color="#55607a", va="bottom", zorder=4)
        for (left, wide), n in zip(b.nodes, net.successors(c), strict=True):
            x, y = b.x + left, b.y - _HEIGHT + _MARGIN
            marked = (c, net.nodes[n]["node"]) in highlight
            fill = "#ffd98a" if marked else "white"
            box(x, y, wide, _LINE, facecolor=fill, edgecolor="black", linewidth=0.6, zorder=3)
            text = {"family": "monospace", "fontsize": 8, "ha": "center", "va": "center", "zorder": 4}
            axes.text(x + wide / 2, y + _LINE / 2, net.nodes[n]["label"], **text)
            for part in net.successors(n):
                bend = 0.0 if boxes[part].layer > b.layer else 0.25
                arrow = FancyArrowPatch(
                    (x + wide / 2, y),
                    (boxes[part].middle, boxes[part].y),
                    connectionstyle=f"arc3,rad={bend}",
                    arrowstyle="-|>",
                    mutation_scale=6,
                    linewidth=0.6,
                    color="#8a8fa0",
                    shrinkA=0,
                    shrinkB=0,
                    zorder=2,
                )
                axes.add_patch(arrow)
