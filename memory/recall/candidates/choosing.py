"""Chooses the candidates that a search goes on with, by the lists of the channels that name them. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

LISTED = 0.05
"""The bonus that a candidate gets from each channel that names it, beside its score there in [0, 1]."""
_DIGITS = 100_000
"""To so many parts of 1 the cosines of equal texts are equal: an embedder's last bits depend on the texts beside."""


def promising(lists: Sequence[Mapping[str, float]], most: int) -> list[str]:
    """Return the ids with the highest sums over all lists, each scaled to [0, 1]; an id that a list lacks gets 0.

    The first list is by meaning. Beside the `most` are those whose texts may equal one of theirs.
    """
    sums = defaultdict[str, float](float)
    for scores in filter(None, lists):
        low = min(scores.values())
        width = (max(scores.values()) - low) or 1.0
        for found, score in scores.items():
            sums[found] += (score - low) / width + LISTED
    best = sorted(sorted(sums), key=sums.__getitem__, reverse=True)  # equal sums stay in the order of the ids
    return best if len(best) <= most else _with_equals(best[:most], best, lists[0])


def _with_equals(chosen: Sequence[str], ids: Sequence[str], dense: Mapping[str, float]) -> list[str]:
    """Return `chosen`, and those of `ids` whose texts may equal one of theirs, because the cosines in `dense` do.

    When repeats are counted, none may be missing. A cosine of 0 says nothing of a text.
    """
    there, parts = set(chosen), {found: int(_DIGITS * cosine) for found, cosine in dense.items()}
    alike = {parts.get(found, 0) for found in there} - {0}
    return [found for found in ids if found in there or parts.get(found) in alike]
