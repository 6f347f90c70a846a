"""Applies all rules to a message and the known facts, and gives findings."""

import re
from collections.abc import Mapping

from recollect.memory.providers.offline.about_self import read_self
from recollect.memory.providers.offline.clauses import Clause, read_clauses
from recollect.memory.providers.offline.finding import Extracted
from recollect.memory.providers.offline.names import read_name
from recollect.memory.providers.offline.possessions import read_possessions, thing_key
from recollect.memory.providers.offline.tastes import DISLIKES, LIKES, read_tastes
from recollect.memory.values.fact import fold

_FORGET = re.compile(r"(?:please )?forget (?:about )?(?:the fact )?(?:that )?(?P<what>.+)", re.IGNORECASE)
_SPELLINGS = {"favorite": "favourite", "color": "colour"}


def read_findings(message: str, known: Mapping[str, str]) -> list[Extracted]:
    """Return the last finding for each key that the message names. Findings that end a value have known keys.

    A key that is known in another spelling (favorite, favourite) keeps the known one.
    """
    found: dict[str, Extracted] = {}
    for clause in read_clauses(message).stated:
        for finding in _read_clause(clause, known):
            settled = _settled(finding, {**known, **{key: said.value for key, said in found.items() if not said.ends}})
            if settled is not None:
                found.pop(settled.key, None)
                found[settled.key] = settled
    return [finding for finding in found.values() if not finding.ends or finding.key in known]


def overlaid(known: Mapping[str, str], findings: list[Extracted]) -> dict[str, str]:
    """Return what is known after the findings."""
    result = dict(known)
    for finding in findings:
        result.pop(finding.key, None) if finding.ends else result.update({finding.key: finding.value})
    return result


def _read_clause(clause: Clause, known: Mapping[str, str]) -> list[Extracted]:
    forget = _FORGET.match(clause.text)
    if forget:
        return _forgotten(forget["what"], clause, known)
    named = read_name(clause)
    if any(finding.ends for finding in named):
        return named + read_self(clause)
    return (named + read_self(clause)) or read_tastes(clause) or read_possessions(clause)


def _forgotten(what: str, clause: Clause, known: Mapping[str, str]) -> list[Extracted]:
    thing = re.fullmatch(r"my (.{1,60})", what, re.IGNORECASE)
    if thing and thing_key(thing[1]) in known:
        key = thing_key(thing[1])
        return [Extracted(key, known[key], clause.evidence, ends=True)]
    said = _read_clause(Clause(what, clause.evidence), {}) if not _FORGET.match(what) else []
    return [Extracted(item.key, item.value, item.evidence, ends=True) for item in said if not item.ends]


def _settled(finding: Extracted, known: Mapping[str, str]) -> Extracted | None:
    """Return the finding under its known key; None if it ends a value that is not known."""
    if not finding.ends:
        same = next((key for key in known if canonical(key) == canonical(finding.key)), finding.key)
        return Extracted(same, finding.value, finding.evidence)
    for key, value in known.items():
        alike = key == finding.key or (_taste(key) is not None and _taste(key) == _taste(finding.key))
        if alike and fold(value) == fold(finding.value):
            return Extracted(key, value, finding.evidence, ends=True)
    return None


def canonical(key: str) -> str:
    """Return the key in one spelling."""
    return "_".join(_SPELLINGS.get(word, word) for word in key.split("_"))


def _taste(key: str) -> str | None:
    return next((prefix for prefix in (DISLIKES, LIKES) if key.startswith(prefix)), None)
