"""Writes what a filter allows as a filter of a Qdrant server."""

from qdrant_client import models

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


def allowed_by(allowance: Allowance) -> models.Filter:
    """Return the filter for the points that are allowed."""
    named = models.HasIdCondition(has_id=list(allowance.points))
    return models.Filter(should=[named] if allowance.terms == NONE else [named, _filter(allowance.terms)])


def _filter(terms: Narrow) -> models.Condition:
    match terms:
        case HasTerm(wanted):
            return models.FieldCondition(key=TERMS, match=models.MatchAny(any=list(wanted)))
        case CreatedBetween(begin, end):
            return models.FieldCondition(key=CREATED, range=models.Range(gte=begin, lt=end))
        case Every(parts):
            return models.Filter(must=[_filter(part) for part in parts])
        case Either(parts):
            return (
                models.Filter(should=[_filter(part) for part in parts]) if parts else models.HasIdCondition(has_id=[])
            )
        case Without(part):
            return models.Filter(must_not=[_filter(part)])
        case Made() | TermBetween() | TextIn() | TextBetween():
            raise TypeError("an index compares terms and times alone")
