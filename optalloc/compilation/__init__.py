"""compile(): from an instance in physical units to a Problem in integers."""

from optalloc.compilation.build import compile
from optalloc.compilation.routes import RouteFacts, route_facts

__all__ = ["RouteFacts", "compile", "route_facts"]
