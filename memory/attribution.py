"""Attribution: which of several messages a proposal was read from. Pure."""

from collections.abc import Iterable, Sequence

from memory.decision import Proposal
from memory.evidence import quote_problem


def attribute(proposals: Iterable[Proposal], messages: Sequence[str]) -> list[list[Proposal]]:
    """The proposals of each message, in their order: each goes to the first one that really holds its quote.

    Those whose quote none of them holds go to the last, where reconciliation refuses them. `messages` is not empty.
    """
    shares: list[list[Proposal]] = [[] for _ in messages]
    for proposal in proposals:
        holding = (at for at, message in enumerate(messages) if quote_problem(proposal.evidence, message) is None)
        shares[next(holding, len(messages) - 1)].append(proposal)
    return shares
