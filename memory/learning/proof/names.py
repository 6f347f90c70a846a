"""Names in a claim: capitalised words within a sentence, and runs of scripts without capitals. Pure."""

import re
from collections.abc import Collection, Iterator

from recollect.memory.language.folding import nfkc
from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.lexemes import STOP_WORDS
from recollect.memory.language.punctuation import CLOSING_MARKS, SENTENCE_ENDS
from recollect.memory.language.words import word_set
from recollect.memory.learning.proof.times import is_month, is_weekday
from recollect.memory.learning.proof.vocabulary import CASELESS, Vocabulary, pairs_of

_WORD = late_pattern(r"[^\W\d_](?:[\w\u2019'\u00b7]*\w)?")
_ENDS = late_pattern(rf"[:{SENTENCE_ENDS}][{re.escape(CLOSING_MARKS)}]*\s+$|^\s*$|\n\s*$")
_POSSESSIVE = late_pattern(r"['\u2019](?:s|\u0455)?$|['\u2019](?:m|ve|d|ll|re)$")
_NO_NAMES = word_set(
    "never always yes no none note i i'm i've i'd user users user's users' nutzer nutzers nutzerin benutzer benutzerin "
    "anwender anwenderin "
    "utilisateur utilisatrice l'utilisateur usuario usuaria utente l'utente usuário usuária gebruiker пользователь "
    "użytkownik "
    "användaren the a an my our his her their this that these those in on at since as when while after before there it "
    "he she "
    "they we you der die das ein eine mein meine sein ihr im am seit als wenn le la les un une des mon ma ses son sa "
    "il elle "
    "depuis el los las una su sus desde il lo gli uno suo sua o os uma seu sua de het een zijn haar ok okay mr mrs ms "
    "dr prof herr frau monsieur madame señor señora"
)
_EMPTY_WORDS = _NO_NAMES | STOP_WORDS
_FOLLOWS_NAME = word_set(
    "is was has had will can could would does lives works likes loves prefers wants plays speaks calls called named "
    "says "
    "said owns runs knows and & ist war hat wohnt lebt arbeitet heißt mag und est était a habite vit travaille aime et "
    "es era tiene vive trabaja y è ha e живёт живет работает любит"
)
_ARTICLES = word_set(
    "der die das den dem des ein eine einen einem einer eines kein keine keinen mein meine meinen meinem meiner sein "
    "seine seinen seinem seiner ihr ihre ihren ihrem ihrer im am zum zur vom beim als pro jede jeden jedes viele zwei "
    "drei vier mit ohne für und oder"
)
_GERMAN_ADJECTIVE = late_pattern(r"[a-zäöüß]{3,}(?:e|en|er|es|em)")
_GERMAN = word_set(
    "ich mein meine meinen meinem meiner bin habe ist und der das wohne nicht ein eine einen heiße mag arbeite mich "
    "wir "
    "seit bei esse trinke komme unser unsere kein keine"
)
_GERMAN_NOUN = late_pattern(r".{3,}(?:ung|heit|keit|schaft|ismus|tät|chen|name|beruf|stadt|land|tag|zeit)(?:en|s|e)?")
_EMPTY_SIGNS = late_pattern(
    "ユーザー|ユーザ|利用者|用户|用戶|使用者|名前|名字|姓名|住在|居住|在住|生活|働|工作|職業|职业|仕事|喜欢|喜歡|讨厌|不再|没有|沒有|来自|來自|出身|電話|电话"
    "|番号|号码|號碼|一只|一隻|今年|現在|现在|目前|[\u3041-\u309f不没沒是叫在的有了和与與她他我私僕俺好嫌住飼养養年月日歳岁飼]"
    "|사용자는|사용자의|사용자|이름은|이름|살고|있습니다|입니다|이에요|예요|합니다|좋아합니다|좋아해요|않습니다"
)
_MOST_PART = 1
LATIN_AND_OTHERS = late_pattern(r"[a-z\u00e0-\u024f]")
_OTHERS = late_pattern("[\u0370-\u05ff\u13a0-\u13ff]")


def claimed_names(
    text: str, *, lower: Collection[str] = (), is_value: bool = False, german: bool = False
) -> Iterator[str]:
    """Yield the names in a claim, folded; `text` must not be folded.

    A sentence's first word is a name only if the next word says so. A value's first word is one, unless it is in
    `lower`, the small words of its statement. `german` says that user and claim write German, which capitalises nouns.
    """
    plain = nfkc(text)
    found = list(_WORD.finditer(plain))
    for place, match in enumerate(found):
        word = _POSSESSIVE.sub("", match[0])
        folded = word.casefold()
        if is_mixed(folded):
            yield folded
            continue
        if not any(char.isupper() for char in word) or folded in _EMPTY_WORDS or _is_article(folded, plain, match):
            continue
        if is_value and folded in lower:
            continue
        if _begins(plain, match.start()) and (word[1:].islower() or len(word) == 1):
            following = found[place + 1][0] if place + 1 < len(found) else ""
            if not is_value and not (following in _FOLLOWS_NAME or following[:1].isupper() or word != match[0]):
                continue
        if german and _is_noun(folded, [before[0] for before in found[max(0, place - 2) : place]]):
            continue
        yield folded


def small_words(text: str) -> frozenset[str]:
    """Return the words of a claim that it writes in small letters."""
    return frozenset(word for word in _WORD.findall(nfkc(text)) if word.islower())


def is_german(vocabulary: Vocabulary) -> bool:
    """Tell whether a folded text is German, by the most frequent words of German."""
    return not vocabulary.words.isdisjoint(_GERMAN)


def is_mixed(word: str) -> bool:
    """Tell whether a folded word mixes Latin letters with letters of other scripts, which may look like them."""
    if word.isascii():
        return False
    return bool(LATIN_AND_OTHERS.search(word) and _OTHERS.search(word))


def unsaid_signs(text: str, said: Vocabulary, *, whole: bool = False) -> Iterator[str]:
    """Yield runs of scripts without capitals that a folded claim adds to `said`; none if `said` has no such script.

    A run counts as said if one pair of its characters is said; with `whole`, if all pairs but one are.
    """
    if not CASELESS.search(said.text):
        return
    for piece in CASELESS.findall(text):
        for run in _EMPTY_SIGNS.sub(" ", piece).split():
            if said.has_place(run) or run in said.text or (len(run) <= _MOST_PART and not whole):
                continue
            pairs = list(pairs_of(run))
            missing = sum(pair not in said.text for pair in pairs)
            if missing == len(pairs) if not whole else missing > 1:
                yield run


def is_carried(name: str, said: Vocabulary) -> bool:
    """Tell whether `said` has the name, its parts, or words whose initials it is made of."""
    parts = re.split(r"['\u2019\u00b7-]", name)
    if said.has_name(name) or all(said.has_name(part) for part in parts if part):
        return True
    return 1 < len(name) <= 6 and _is_short_for(name, said.text)


def is_time(name: str) -> bool:
    """Tell whether `name` is a month or a weekday."""
    return is_month(name) or is_weekday(name)


def _begins(text: str, at: int) -> bool:
    before = text[max(0, at - 40) : at].lstrip() if at <= 40 else text[at - 40 : at]
    return _ENDS.search(before.rstrip("\"'(\u00ab\u201e\u201c\u2018 ") + " ") is not None or not before.strip(
        "\"'(\u00ab\u201e\u201c\u2018 "
    )


def _is_article(folded: str, text: str, match: re.Match[str]) -> bool:
    """Tell whether the word is a lone capital letter, such as a vitamin, a grade or a blood group: no name."""
    return len(folded) == 1 and match[0] == match[0].upper() and text[match.end() : match.end() + 1] != "."


def _is_noun(folded: str, before: list[str]) -> bool:
    """Tell whether a word is a German noun rather than a name: behind an article, or with a noun's ending."""
    if _GERMAN_NOUN.fullmatch(folded):
        return True
    if before and before[-1].casefold() in _ARTICLES:
        return True
    return len(before) == 2 and before[0].casefold() in _ARTICLES and bool(_GERMAN_ADJECTIVE.fullmatch(before[1]))


def _is_short_for(name: str, text: str) -> bool:
    """Tell whether consecutive words of `text` begin with the letters of `name`."""
    initials = "".join(word[0] for word in re.findall(r"[^\W\d_]+", text))
    return name.isalpha() and name in initials
