"""Writes what a filter allows as a filter of the engine."""

import qdrant_edge as edge

from recollect.memory.ports.vector_index import Allowance
from recollect.memory.stores.points import CREATED, TERMS
from recollect.memory.values.filtering.narrow import (
    NONE,
    CreatedBetween,
    Either,
    Every,
    HasTerm,
    Made,
    Narrow,
    TermBetween,
    TextBetween,
    TextIn,
    Without,
)


def allowed_by(allowance: Allowance) -> edge.Filter:
    """Return the filter for the points that are allowed."""
    named = edge.HasIdCondition(set(allowance.points))
    return edge.Filter(should=[named] if allowance.terms == NONE else [named, _filter(allowance.terms)])


def _filter(terms: Narrow) -> "edge.ConditionType":
    match terms:
        case HasTerm(wanted):
            return edge.FieldCondition(TERMS, match=edge.MatchAny(list(wanted)))
        case CreatedBetween(begin, end):
            return edge.FieldCondition(CREATED, range=edge.RangeFloat(gte=begin, lt=end))
        case Every(parts):
            return edge.Filter(must=[_filter(part) for part in parts])
        case Either(parts):
            return edge.Filter(should=[_filter(part) for part in parts] or [edge.HasIdCondition(set())])
        case Without(part):
            return edge.Filter(must_not=[_filter(part)])
        case Made() | TermBetween() | TextIn() | TextBetween():
            raise TypeError("an index compares terms and times alone")
