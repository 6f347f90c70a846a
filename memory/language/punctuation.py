"""Punctuation of all scripts: question marks, and the marks that end a sentence."""

import re

from recollect.memory.language.late_pattern import late_pattern

QUESTION_MARKS = "?\uff1f\u061f\u1367"
"""Question marks: Latin, fullwidth, Arabic, Ethiopic."""
SPACED_ENDS = ".!?\u2026\u061f\u06d4\u0964\u0589\u1362\u1367\u17d4\u104b"
"""Marks that end a sentence where white space, or the text's end, follows: 3.5 is one number."""
UNSPACED_ENDS = "\u3002\uff01\uff1f\uff0e\uff61"
"""Marks that end a sentence whatever follows, in scripts without spaces."""
SENTENCE_ENDS = SPACED_ENDS + UNSPACED_ENDS
CLOSING_MARKS = "\"')]\u2019\u201d\u00bb"
"""Marks that may stand between a sentence's last sign and the white space behind it."""

SENTENCE_BREAK = late_pattern(
    rf"(?<=[{re.escape(SPACED_ENDS)}])[{re.escape(CLOSING_MARKS)}]*\s+|(?<=[{re.escape(UNSPACED_ENDS)}])|\n+"
)
"""Matches between two sentences, or two lines."""


def asks(text: str) -> bool:
    """Tell whether the text ends with a question mark, or with white space behind one."""
    return text.rstrip().endswith(tuple(QUESTION_MARKS))
