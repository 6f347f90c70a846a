# ruff: noqa: RUF001 - letters of many scripts
"""Names in Latin letters: Cyrillic, Greek, kana and Hangul as they are commonly written. Pure.

The result is rough on purpose: `sounds` gives the common spellings of a name one form ("Yulia", "Julia").
"""

import re

from recollect.memory.language.late_pattern import late_pattern

_LETTERS = {
    **dict(zip("абвгдезийклмнопрстуфыэіїєґў", "abvgdeziiklmnoprstufyeiieguw", strict=False)),
    **{"ж": "zh", "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ъ": "", "ь": "", "ю": "yu", "я": "ya"},
    **{"ё": "yo", "і": "i", "ї": "yi", "є": "ye", "ґ": "g", "ў": "u"},
    **dict(zip("αβγδεζηικλμνξοπρστυω", "avgdeziiklmnxoprstyo", strict=True)),
    **{"θ": "th", "φ": "f", "χ": "ch", "ψ": "ps", "ς": "s"},
}
_ROWS = {
    "": "あいうえお", "k": "かきくけこ", "s": "さしすせそ", "t": "たちつてと", "n": "なにぬねの", "h": "はひふへほ",
    "m": "まみむめも", "r": "らりるれろ", "g": "がぎぐげご", "z": "ざじずぜぞ", "d": "だぢづでど", "b": "ばびぶべぼ",
    "p": "ぱぴぷぺぽ",
}  # fmt: skip
_KANA = {sign: f"{row}{vowel}" for row, signs in _ROWS.items() for sign, vowel in zip(signs, "aiueo", strict=True)} | {
    **{"や": "ya", "ゆ": "yu", "よ": "yo", "わ": "wa", "を": "o", "ん": "n", "し": "shi", "ち": "chi", "つ": "tsu"},
    **{"ふ": "fu", "じ": "ji", "ぢ": "ji", "づ": "zu", "ゔ": "v", "っ": "", "ー": ""},
}
_SMALL = {"ゃ": "ya", "ゅ": "yu", "ょ": "yo", "ぁ": "a", "ぃ": "i", "ぅ": "u", "ぇ": "e", "ぉ": "o"}
_TO_HIRAGANA = {code: code - 0x60 for code in range(0x30A1, 0x30F7)}
_INITIALS = ("g", "kk", "n", "d", "tt", "r", "m", "b", "pp", "s", "ss", "", "j", "jj", "ch", "k", "t", "p", "h")
_VOWELS = (
    *("a", "ae", "ya", "yae", "eo", "e", "yeo", "ye", "o", "wa", "wae", "oe", "yo", "u", "wo", "we", "wi", "yu"),
    *("eu", "ui", "i"),
)
_FINALS = (
    *("", "k", "k", "k", "n", "n", "n", "t", "l", "k", "m", "l", "l", "l", "p", "l", "m", "p", "p", "t", "t", "ng"),
    *("t", "t", "k", "t", "p", "t"),
)
_HANGUL, _LAST_HANGUL = 0xAC00, 0xD7A3
_SAME = (
    (late_pattern(r"(.)\1+"), r"\1"),
    (late_pattern("kh"), "h"),
    (late_pattern("[jy]+"), "i"),
    (late_pattern("ph"), "f"),
)
_SAME_LETTERS = str.maketrans({"w": "v", "c": "k", "q": "k"})


def latin(word: str) -> str:
    """Write `word` in Latin letters; keep characters of other scripts."""
    written = list[str]()
    for char in word.translate(_TO_HIRAGANA):
        if _HANGUL <= ord(char) <= _LAST_HANGUL:
            written.append(_syllable(ord(char) - _HANGUL))
        elif char in _SMALL:
            before = written.pop() if written else ""
            vowel = _SMALL[char]
            written.append(before[:-1] + (vowel[1:] if before[:-1].endswith(("sh", "ch", "j")) else vowel))
        else:
            written.append(_LETTERS.get(char) or _KANA.get(char, "" if char in _LETTERS else char))
    return "".join(written)


def sounds(name: str) -> str:
    """Return a rough phonetic form: common spellings of one name have the same form."""
    for pattern, other in _SAME:
        name = pattern.sub(other, name)
    return re.sub(r"i+", "i", name.translate(_SAME_LETTERS))


def _syllable(number: int) -> str:
    initial, rest = divmod(number, 588)
    vowel, final = divmod(rest, 28)
    return f"{_INITIALS[initial]}{_VOWELS[vowel]}{_FINALS[final]}"
