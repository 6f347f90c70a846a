"""Quoted parts of a message: texts of other people that its writer passes on. Pure, and linear in the text.

Lines that begin with ">", fenced blocks, forwarded and answered mails are blanked: their characters become spaces, so
that every other character keeps its place. Speech in quotation marks is found separately, because "The Who" may be the
name of a band.
"""

import re
from collections.abc import Iterator

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.punctuation import SENTENCE_ENDS

_QUOTED_LINE = late_pattern(r"[ \t\u3000]*[>\uff1e]")
_FENCE = late_pattern(r"[ \t]{0,3}(?:[>\uff1e][ \t]?)*(`{3,}|~{3,})")
_BARE_FENCE = late_pattern(r"[ \t]*(`{3,}|~{3,})[ \t]*$")
_INLINE_FENCE = "```"
_LINE_ENDS = "\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_DASHES = r"[-_=\u2013\u2014*# \t]"
_FORWARDS = (
    r"(?:begin(?:ning)? (?:of )?)?(?:original message|forwarded message|forwarded by|urspr\u00fcngliche nachricht"
    r"|weitergeleitete nachricht|message d'origine|message original|message transf\u00e9r\u00e9|mensaje original"
    r"|mensaje reenviado|messaggio originale|messaggio inoltrato|mensagem original|mensagem encaminhada"
    r"|oorspronkelijk bericht|doorgestuurd bericht|\u5143\u306e\u30e1\u30c3\u30bb\u30fc\u30b8"
    r"|\u8f6c\u53d1\u7684?\u90ae\u4ef6|\u539f\u59cb\u90ae\u4ef6)"
)
_FORWARDED = late_pattern(
    rf"[-_=\u2013\u2014*#\s]*{_FORWARDS}[-_=\u2013\u2014*#:\s]*|.*[-_=]{{2}}\s*{_FORWARDS}\b.*", re.IGNORECASE
)
_WROTE = late_pattern(
    r"(?:on\b.{1,300}\bwrote|am\b.{1,300}\bschrieb\b[^:]{0,200}|le\b.{1,300}\ba \u00e9crit|el\b.{1,300}\bescribi\u00f3"
    r"|il\b.{1,300}\bha scritto|em\b.{1,300}\bescreveu|op\b.{1,300}\bschreef\b[^:]{0,200})\s*[:\uff1a]",
    re.IGNORECASE,
)
_WROTE_BEGINS = late_pattern(r"(?:on|am|le|el|il|em|op)\b.*\d", re.IGNORECASE)
_MOST_WROTE_CHARACTERS = 400
_PAIRS = {
    '"': '"',
    "\uff02": "\uff02",
    "\u201c": "\u201d\u201c\u201f",
    "\u201d": "\u201d",
    "\u201e": "\u201c\u201d\u201f",
    "\u201f": "\u201d",
    "\u00ab": "\u00bb",
    "\u00bb": "\u00ab",
    "\u2039": "\u203a",
    "\u203a": "\u2039",
    "\u300c": "\u300d",
    "\u300e": "\u300f",
    "\u301d": "\u301e\u301f",
    "\u2018": "\u2019\u2018",
    "\u201a": "\u2018\u2019",
    "\u201b": "\u2019",
    "'": "'",
    "`": "`'",
    "\u00b4": "\u00b4",
}
"""Opening quotation marks, each with the marks that close it."""
_CLOSING = {mark: late_pattern(f"[{re.escape(closing)}]") for mark, closing in _PAIRS.items()}
_APOSTROPHES = frozenset("'\u2019\u2018\u201b\u00b4`")
_MOST_NAME_WORDS = 6
_SPEAKS = late_pattern(
    r"\b(?:i|i['\u2019]m|im|my|me|we|call|forget|ich|mein\w*|mich|mir|wir|je|j['\u2019]\w+|mon|ma|mes|moi|nous|yo|mi|mis|me|soy"
    r"|vivo|trabajo|nosotros)\b"
    rf"|[:{SENTENCE_ENDS}\u79c1\u6211]",
    re.IGNORECASE,
)
"""Matches in quoted text that is somebody's speech rather than the name of something."""
_MARK = late_pattern(f"[{''.join(map(re.escape, _PAIRS))}]")


def own_words(message: str) -> str:
    """Return the message, in its length, with the lines of other people blanked."""
    kept = list[str]()
    fence = ""
    lines = message.splitlines(keepends=True)
    for number, line in enumerate(lines):
        bare = line.rstrip(_LINE_ENDS)
        if fence:
            kept.append(_blank(line))
            fence = "" if _closes(bare, fence) else fence
        elif _passes_on(bare, lines[number + 1 : number + 3]):
            kept += map(_blank, lines[number:])
            break
        elif _QUOTED_LINE.match(bare) or _FENCE.match(bare):
            kept.append(_blank(line))
            fence = _opened_by(bare)
        else:
            kept.append(_without_inline(line))
            fence = _INLINE_FENCE if bare.count(_INLINE_FENCE) % 2 else ""
    return "".join(kept)


def speech(text: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each text in quotation marks, marks included.

    Text without a closing mark ends with its line. An apostrophe within or behind a word is no quotation mark.
    """
    at = line_end = 0
    missing = set[str]()
    while (found := _MARK.search(text, at)) is not None:
        begin = found.start()
        at = begin + 1
        if begin >= line_end:
            line_end = text.find("\n", begin)
            line_end = len(text) if line_end < 0 else line_end
        end = _closing(text, begin, line_end, missing) if _opens(text, begin) else None
        if end is not None:
            yield begin, end
            at = end


def without_speech(text: str) -> str:
    """Return the text with a line break in place of each speech; quoted names ("The Who") stay."""
    kept, end = list[str](), 0
    for begin, until in _speeches(text):
        kept += [text[end:begin], "\n"]
        end = until
    return "".join([*kept, text[end:]])


def speeches(text: str) -> list[str]:
    """Return the quoted speeches of the text, marks included."""
    return [text[begin:end] for begin, end in _speeches(text)]


def _speeches(text: str) -> Iterator[tuple[int, int]]:
    for begin, end in speech(text):
        quoted = text[begin:end]
        if len(quoted.split()) > _MOST_NAME_WORDS or _SPEAKS.search(quoted):
            yield begin, end


def _passes_on(line: str, following: list[str]) -> bool:
    """Tell whether another mail begins at this line. "On … wrote:" may be broken into two lines or three."""
    text = line.strip()[:_MOST_WROTE_CHARACTERS]
    if _FORWARDED.fullmatch(text) or _WROTE.match(text):
        return True
    if not _WROTE_BEGINS.match(text):
        return False
    for more in following:
        text = f"{text} {more.strip()}"[:_MOST_WROTE_CHARACTERS]
        if _WROTE.match(text):
            return True
    return False


def _closes(line: str, fence: str) -> bool:
    if fence == _INLINE_FENCE:
        return fence in line
    found = _BARE_FENCE.match(line)
    return found is not None and found[1].startswith(fence)


def _opened_by(line: str) -> str:
    """Return the fence that the line opens and does not close, or ""."""
    found = _FENCE.match(line)
    if found is None:
        return ""
    return "" if found[1] in line[found.end() :] else found[1]


def _without_inline(line: str) -> str:
    """Return the line with the text between fences within it blanked."""
    if _INLINE_FENCE not in line:
        return line
    parts = line.split(_INLINE_FENCE)
    return _INLINE_FENCE.join(_blank(part) if place % 2 else part for place, part in enumerate(parts))


def _blank(line: str) -> str:
    body = line.rstrip(_LINE_ENDS)
    return " " * len(body) + line[len(body) :]


def _opens(text: str, begin: int) -> bool:
    before, after = text[begin - 1 : begin], text[begin + 1 : begin + 2]
    if text[begin] in _APOSTROPHES:
        return bool(after.strip()) and not (before.isalnum() or (before != "" and before in _APOSTROPHES))
    return not (text[begin] == '"' and before.isdigit())  # 5' 11" is a height


def _closing(text: str, begin: int, line_end: int, missing: set[str]) -> int | None:
    """Return the place behind the mark that closes the one at `begin`.

    Without one it is the line's end, and None for an apostrophe. `missing` collects marks that were searched for in
    vain, so that no part of a text is searched twice.
    """
    mark = text[begin]
    if mark in _APOSTROPHES:
        return _closing_apostrophe(text, begin, line_end, missing)
    found = None if mark in missing else _CLOSING[mark].search(text, begin + 1)
    if found is None:
        missing.add(mark)
        return line_end
    return found.end()


def _closing_apostrophe(text: str, begin: int, line_end: int, missing: set[str]) -> int | None:
    """Return the place behind the closing mark in the same line, or None.

    It stands behind a character that is no space and before none of a word.
    """
    line = f"{text[begin]}{line_end}"
    if line in missing:
        return None
    for place in range(begin + 1, line_end):
        if (
            text[place] in _PAIRS[text[begin]]
            and not text[place + 1 : place + 2].isalnum()
            and not text[place - 1].isspace()
        ):
            return place + 1
    missing.add(line)
    return None
