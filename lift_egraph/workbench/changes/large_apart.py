"""Large arrays out of functions of rows that name them: each is a stage of its own, whose loops all groups share.

In ``map(λx. let s = a in b) xs`` a group that computes b for one x alone has to keep s, which may be larger than local
memory, or leaves most of the device idle where there are few x. The arrays s of all rows are one array, which a map of
its own computes; so are sides of a zip that have no name. What stands before, and is needed for it, is named of all
rows as well. Elements that need no fold stay where they are read. The terms are built here as the rules of
`lift_egraph.rules` name what maps compute; that they do is what the phase ``large_apart`` shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from lift_egraph.codegen.devices import Device
from lift_egraph.language import ir
from lift_egraph.language.binders import fresh_name, names_in
from lift_egraph.language.check import type_of
from lift_egraph.language.layout import is_pure
from lift_egraph.language.types import Array, bytes_of
from lift_egraph.workbench.changes.outside import in_maps
from lift_egraph.workbench.planning.plan import length_of, map_of, named_of_all, one_side

LONG = 1 << 10  # bytes of an array that few groups do not compute alone


@dataclass(frozen=True)
class LargeApart:
    """Builds the terms for a device."""

    device: Device

    def term(self, term: ir.Expr) -> ir.Expr:
        """The term with a map for each large array that a function of rows names."""
        taken = names_in(term)

        def apart(p: ir.Binder, body: ir.Expr, xs: ir.Expr, others: int = 1) -> ir.Expr:
            n = others * length_of(xs)
            match body:
                case ir.Apply(function=ir.Lambda()) if self._has_large(body, n):
                    of_all = partial(apart, others=others)
                    return named_of_all(p, body, xs, "$rows", taken, of_all, of_all)
                case ir.Map(array=ir.Zip() as sides) if (side := self._large_side(sides, n)) is not None:
                    s = ir.Var(fresh_name("$side", taken), type_of(side))
                    rest = replace(body, array=replace(sides, **{"first" if side is sides.first else "second": s}))
                    if isinstance(side, ir.Join):
                        return apart(p, ir.Apply(ir.Lambda(s, rest), side), xs, others)
                    of_rows = apart(*one_side(p, side, xs), others)
                    return map_of(*one_side(ir.PairBinder(s, p), rest, ir.Zip(of_rows, xs)))
                case ir.Map(function=ir.Lambda(binder=q, body=b), array=ys) if is_pure(ys):
                    of_batch = apart(q, b, ys, n)
                    return (apart if isinstance(of_batch, ir.Apply) else map_of)(p, of_batch, xs)
            return map_of(p, body, xs)

        return in_maps(term, apart)

    def _has_large(self, body: ir.Expr, rows: int) -> bool:
        """Whether a function of so many rows names a large array that it computes, first or later."""
        while isinstance(body, ir.Apply) and isinstance(body.function, ir.Lambda):
            if self._is_large(body.argument, rows):
                return True
            body = body.function.body
        return False

    def _large_side(self, sides: ir.Zip, rows: int) -> ir.Expr | None:
        """The large array among two beside each other, by which a function of so many rows goes, if it is computed."""
        made = (side for side in (sides.first, sides.second) if isinstance(side, ir.Map | ir.Join))
        return next((side for side in made if self._is_large(side, rows)), None)

    def _is_large(self, array: ir.Expr, rows: int) -> bool:
        of = type_of(array)
        if not isinstance(of, Array) or not any(isinstance(t, ir.FOLDS) for t in ir.subterms(array)):
            return False
        size = bytes_of(of)
        return size > self.device.local_memory or (rows < self.device.compute_units and size > LONG)
