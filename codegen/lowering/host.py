"""From a program to several kernels: what must be finished before the next step can read it.

OpenCL does not synchronise work-groups, so the result of a mapGlb or mapWrg is complete only at the
end of a kernel. A term that goes on computing with such a result becomes two kernels with a buffer
in global memory between them.

Source: 000 §4.3.4.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial, reduce

from lift_egraph.codegen.c_ast import Buffer, Const, Name
from lift_egraph.codegen.devices import Device
from lift_egraph.codegen.lowering.launch import launch_sizes, parallel_lengths
from lift_egraph.codegen.lowering.little_work import LoweredKernel, has_little, serial, together
from lift_egraph.codegen.lowering.look_back import check_look_back, published
from lift_egraph.codegen.lowering.lower import Lowering
from lift_egraph.codegen.lowering.memory import PRIVATE_CHOICE, memory
from lift_egraph.codegen.lowering.sharing import idle_levels
from lift_egraph.codegen.lowering.stored_borders import with_stored_borders
from lift_egraph.codegen.lowering.sub_groups import check_sub_groups
from lift_egraph.codegen.lowering.term_views import bindings, view_of, write_step
from lift_egraph.codegen.lowering.views import Component, Memory, OwnershipProblem, Pairs, Shifted, Value, View
from lift_egraph.codegen.names import c_name
from lift_egraph.codegen.optimise import Optimisations
from lift_egraph.codegen.plans.kernel import Launch
from lift_egraph.errors import SizeProblem
from lift_egraph.language import ir
from lift_egraph.language.binders import canonical, unique_names
from lift_egraph.language.check import array_type, iterate_steps, size_of, type_of
from lift_egraph.language.describe import blame
from lift_egraph.language.layout import LAYOUT, is_layout, is_pure, takes_apart
from lift_egraph.language.nat import is_at_least, maximum
from lift_egraph.language.nesting import check_nesting, is_parallel
from lift_egraph.language.sizes import size_variables
from lift_egraph.language.types import I32, Array, DataType, Pair

NOTHING = Value(Const(0, I32))  # an acceptor for which nobody writes


@dataclass
class Host:
    """The state of lowering a program: what is known of each variable, and the kernels so far.

    `computed` are the values with a name that no kernel writes: each that needs some computes their numbers first.
    """

    device: Device
    launch: Launch | None
    optimise: Optimisations
    taken: set[str]
    lowering: type[Lowering] = Lowering
    any_launch: bool = False
    most_private: int = PRIVATE_CHOICE
    streams: bool = False
    environment: dict[ir.Var | ir.Input, View] = field(default_factory=dict)
    kernels: list[LoweredKernel] = field(default_factory=list)
    temporaries: list[Buffer] = field(default_factory=list)
    inputs: list[tuple[str, tuple[int, ...], Buffer]] = field(default_factory=list)
    scalars: list[tuple[str, tuple[int, ...], Name]] = field(default_factory=list)
    borders: dict[ir.Expr, ir.Expr] = field(default_factory=dict)
    computed: list[tuple[ir.Binder, ir.Expr]] = field(default_factory=list)

    def declare(self, item: ir.Input) -> None:
        """Makes an input known: arrays as buffers, scalars by value."""
        self.environment[item] = self._input_view(item.name, item.name, item.type, ())

    def _input_view(self, value: str, name: str, t: DataType, path: tuple[int, ...]) -> View:
        if isinstance(t, Pair):
            first = self._input_view(value, f"{name}_0", t.first, (*path, 0))
            return Pairs(first, self._input_view(value, f"{name}_1", t.second, (*path, 1)))
        if isinstance(t, Array):
            made = memory(name, t, "global", self.taken, mutable=False)
            self.inputs += [(value, (*path, *c.choices), c.buffer) for c in made.cells]
            return made
        made_name = Name(c_name(name, self.taken), t)
        self.scalars.append((value, path, made_name))
        return Value(made_name)

    def temporary(self, t: DataType) -> Memory:
        """Global memory between two kernels."""
        made = memory("tmp", t, "global", self.taken)
        self.temporaries += [c.buffer for c in made.cells]
        return made

    def produce(self, term: ir.Expr, acceptor: View) -> None:
        """Emits the kernels that write a term's value into global memory."""
        if isinstance(term, ir.Apply) and not isinstance(term.function, ir.Vectorize) and is_parallel(term):
            if isinstance(term.function, ir.Lambda) and takes_apart(term.function):
                self.produce(term.argument, acceptor)
            else:
                self.produce(self.bind(term, acceptor), acceptor)
        elif self.has_some(term, acceptor):
            self.rest(term, acceptor)
        elif isinstance(term, ir.ToMemory):
            outer, self.streams = self.streams, term.space == "stream"
            self.produce(term.value, acceptor)
            self.streams = outer
        elif isinstance(term, ir.MapLevel) and term.level.kind != "seq":
            self.emit(ir.MapLevel(term.level, term.function, self.hoist(term.array, True)), acceptor)
        elif isinstance(term, ir.AT_ONCE):
            self.reduce_by_index(term, acceptor)
        elif isinstance(term, ir.LookBack):
            self.look_back(term, acceptor)
        elif isinstance(term, ir.Slice) and isinstance(term.array, ir.AT_ONCE):
            self.emit(copied(self.hoist(term, True)), acceptor)  # it is written in no order: where it is, all has room
        elif not is_parallel(term):
            self.emit(_shared_out(term), acceptor)
        elif isinstance(term, ir.Iterate) and is_parallel(term.function):
            self.iterate(term, acceptor)
        elif isinstance(term, ir.Zip | ir.MakePair):
            self.produce(term.first, Component(0, acceptor))
            self.produce(term.second, Component(1, acceptor))
        elif isinstance(term, ir.Concat):
            self.concat(term, acceptor)
        elif (step := write_step(term, acceptor)) is not None:
            self.produce(*step)
        else:
            whole = _only_moves(term)
            made = ir.map_parts(term, lambda p: self.hoist(p, whole) if isinstance(p, ir.Expr) else p)
            self.emit(_shared_out(made), acceptor)

    def concat(self, term: ir.Concat, acceptor: View) -> None:
        """Both parts, in one kernel where the launch of the first has work-items for the second."""
        apart = any(isinstance(part, ir.LookBack) for part in ir.subterms(term))  # its groups are a kernel of their own
        whole = term if apart else ir.Concat(self.ready(term.first), self.ready(term.second))
        if not apart and _fits_launch(whole.first, whole.second):
            self.emit(whole, acceptor)
            return
        self.produce(whole.first, acceptor)
        self.produce(whole.second, Shifted(size_of(whole.first), acceptor))

    def reduce_by_index(self, term: ir.AtOnce, acceptor: View) -> None:
        """What it starts with, in its place, and then a kernel that changes some of it; its places are read there."""
        t = type_of(term)
        view = acceptor if acceptor.space == "global" else self.temporary(t)
        outer, self.streams = self.streams, False
        array = self.hoist(term.array, True)
        self.produce(term.initial if is_parallel(term.initial) else copied(term.initial), view)
        there = ir.Var(f"{c_name('there', self.taken)}$", t)
        self.environment[there] = view
        self.emit(replace(term, initial=there, array=array), view)
        self.streams = outer
        if view is not acceptor:
            self.emit(copied(there), acceptor)

    def look_back(self, term: ir.LookBack, acceptor: View) -> None:
        """A kernel that says of no group that it has started, and the one with the groups."""
        check_look_back(term, self.device)
        states = published(size_of(term.array), type_of(term.initial))
        outer, self.streams = self.streams, False
        term = replace(term, initial=self.hoist(term.initial, True), array=self.hoist(term.array, True))
        view = self.environment[states] = self.temporary(states.type)
        self.emit(copied(ir.Fill(size_of(states), ir.Literal(0, I32))), view)
        self.streams = outer
        self.emit(term, acceptor)

    def ready(self, term: ir.Expr) -> ir.Expr:
        """A term that one kernel computes, or a few: what they read is finished by kernels before them."""
        if isinstance(term, ir.Apply) and not isinstance(term.function, ir.Vectorize) and is_parallel(term):
            return self.ready(self.bind(term))
        if isinstance(term, ir.ToMemory):
            return self.ready(term.value)
        if isinstance(term, (*ir.AT_ONCE, ir.LookBack)):
            return self.hoist(term, True)
        if isinstance(term, ir.MapLevel) and term.level.kind != "seq":
            return ir.MapLevel(term.level, term.function, self.hoist(term.array, True))
        if not is_parallel(term) or (isinstance(term, ir.Iterate) and is_parallel(term.function)):
            return term
        is_passed_on = isinstance(term, ir.Zip | ir.MakePair | ir.Concat) or write_step(term, NOTHING) is not None
        change = self.ready if is_passed_on else lambda p: self.hoist(p, False)
        return ir.map_parts(term, lambda p: change(p) if isinstance(p, ir.Expr) else p)

    def bind(self, term: ir.Apply, acceptor: View = NOTHING) -> ir.Expr:
        """Makes the variables of a ``let`` known; returns its body.

        What is a part of the body's value itself, for which there is an acceptor, is computed right there.
        """
        function = ir.function_body(term.function)
        place = _place_of(function.binder, function.body, acceptor)
        if place is None or is_pure(term.argument):
            argument = self.hoist(term.argument, True)
            if any(isinstance(t, ir.Call) for t in ir.subterms(argument)):
                self.computed.append((function.binder, argument))
            self.environment.update(bindings(function.binder, view_of(argument, self.environment)))
            return function.body
        outer, self.streams = self.streams, False  # it is read again
        self.produce(term.argument, place)
        self.streams = outer
        self.environment.update(bindings(function.binder, place))
        return function.body

    def has_some(self, term: ir.Expr, acceptor: View) -> bool:
        """Whether the acceptor has the value of the term, or of a component of it, already."""
        if isinstance(term, ir.MakePair | ir.Zip):
            both = (term.first, Component(0, acceptor)), (term.second, Component(1, acceptor))
            return any(self.has_some(*part) for part in both)
        return (v := _named(term)) is not None and self.environment.get(v) == acceptor

    def rest(self, term: ir.Expr, acceptor: View) -> None:
        """What the acceptor has not."""
        if isinstance(term, ir.MakePair | ir.Zip):
            self.produce(term.first, Component(0, acceptor))
            self.produce(term.second, Component(1, acceptor))

    def hoist(self, term: ir.Expr, everything: bool) -> ir.Expr:
        """The term with parallel computations in it (or all, with `everything`) replaced by finished results."""
        if is_pure(term) or not (everything or is_parallel(term)):
            return term
        if isinstance(term, ir.Apply) and not isinstance(term.function, ir.Vectorize):
            return self.hoist(self.bind(term), everything)
        # on a GPU what groups made of one part would be copied by one work-item
        moves = _only_moves(term) and (self.device.has_groups or not _is_computed(term))
        if moves or (not everything and isinstance(term, (ir.Call, *ir.FOLD_LOOPS))):
            return ir.map_parts(term, lambda p: self.hoist(p, everything) if isinstance(p, ir.Expr) else p)
        t = type_of(term)
        view = self.temporary(t)
        outer, self.streams = self.streams, False  # what a stream is made of is none
        self.produce(term, view)
        self.streams = outer
        result = ir.Var(f"{view.cells[0].buffer.name}$", t)
        self.environment[result] = view
        return result

    def iterate(self, term: ir.Iterate, acceptor: View) -> None:
        """The kernels of each step, between two temporaries in turns: those of a step serve again two steps later."""
        array = self.hoist(term.array, True)
        if term.times == 0:
            self.emit(array, acceptor)
            return
        view = first = view_of(array, self.environment)
        try:
            steps = list(iterate_steps(term))
        except SizeProblem as problem:
            raise blame(problem, term) from None
        between = [array_type(step.body, "iterate") for step in steps[:-1]]
        spares = [self.temporary(_longest(types)) for k in (0, 1) if (types := between[k::2])]
        known: dict[tuple[int, ir.Lambda], slice] = {}
        for k, step in enumerate(steps):
            target = acceptor if k == len(steps) - 1 else spares[k % 2].resized(between[k].size)
            if target is not acceptor and view is not first and (again := known.get((k % 2, step))):
                self.kernels += self.kernels[again]
            else:
                done, made = len(self.kernels), unique_names(step, self.taken)
                self.environment.update(bindings(made.binder, view))
                self.produce(made.body, target)
                if view is not first:
                    known[k % 2, step] = slice(done, len(self.kernels))
            view = target

    def emit(self, term: ir.Expr, acceptor: View) -> None:
        """One kernel that writes the term's value."""
        if not (self.any_launch or self.device.has_groups):
            own: dict[ir.Expr, ir.Expr] = {}  # of arrays whose memory may have other values for the next kernel
            apart = self.device.emission.borders_apart and self.optimise.control_flow
            term = with_stored_borders(term, lambda padded: self.stored(padded, own), apart=apart)
        threads = launch_sizes(term, self.device, self.launch, any_launch=self.any_launch)
        threads = replace(threads, counts={**threads.counts, **idle_levels(threads)})
        check_sub_groups(term, self.device, threads.counts)
        lowering = self.lower(term, acceptor, threads.counts)
        self.temporaries += lowering.temporaries
        self.taken |= {b.name for b in lowering.temporaries}
        made = LoweredKernel(tuple(lowering.statements), tuple(lowering.locals), threads)
        if self.joins_launches and not lowering.temporaries and _is_of_items(term) and has_little(made.body, threads):
            made = replace(made, by_one=partial(self.by_one, term, acceptor, dict(self.environment)))
        self.kernels.append(made)

    def stored(self, padded: ir.Expr, own: dict[ir.Expr, ir.Expr]) -> ir.Expr | None:
        """A matrix with its border in memory, whatever reads it; None if it is not the same for all work-items."""
        free = ir.free_variables(padded)
        if not free <= self.environment.keys():
            return None
        known, name = own if free else self.borders, canonical(padded)
        if name not in known:
            known[name] = self.hoist(ir.ToMemory("global", copied(padded, 1)), True)
        return known[name]

    @property
    def joins_launches(self) -> bool:
        """Whether kernels that have little to do become one."""
        is_free = self.launch is None and not self.any_launch
        return is_free and self.optimise.launches and not self.device.has_groups

    def by_one(
        self, term: ir.Expr, acceptor: View, environment: dict[ir.Var | ir.Input, View]
    ) -> LoweredKernel | None:
        """A kernel of one work-item that writes the term's value, unless it needs memory between kernels."""
        term, self.environment = serial(term), environment
        lowering = self.lower(term, acceptor, {})
        made = tuple(lowering.statements), tuple(lowering.locals), launch_sizes(term, self.device, None)
        return None if lowering.temporaries else LoweredKernel(*made)

    def lower(self, term: ir.Expr, acceptor: View, threads: dict[ir.Level, int | None]) -> Lowering:
        """The term lowered; what no work-item can keep to itself goes to local memory."""
        shared: frozenset[ir.Expr] = frozenset()
        while True:
            lowering = self.lowering(
                dict(self.environment),
                threads,
                set(self.taken),
                self.optimise,
                shared=shared,
                most_private=self.most_private,
                streams=self.streams,
                sub_group=self.device.sub_group,
            )
            try:
                for binder, argument in self.needed(term):
                    lowering.bind(binder, lowering.consume(argument))
                lowering.produce(term, acceptor)
            except OwnershipProblem as problem:
                maker = lowering.makers.get(problem.buffer)
                if maker is None:
                    raise
                shared |= {maker}
            else:
                return lowering

    def needed(self, term: ir.Expr) -> list[tuple[ir.Binder, ir.Expr]]:
        """What of `computed` a kernel of the term needs, in order."""
        free, found = set(ir.free_variables(term)), []
        for binder, argument in reversed(self.computed):
            if not free.isdisjoint(ir.bound_variables(binder)):
                found.append((binder, argument))
                free |= ir.free_variables(argument)
        return found[::-1]


def _place_of(binder: ir.Binder, term: ir.Expr, acceptor: View) -> View | None:
    """Where a term, which memory accepts, has the value of a variable as it is: one that others are made of, too."""
    match term:
        case ir.MakePair(first=first, second=second) | ir.Zip(first=first, second=second):
            places = (_place_of(binder, part, Component(at, acceptor)) for at, part in enumerate((first, second)))
            return next((place for place in places if place is not None), None)
        case ir.Apply(function=ir.Lambda(body=body)):
            return _place_of(binder, body, acceptor)
    return acceptor if _named(term) == binder and _is_memory(acceptor) else None


def _named(term: ir.Expr) -> ir.Var | None:
    """The variable whose value a term is, copied or not."""
    match term:
        case ir.Var():
            return term
        case ir.MapLevel(function=ir.Lambda(binder=x, body=body), array=array) if _named(body) == x:
            return _named(array)
    return None


def _is_memory(view: View) -> bool:
    """Whether what was written through a view can be read through it."""
    return _is_memory(view.base) if isinstance(view, Component) else isinstance(view, Memory)


def copied(array: ir.Expr, dimensions: int = 3) -> ir.Expr:
    """An array with a work-item for each of its elements, in so many dimensions at most."""
    element, inside = array_type(array, "mapGlb").element, 0
    x, t = ir.Var(f"x{dimensions}", element), element
    while isinstance(t, Array) and inside < dimensions - 1:
        t, inside = t.element, inside + 1
    return ir.MapLevel(ir.Level("glb", inside), ir.Lambda(x, copied(x, inside) if inside else x), array)


def _only_moves(term: ir.Expr) -> bool:
    """Whether a term only moves the elements of what it reads, whatever that computes."""
    return isinstance(term, LAYOUT) or (isinstance(term, ir.Map) and is_layout(term.function))


def _whole(term: ir.Expr) -> ir.Expr:
    return _whole(term.array) if isinstance(term, ir.Slice) else term


def _is_computed(term: ir.Expr) -> bool:
    """Whether both parts of an array are computed: they stand in one memory then, which one kernel may write.

    So do both parts of its rows.
    """
    if isinstance(term, ir.Transpose) and isinstance(parts := term.array, ir.Concat):
        return _is_computed(parts) and all(isinstance(_whole(p), ir.Transpose) for p in (parts.first, parts.second))
    return isinstance(term, ir.Concat) and not (is_pure(term.first) or is_pure(term.second))


def _shared_out(term: ir.Expr) -> ir.Expr:
    """A term that only moves the elements of an array, with a work-item for each; others as they are."""
    return copied(term) if is_layout(term) and isinstance(type_of(term), Array) else term


def _is_of_items(term: ir.Expr) -> bool:
    """Whether all that is parallel in a term are maps over work-items, if anything is."""
    parts = [t for t in ir.subterms(term) if isinstance(t, (ir.MapLevel, ir.LookBack, *ir.AT_ONCE))]
    return all(isinstance(t, ir.MapLevel) and t.level.kind in ("glb", "seq") for t in parts)


def _longest(types: list[Array]) -> Array:
    """The array type that has room for all of some: they differ in the length only."""
    return Array(reduce(maximum, (t.size for t in types)), types[0].element)


def _fits_launch(first: ir.Expr, second: ir.Expr) -> bool:
    """Whether a launch for the first term has a work-item, or group, for each that the second one needs."""
    if any(isinstance(t, ir.Iterate) and is_parallel(t.function) for t in (*ir.subterms(first), *ir.subterms(second))):
        return False
    sizes, more = parallel_lengths(first), parallel_lengths(second)
    return all(level in sizes and is_at_least(sizes[level] - length, 0) for level, length in more.items())


def taken_names(program: ir.Program) -> set[str]:
    """The names that no buffer or variable of a kernel may have: those of shared indices, and of open sizes."""
    return {"lane", *(f"lcl_{d}" for d in range(3)), *open_sizes(program)}


def open_sizes(program: ir.Program) -> tuple[str, ...]:
    """The sizes without a value, in order of appearance: in the types of the inputs, then in the program."""
    return size_variables(replace(program, ranges=()))  # a size that only a range mentions is no kernel's


def lower_program(
    program: ir.Program,
    device: Device,
    launch: Launch | None,
    optimise: Optimisations,
    lowering: type[Lowering] = Lowering,
    *,
    any_launch: bool = False,
    most_private: int = PRIVATE_CHOICE,
) -> tuple[Host, Memory]:
    """The kernels of a program, and the memory of its result; `most_private` as in `State`."""
    check_nesting(program.body)
    host = Host(device, launch, optimise, taken_names(program), lowering, any_launch, most_private)
    for item in program.inputs:
        host.declare(item)
    result = memory("result", type_of(program.body), "global", host.taken)
    host.produce(unique_names(program.body), result)
    host.kernels = together(host.kernels)
    return host, result
