"""From low-level terms to OpenCL kernels, and running and validating them.

`compiler` is the way through: `lowering` makes statements (`c_ast`) of a term, `passes` better ones of them, `text`
OpenCL C of those, `plans` say what the kernels are and need, and `running` runs and judges them. `walkthrough` shows it
on two array accesses.

Every nesting of maps that `lift_egraph.language.nesting` allows compiles, but for these:

- a term that reads, in the kernel that computes it, the result of a mapGlb or mapWrg inside another one: OpenCL
  does not synchronise work-groups;
- work-items that exchange data inside a mapLcl which not all of them take part in: a barrier would hang;
- a `toPrivate` array made by a mapLcl and read by other work-items than those that made its elements (where the
  term does not ask for private memory, local memory is taken instead);
- a component of a vector that is chosen at run time;
- memory beyond a limit: local memory outside of mapWrg, more than `PRIVATE_LIMIT` private elements of an
  array, more than `unrolling.UNROLL_LIMIT` unrolled statements, more local memory or larger groups than the device has.

Each is refused before the build by a `NestingProblem` or `DeviceProblem` that names the subterm. A `SizeProblem`
refuses private or local memory of an open length, indices and loops beyond 32 bits that 64 do not mend, and index
functions that cannot be shown to fit at all open sizes.
"""
