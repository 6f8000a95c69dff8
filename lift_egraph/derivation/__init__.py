"""Why a term was found: steps of single rules from one term to another, in words, and by hand.

`derive` finds the steps, `steps` takes and replays them, `places`, `fits` and `words` tell where a rule can be applied
and why not, and `explore` lets a person take the steps. `parts` has the parts of
terms as people read them.
"""
