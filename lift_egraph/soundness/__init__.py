"""Whether rules are right: each is run on random programs around its own pattern, and both sides are compared.

`unification`, `pattern_types`, `pattern_values` and `instances` make programs on which a rule fires, `rule_check`
compares what they compute, `shrinking` and `counterexamples` make a failure small, `many_rules` checks a whole book of
rules in parallel, and `audit` looks at all the members of one e-graph.
"""
