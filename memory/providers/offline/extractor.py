"""Extracts facts offline: plain rules make the proposals of a model."""

from collections.abc import Mapping
from dataclasses import replace

from typing_extensions import override

from recollect.memory.background.long_texts import off_loop
from recollect.memory.learning.extraction.schema import WantedKeys
from recollect.memory.ports.extractor import Extraction, ExtractionRequest, Extractor
from recollect.memory.providers.offline.beginnings import began
from recollect.memory.providers.offline.finding import Extracted
from recollect.memory.providers.offline.rules import overlaid, read_findings
from recollect.memory.providers.offline.wording import stated
from recollect.memory.values.decision import Proposal
from recollect.memory.values.errors import InvalidRequest, Problem
from recollect.memory.values.fact import fact_dict, fold, preferred

NAME = "offline"
_IMPORTANCE = {"name": 0.9, "location": 0.7, "occupation": 0.7, "employer": 0.6, "allergy": 0.9, "age": 0.6}


class OfflineExtractor(Extractor):
    """Implements `Extractor` without a model. It spends no tokens; `schema` limits what is learned."""

    def __init__(self, *, schema: WantedKeys | None = None) -> None:
        self._schema = schema

    @override
    async def extract(self, request: ExtractionRequest, *, model: str | None = None) -> Extraction:
        """Return what the rules read in the messages, one after the other, against the known facts."""
        if model not in {None, NAME}:
            raise InvalidRequest(problems=[Problem("model", "there is none but the offline rules to choose")])
        proposals = await off_loop(lambda: _proposals(request), [turn.message for turn in request.turns])
        if self._schema is None:
            return Extraction(proposals, NAME)
        wanted, refused = self._schema.sift(proposals, request.known)
        return Extraction(wanted, NAME, refused)

    @override
    async def may_ask(self, model: str) -> bool:
        """Tell whether `model` may be asked: the rules are the only model."""
        return model == NAME


def _proposals(request: ExtractionRequest) -> list[Proposal]:
    known = fact_dict(fact for fact in request.known if fact.is_living(request.now))
    numbers = _numbers(request)
    proposals: list[Proposal] = []
    for turn in request.turns:
        findings, at = read_findings(turn.message, known), turn.at or request.now
        for finding in findings:
            made = _proposal(finding, known.get(finding.key), numbers.get(finding.key))
            proposals.append(replace(made, valid_from=began(finding.evidence, at)))
        known = overlaid(known, findings)
        # A fact that a message sets has no number yet; later messages refer to it by its key.
        numbers = {key: number for key, number in numbers.items() if key not in {item.key for item in findings}}
    return proposals


def _numbers(request: ExtractionRequest) -> Mapping[str, int]:
    """Return, for each key, the number under which its known fact is shown."""
    living = [fact for fact in request.known if fact.key is not None and fact.is_living(request.now)]
    chosen = {fact.key: preferred(other for other in living if other.key == fact.key) for fact in living}
    return {
        fact.key: number
        for number, fact in enumerate(request.known, start=1)
        if fact.key is not None and chosen.get(fact.key) is fact
    }


def _proposal(finding: Extracted, before: str | None, number: int | None) -> Proposal:
    if finding.ends:
        return Proposal("delete", key=finding.key, evidence=finding.evidence, shown=number)
    decision = "add" if before is None else "keep" if fold(before) == fold(finding.value) else "update"
    return Proposal(
        decision,
        key=finding.key,
        value=finding.value,
        statement=stated(finding.key, finding.value),
        evidence=finding.evidence,
        shown=number,
        importance=_IMPORTANCE.get(finding.key.split("_")[0], 0.5),
    )
