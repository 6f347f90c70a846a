from recollect.memory.learning.attribution import attribute
from recollect.memory.values.decision import Proposal

MESSAGES = ["I live in Rome. Do I like tea?", "I like tea.", "Thanks, I live in Rome, and I like jazz."]


def quoted(*quotes: str) -> list[Proposal]:
    return [Proposal("add", key=f"k{number}", evidence=quote) for number, quote in enumerate(quotes)]


def test_a_proposal_goes_to_the_first_message_that_holds_its_quote() -> None:
    proposals = quoted("i like JAZZ", "I live in Rome", "I like tea", "Thanks")
    jazz, rome, tea, thanks = proposals
    assert attribute(proposals, MESSAGES) == [[rome], [tea], [jazz, thanks]]


def test_what_no_message_holds_goes_to_the_last() -> None:
    proposals = quoted("I have a dog", "", "Do I like tea?", "x" * 3_000)
    assert attribute(proposals, MESSAGES) == [[], [], proposals]


def test_of_one_message_is_all() -> None:
    proposals = quoted("I have a dog", "I like tea")
    assert attribute(proposals, MESSAGES[:1]) == [proposals]
    assert attribute([], MESSAGES) == [[], [], []]
