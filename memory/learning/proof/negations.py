# ruff: noqa: RUF001 - words of many languages, written as their speakers do
"""Negations in many languages: tells whether a clause denies what it says. Pure, and linear in the text.

A word that denies (not, kein, jamais) and one that means a lack (hate, allergic, without) cancel out: "I don't like
jazz" and "dislikes jazz" both deny, "not allergic to nuts" does not.
"""

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.words import word_set

_DENY = word_set(
    "not no never none nobody nothing neither nor cannot nowhere ain t nt dont doesnt didnt isnt wasnt arent cant wont "
    "couldnt wouldnt shouldnt havent hasnt hadnt non "
    "nicht nichts nie niemals niemand kein keine keinen keinem keiner keines keins nirgends weder nö nix "
    "ne pas jamais rien aucun aucune nulle ni guère "
    "nunca jamás nadie ningún ninguno ninguna tampoco nada "
    "mai niente nessuno nessuna neanche mica "
    "não nao nenhum nenhuma ninguém jamais "
    "niet geen nooit niets niemand nergens "
    "nie nigdy nic nikt żaden żadna "
    "не нет ни никогда ничего никто нельзя никакой "
    "inte ingen inget inga aldrig ikke ikkje ingenting "
    "değil hayır yok hiç "
    "ne není nejsem nikdy nemám "
    "لا ليس لست لم لن غير ما नहीं मत ไม่"
)
_LACK = word_set(
    "arrêté arrêter arrête cessé dejé dejado smesso parei aufgehört gestoppt перестал перестала бросил бросила without "
    "dislike dislikes disliked disliking hate hates hated hating detest detests loathe loathes avoid avoids "
    "avoided avoiding refuse refuses refused lack lacks lacking lacked unable stop stops stopped quit quits former "
    "formerly ex allergic allergy allergies intolerant intolerance unemployed jobless zero except unlike against "
    "abstain abstains abstinent free vegan teetotal teetotaler nonsmoker "
    "ohne hasse hasst hassen vermeide vermeidet meide meidet ehemalig ehemals allergisch allergie unverträglich "
    "sans déteste détestent détester évite évitent ancien allergique allergie "
    "sin odio odia odiar evito evita alérgico alérgica alergia exmarido "
    "senza odio odia evita allergico allergica allergia "
    "sem odeio odeia evito alérgico alérgica alergia "
    "zonder haat haten vermijd allergisch allergie "
    "без ненавижу ненавидит избегаю аллергия bez nienawidzę alergia utan allergisk hatar uden"
) - word_set("free vegan ancien")
_TELLING = _DENY | _LACK | {"up"}
"""A clause of ASCII without one of these words denies nothing; "up" is of "given up"."""
_IDIOMS = late_pattern(
    r"\b(?:don'?t|do not|never|please don'?t|didn'?t|did not) (?:ever )?(?:forget|worry|mind|you)\b|\bno (?:problem"
    r"|doubt|worries|matter"
    r"|wonder|idea|way|need|kidding)\b|\bnot (?:only|just|to mention|least|bad)\b|\bwhy not\b|\bcan'?t (?:wait|help"
    r"|believe)\b"
    r"|\bcannot (?:wait|help|believe)\b|\bcould(?:n'?t| not) be (?:happier|better|more)\b|\bno ?[.]\s?\d"
    r"|\b(?:isn|aren|wasn|don|doesn|didn|won|can|haven)'?t (?:it|they|i|you|he|she|we)\s*(?=[?.!]|$)"
    r"|\b(?:bitte )?vergiss (?:bitte )?nicht\b|\bvergessen sie nicht\b|\bnicht (?:nur|wahr|zuletzt)\b"
    r"|\bkein(?:e)? (?:problem|zweifel|sorge|ahnung)\b"
    r"|\bn'?oublie(?:z)? (?:jamais|pas)\b|\bpas (?:de problème|seulement|mal)\b|\bne \w+ (?:pas )?que\b|\bn'\w+ que\b"
    r"|\bno (?:olvides|te olvides|olvide|solo|sólo|pasa nada|hay problema)\b|\bde nada\b|\bnon (?:dimenticare|solo)\b"
    r"|\bnão (?:esqueça|só)\b"
    r"|\bне (?:забудь|забывай|только)\b|忘れないで|别忘了"
    r"|不要忘记|別忘了|不仅|不但|不只|不错|不錯|没问题|沒問題|對不起|对不起|不好意思|差不多"
)
_OPENING_NO = late_pattern(
    r"^\W*(?:no|nope|nah|nein|nee?|non|não|нет|nie|nej)\b(?:\s*[,.:;!\u2013\u2014-]|(?=\s+(?:i|i'm|i've|my|it|it's|he"
    r"|she|they|we|the|that|actually|ich|mein|meine|je|mon|ma|yo|me llamo|mi|soy|vivo)\b))"
)
_PAST_NO = late_pattern(
    r"\b(?:no longer|not (?:any ?more|any longer)|n't .{0,60}(?:any ?more|any longer)|nicht (?:mehr|länger)"
    r"|keine?[nrms]? mehr"
    r"|ne .{0,60}plus|n'.{0,60}plus|ya no|non .{0,60}più|já não|не .{0,40}больше|больше не|niet meer|geen .{0,30}meer"
    r"|gave up|given up)\b|もう|不再"
)
_SIGNS = late_pattern(
    r"ない|なかった|ません|なく(?:て|な)|じゃな|ではな|無し|なし|ずに|[不没沒無无非未勿別别](?!\s*[のこ人])"
    r"|안 |않|없|아니|못"
)
_NO_SIGNS = late_pattern(
    r"特别|特別|个别|個別|分别|分別|性别|性別|区别|區別|告别|離別|别人|別人|非常|除非|未来|未來|無料|別に|不動産|少ない|つまらない|仕方ない"
)
_LACK_SIGNS = late_pattern("过敏|過敏|アレルギー|알레르기|嫌い|嫌|讨厌|討厭|苦手|避け|싫|戒")
_IN_THE = word_set("moro sou eu meu minha gosto trabalho tenho vivo você uma estou nasci brasil rio")
_SPANISH = word_set("yo el es la soy me los las tengo estoy vivo como gusta mi hay quiero puedo fumo bebo")
_WORD = late_pattern(r"[^\W\d_]+")
_GIVEN_UP = late_pattern(r"\b(?:gave|given|giving) up\b")
_PREFIX = late_pattern(r"\bnon-|\bex-")
_NO_DENIAL_IN = {"mai": ("non",), "ne": ("pas", "jamais", "rien", "plus", "aucun", "aucune", "ni", "guère", "není")}
"""Words that deny only beside one of these: "mai" is also the month, in German and French."""


def denies(clause: str) -> bool:
    """Tell whether a folded clause says that something is not so, is lacking, or has ended."""
    if clause.isascii() and _TELLING.isdisjoint(_WORD.findall(clause.replace("n't", " not"))):
        return False  # most clauses: the idioms below take twenty times as long
    plain = _IDIOMS.sub(" ", _OPENING_NO.sub(" ", _GIVEN_UP.sub(" quit ", clause)))
    said = _WORD.findall(_PREFIX.sub("without ", plain.replace("n't", " not")))
    there = set(said)
    explicit = there & _DENY
    explicit -= {word for word, beside in _NO_DENIAL_IN.items() if there.isdisjoint(beside)}
    if "no" in explicit and there & _IN_THE and not there & (_SPANISH - _IN_THE):
        explicit.discard("no")  # Portuguese: "in the"
    denied = bool(explicit) or _denies_in_signs(plain)
    lacks = len({_stem(word) for word in said if word in _LACK})
    lacks += len(_LACK_SIGNS.findall(plain))
    return denied != bool(lacks % 2)


def says_it_is_over(clause: str) -> bool:
    """Tell whether a folded clause says that something has ended: "no longer", "nicht mehr"."""
    return _PAST_NO.search(clause) is not None


def _denies_in_signs(text: str) -> bool:
    if text.isascii():
        return False
    return _SIGNS.search(_NO_SIGNS.sub("", text)) is not None


def _stem(word: str) -> str:
    return word[:5]
