"""The limits of facts: of their number, and of their texts."""

MOST_FACTS = 5_000
"""How many living facts a turn reads at most, newest first."""
MOST_VALUE_CHARACTERS = 1_000
MOST_STATEMENT_CHARACTERS = 2_000
MOST_TAGS = 10
MOST_TAG_CHARACTERS = 64
MOST_VERSIONS = 100
"""A fact keeps at most this many earlier versions; the oldest are dropped first."""
MOST_THREAD_FACTS = 100
"""How many facts of its own (its working memory) a thread keeps."""
