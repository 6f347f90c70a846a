"""The offline extractor: plain rules propose what a model would."""

from memory.decision import Proposal
from memory.extractor import Extraction, ExtractionRequest
from memory.fact import fact_dict, fold
from memory.providers.offline.finding import Finding
from memory.providers.offline.rules import read
from memory.providers.offline.wording import stated

NAME = "offline"
_IMPORTANCE = {"name": 0.9, "location": 0.7, "occupation": 0.7, "employer": 0.6, "allergy": 0.9, "age": 0.6}


class OfflineExtractor:
    """Implements `Extractor` without a model. It raises nothing and spends no tokens."""

    async def extract(self, request: ExtractionRequest) -> Extraction:
        """What the rules read in the message, against the known facts."""
        known = fact_dict(request.known)
        numbers = {
            fact.key: number
            for number, fact in enumerate(request.known, start=1)
            if fact.key is not None and fact.valid_to is None and known[fact.key] == fact.value
        }
        findings = read(request.message, known)
        proposals = [_proposal(finding, known.get(finding.key), numbers.get(finding.key)) for finding in findings]
        return Extraction(proposals, NAME)


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
