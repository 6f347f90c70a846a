"""Lexemes: the words of a text as search counts them, folded; and the stop words. Pure."""

from collections.abc import Iterator

from recollect.memory.language.folding import folded
from recollect.memory.language.late_pattern import late_pattern

_LONGEST_WORD = 40

# Scripts written without spaces: Thai, Lao, Burmese, Khmer, kana, Han. Their "words" are the pairs of neighbours.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Characters that belong to a word although \w does not match them: combining marks, Hebrew, Arabic, Indic vowel signs.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff"
_WORD = late_pattern(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}_])[\w{_MARKS}]){{1,{_LONGEST_WORD}}}(?:[+#]{{1,2}}(?!\w))?")
_UNSPACED_RUN = late_pattern(rf"[{_UNSPACED}]")
_ASCII_WORD = late_pattern(rf"[a-z0-9]{{1,{_LONGEST_WORD}}}(?:[+#]{{1,2}}(?!\w))?")
"""`_WORD` in a folded text of ASCII alone, without a look at each character's script: a quarter of the time."""

_STOP_TEXT = (
    # English, with what its contractions leave behind
    "a about am an and any are as at be been but by can could d did do does doing don for from had has have he her him "
    "his how i if in into is it its just ll m me my no not of on or our re s she so some t than that the their them "
    "then there these they this to too us ve was we were what when where which who whom whose why will with would you "
    "your yours "
    # German, French, Spanish, without what means something in English (die, war, son, los)
    "aber als am auf bei bin das dass dem den der des du ein eine einen er es für habe hat ich im ist kann mein "
    "meine mich mir mit nicht sein sie sind und von was wer wie wir wo zu "
    "au aux avec ce ces cette dans de des du elle en est et il ils je la le les leur ma mais mes mon nous où par pas "
    "pour qu que qui sa ses sont suis sur un une vous "
    "al como con cuál del donde dónde el ella eres es está estoy la las lo me mi mis muy para pero por qué quién se "
    "ser si soy su sus tu y yo "
    # The commonest pairs of Chinese and Japanese
    "什么 我的 你的 是的 了吗 です ます した ました という"
)
STOP_WORDS = frozenset(_STOP_TEXT.split())
"""Words that mean nothing by themselves in one language, and nothing else in another of these languages."""


def words(text: str) -> Iterator[str]:
    """Yield the words of a text, folded (NFKC and case); pairs of characters where a script has no spaces."""
    plain = folded(text)
    if plain.isascii():
        yield from _ASCII_WORD.findall(plain)
        return
    for run in _WORD.findall(plain):
        if _UNSPACED_RUN.match(run):
            yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))
        else:
            yield run
