"""Token budgets. A token is estimated as 4 characters: no tokenizer is downloaded, and every model has its own."""

from collections.abc import Iterable, Sequence

CHARACTERS_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """Return the estimated tokens of a text: ceil(characters / 4)."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def fit_first(texts: Iterable[str], budget: int) -> int:
    """Return how many of `texts`, taken in order, fit into `budget` tokens together."""
    left, count = budget, 0
    for text in texts:
        left -= estimate_tokens(text)
        if left < 0:
            break
        count += 1
    return count


def fit_last(texts: Sequence[str], budget: int) -> int:
    """Return how many of `texts`, taken from the end, fit into `budget` tokens together."""
    return fit_first(reversed(texts), budget)
