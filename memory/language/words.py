"""Word lists: plain sets of words, written as one text."""


def word_set(text: str) -> frozenset[str]:
    """Return the words of `text`, which are separated by white space."""
    return frozenset(text.split())
