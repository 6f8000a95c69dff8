"""The e-graph: the language as egglog sorts, encoding and analyses, rules, saturation, and the frozen result.

`sorts` is what rules are written with and `rule` what they are, `exact_rules` as far as they change no floats;
`encoding` brings a term into the e-graph, `saturate` runs phases of rules on it in a child process, and `frozen` is
the e-graph that comes back, which `locate`, `members`, `growth`, `picture` and `scratch` look at, and of which
`read_back` makes terms.
"""
