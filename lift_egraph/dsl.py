"""What rules are written with, those of the book and a user's own; it stays here, whatever moves inside the package.

The sorts, patterns and conditions are those of `lift_egraph.egraph.sorts`, `rule` is that of `lift_egraph.egraph.rule`;
`rewrite`, `eq`, `i64` and `String` are egglog's. The head of ``rules/fusion.py`` says what each means.
"""

from __future__ import annotations

from egglog import String as String, eq as eq, i64 as i64, rewrite as rewrite

from lift_egraph.egraph.rule import Rule as Rule, rule as rule
from lift_egraph.egraph.sorts import *
