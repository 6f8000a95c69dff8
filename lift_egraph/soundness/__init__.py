"""Whether rules are right: each is run on random programs around its own pattern, and both sides are compared.

`unification` and `pattern_types` find the types and sizes of a rule, `clashes` the names that it might confuse, and
`near_misses` how its conditions are broken one by one; `random_terms`, `pattern_values`, `match_binders`, `matches`
and `instances` make programs on which it fires or must not, and `hostile_inputs` what they are run on. `rule_checker`
compares what one program and its rewritten forms compute, `rule_check` does so for many programs, `shrinking` and
`counterexamples` make a failure small, `many_rules` checks a whole book of rules in parallel, `mutations` are wrong
versions of a rule, which measure all this, and `audit` looks at all the members of one e-graph.
"""
