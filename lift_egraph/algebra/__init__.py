"""Laws of operators, found in their scalar expressions: which reductions may be taken apart, and how.

`expressions` takes functions apart into scalar expressions, `semirings` says which operations go together,
`normal_forms`, `orders` and `sums` prove that two expressions are equal, `laws` asks this of operators, and `actions`
turns folds by other operators into reductions by associative ones, with `linear`, `matrices` and `clamps`; `steady` is
about those whose matrix is the same for all elements, also one of `bits`. Whole numbers that stay between bounds
(`bounded`, `kept`) do not wrap around: they are `residues`, or clamps. What is only ever one of a few values
(`reached`) is one of the `states` of an automaton, as in `tables` and `automata`. `compensated` is about sums that keep
what rounding loses, which no law of numbers sees. `against` says which law fails of folds that stay loops. What was
proven is tried on random values all the same (`trials`), which also finds what speaks against a law. `chances` says how
likely a polynomial passes for another one on random values.
"""
