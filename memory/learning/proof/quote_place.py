"""Quote place: finds where a quote stands in the user's own words, so that a page can mark it. Pure."""

import re

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.learning.proof.evidence import MOST_CHARACTERS

_MARKS = "\"'`\u00b4\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a"
_ANY_MARK = f"[{re.escape(_MARKS)}]"
_MARK = late_pattern(_ANY_MARK)


def quote_place(quote: str, message: str) -> tuple[int, int] | None:
    """Return (start, end) of `quote` in `message`, counted in characters (code points); None where it is not found.

    Case, white space and the form of quotation marks may differ, as they may where the quote is proved. A place where
    the quote begins and ends with whole words is preferred. A quote that only Unicode's compatibility forms find has no
    place.
    """
    words = quote[:MOST_CHARACTERS].strip(f"{_MARKS} \t\r\n").split()
    if not words:
        return None
    pattern = r"\s+".join(_ANY_MARK.join(map(re.escape, _MARK.split(word))) for word in words)
    for form in (rf"(?<!\w){pattern}(?!\w)", pattern):
        found = re.search(form, message, re.IGNORECASE)
        if found is not None:
            return found.span()
    return None
