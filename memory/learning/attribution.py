"""Attribution: assigns each proposal of a batch to the message that holds its quote. Pure."""

from collections.abc import Iterable, Sequence

from recollect.memory.learning.proof.evidence import heard, quote_problem
from recollect.memory.values.decision import Proposal


def attribute(proposals: Iterable[Proposal], messages: Sequence[str]) -> list[list[Proposal]]:
    """Return the proposals of each message: each proposal goes to the first message that holds its quote.

    A proposal whose quote no message holds goes to the last one, where reconciliation refuses it. `messages` must not
    be empty. The proposals of a message keep their order.
    """
    shares: list[list[Proposal]] = [[] for _ in messages]
    said = [heard(message) for message in messages]
    for proposal in proposals:
        holding = (at for at, message in enumerate(said) if quote_problem(proposal.evidence, message) is None)
        shares[next(holding, len(messages) - 1)].append(proposal)
    return shares
