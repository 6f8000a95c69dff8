"""Imported by a process whose forks are workers of a cluster: they begin with what the children of other tests have."""

from tests.warm import import_lazily

import_lazily()
