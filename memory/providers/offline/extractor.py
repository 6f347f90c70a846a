"""The offline extractor: plain rules propose what a model would."""

from collections.abc import Mapping

from memory.decision import Proposal
from memory.errors import InvalidRequest, Problem
from memory.extraction_schema import WantedKeys
from memory.extractor import Extraction, ExtractionRequest
from memory.fact import fact_dict, fold, preferred
from memory.providers.offline.finding import Finding
from memory.providers.offline.rules import overlaid, read
from memory.providers.offline.wording import stated

NAME = "offline"
_IMPORTANCE = {"name": 0.9, "location": 0.7, "occupation": 0.7, "employer": 0.6, "allergy": 0.9, "age": 0.6}


class OfflineExtractor:
    """Implements `Extractor` without a model. It spends no tokens; `schema` limits what is learned."""

    def __init__(self, *, schema: WantedKeys | None = None) -> None:
        self._schema = schema

    async def extract(self, request: ExtractionRequest, *, model: str | None = None) -> Extraction:
        """What the rules read in the messages, one after the other, against the known facts."""
        if model not in {None, NAME}:
            raise InvalidRequest(problems=[Problem("model", "there is none but the offline rules to choose")])
        known = fact_dict(fact for fact in request.known if fact.is_living(request.now))
        numbers = _numbers(request)
        proposals: list[Proposal] = []
        for turn in request.turns:
            findings = read(turn.message, known)
            proposals += [_proposal(finding, known.get(finding.key), numbers.get(finding.key)) for finding in findings]
            known = overlaid(known, findings)
            # What a message sets has no number; the later ones mean it by its key.
            numbers = {key: number for key, number in numbers.items() if key not in {item.key for item in findings}}
        if self._schema is None:
            return Extraction(proposals, NAME)
        wanted, refused = self._schema.sift(proposals, request.known)
        return Extraction(wanted, NAME, refused)


def _numbers(request: ExtractionRequest) -> Mapping[str, int]:
    """Under which number the fact is shown that is known by a key."""
    living = [fact for fact in request.known if fact.key is not None and fact.is_living(request.now)]
    chosen = {fact.key: preferred(other for other in living if other.key == fact.key) for fact in living}
    return {
        fact.key: number
        for number, fact in enumerate(request.known, start=1)
        if fact.key is not None and chosen.get(fact.key) is fact
    }


def _proposal(finding: Finding, before: str | None, number: int | None) -> Proposal:
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
