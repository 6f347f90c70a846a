"""Word lists: plain sets of words, written as one text."""


def words(text: str) -> frozenset[str]:
    """The words of `text`, which are separated by white space."""
    return frozenset(text.split())
