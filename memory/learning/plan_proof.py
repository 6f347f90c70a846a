"""Plan proof: tells whether a proposal's quote carries what it would store, and holds it back if not. Pure."""

from dataclasses import replace

from recollect.memory.facts.wording import Wording
from recollect.memory.learning.plan import PlanRequest, Refusal
from recollect.memory.learning.proof.evidence import heard
from recollect.memory.learning.proof.validity_dates import says_date
from recollect.memory.learning.proof.vocabulary import WORD
from recollect.memory.learning.proposal_target import ReadProposal
from recollect.memory.learning.validity import Validity
from recollect.memory.temporal.dates import read_date
from recollect.memory.values.decision import Proposal
from recollect.memory.values.fact import Fact

PROOF = "recollect.memory.learning.proof.claim"
"""The module that proves claims. It compiles patterns for 0.03 s, and is imported when the first fact is planned."""
_NAME_KEYS = frozenset({"name", "first_name", "last_name", "full_name", "nickname", "preferred_name"})


def doubt_of(
    request: PlanRequest, proposal: Proposal, wording: Wording, validity: Validity, target: Fact | None
) -> str | None:
    """Return why the quote does not carry the proposal; None if it does, or if UNPROVEN allows everything."""
    if request.review.unproven == "allow":
        return None
    from recollect.memory.learning.proof.claim import ProposedFact, ending_problem, proof_problem  # see PROOF

    if proposal.decision == "delete":
        return ending_problem(proposal.evidence, request.witness)
    claim = ProposedFact(
        key=proposal.key,
        value=wording.value,
        statement=wording.statement,
        known=_known_names(request, target),
        is_past=validity.valid_to is not None,
        is_known_key=target is not None or proposal.key in request.wanted,
    )
    return proof_problem(claim, proposal.evidence, request.witness)


def with_carried_tags(request: PlanRequest, proposal: Proposal, wording: Wording) -> Wording:
    """Return the wording without the tags that add something to the quote."""
    if request.review.unproven == "allow" or not wording.tags:
        return wording
    from recollect.memory.learning.proof.claim import carried_tags  # see PROOF

    return replace(wording, tags=carried_tags(wording.tags, proposal.evidence, request.witness))


def with_carried_dates(request: PlanRequest, proposal: Proposal) -> tuple[Proposal, str]:
    """Return the proposal without dates of validity that the user did not name, and a remark on what was left out."""
    if request.review.unproven == "allow":
        return proposal, ""
    remarks = list[str]()
    for field in ("valid_from", "valid_to"):
        date: str | None = getattr(proposal, field)
        if date and read_date(date.strip()[:100]) and not says_date(date, proposal.evidence, request.witness):
            proposal = replace(proposal, valid_from=None) if field == "valid_from" else replace(proposal, valid_to=None)
            remarks.append(f"its {field} was left out: the user named no such time")
    return proposal, "; ".join(remarks)


def has_to_wait(request: PlanRequest, reading: ReadProposal, tags: tuple[str, ...], target: Fact | None = None) -> bool:
    """Tell whether a change of facts with these `tags` waits for a person.

    Raises:
        Refusal: its quote does not carry it, and UNPROVEN refuses such changes.
    """
    review = request.review
    if reading.doubt is not None and review.unproven == "refuse":
        raise Refusal(reading.doubt, target)
    if reading.proposal.source == "tool" and review.holds_tool_back(untrusted=reading.proposal.untrusted):
        return True
    return reading.doubt is not None or review.holds_back(tags)


def is_proved_since(request: PlanRequest, reading: ReadProposal, waiting: Fact) -> bool:
    """Tell whether `reading` repeats the `waiting` fact in a way that no person has to decide on."""
    review = request.review
    if review.holds_back(waiting.tags):
        return False
    was_the_agents = review.tools != "off" and waiting.source == "tool" and reading.proposal.source != "tool"
    return review.unproven != "allow" or was_the_agents


def _known_names(request: PlanRequest, target: Fact | None) -> frozenset[str]:
    """Return the words of the user's names and of `target`: a statement may use them without proof."""
    texts = [fact.value for fact in request.living if fact.key in _NAME_KEYS]
    if target is not None:
        texts.append(target.statement)
    return frozenset(word for text in texts for word in WORD.findall(heard(text)))
