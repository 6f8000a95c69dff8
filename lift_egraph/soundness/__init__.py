"""Whether rules are right: each is run on random programs around its own pattern, and both sides are compared.

`unification` and `pattern_types` find the types and sizes of a rule, `clashes` the names that it might confuse;
`random_terms`, `pattern_values`, `matches` and `instances` make programs on which it fires, `rule_check` compares what
they compute, `shrinking` and `counterexamples` make a failure small, `many_rules` checks a whole book of rules in
parallel, and `audit` looks at all the members of one e-graph.
"""
