"""Questions that a few best hits do not answer: for an order, a development, a list of everything or a summary. Pure.

In English and German, and where the words are plain, in French, Spanish and Italian.
"""

from recollect.memory.language.late_pattern import late_pattern

MOST_CHARACTERS = 300
"""How much of the beginning of a text is read."""
LONGEST = 500
"""A longer text is no question: it has something in it that is to be worked on."""
WHOLE_PERIOD = "the query asks for a whole period"
WANTED = "coverage was asked for"

_ORDER = (
    r"\b(?:in )?(?:which|what) order\b|\bsequence of\b|\bchronolog|\btimeline\b"
    r"|\b(?:which|what) (?:\w+ ){0,4}(?:came|happened) (?:first|last)\b"
    r"|\breihenfolge\b|\bzeitliche[nr]? (?:ablauf|abfolge)\b"
    r"|\bdans quel ordre\b|\ben qué orden\b|\bin che ordine\b"
)
_DEVELOPMENT = (
    r"\bhow (?:did|has|have|does|do)\b.{1,80}\b(?:develop(?:ed|s)?|evolved?|evolves|progress(?:ed|es)|progress\W*$)"
    r"|\bhow (?:did|has|have)\b.{1,80}\b(?:changed? (?:over|since|during)\b|changed?\W*$)"
    r"|\bhow\b.{1,80}\bover (?:time|the (?:weeks|months|years))\b"
    r"|\b(?:describe|show|trace|explain) the (?:development|evolution|progress) of\b"
    r"|\bwie (?:hat|haben)\b.{1,80}\b(?:entwickelt|geändert|verändert|gewandelt)\b"
    r"|\bwie (?:entwickelte|änderte|veränderte|wandelte)n?\b.{0,20}\bsich\b|\bim laufe der zeit\b"
    r"|\bcomment\b.{1,80}\bévolué\b|\bcómo\b.{1,80}\bevolucion|\bcome si è evolut"
)
_EVERYTHING = (
    r"\b(?:list|name|show) (?:me )?(?:of )?(?:all|every|everything)\b"
    r"|\b(?:everything|all) (?:that )?(?:i|we|you) (?:have |had |ever )*"
    r"(?:said|told|mentioned|asked|wrote|discussed|talked)\b|\b(?:tell|show|give) me (?:everything|all)\b"
    r"|\b(?:liste|zähle?|nenne?|zeige?)\b.{0,20}\b(?:alles|alle)\b"
    r"|\balles,? (?:was|worüber) (?:ich|wir|du)\b.{1,80}"
    r"\b(?:gesagt|erzählt|geschrieben|gesprochen|besprochen|erwähnt)\b"
    r"|\btout ce que (?:j|nous|tu)\b|\btodo lo que (?:dije|he dicho|dijimos)\b|\btutto (?:ciò|quello) che\b"
)
_SUMMARY = (
    r"\bsummar(?:y|ies|i[sz]e|i[sz]ing)\b|\brecap(?:itulate)?\b|\bsum up\b|\boverview (?:of|over)\b"
    r"|\bzusammenfass|\bfass(?:e|t)?\b.{1,80}\bzusammen\b|\büberblick\b"
    r"|\brésum(?:e|é|ez|er)\b|\bresúme|\bresum(?:en|ir)\b|\briassum|\briassunto\b"
)
_ASKED = {
    "the query asks for an order of events": late_pattern(_ORDER),
    "the query asks for a development": late_pattern(_DEVELOPMENT),
    "the query asks for a list of everything": late_pattern(_EVERYTHING),
    "the query asks for a summary": late_pattern(_SUMMARY),
}


def why_covered(text: str) -> str | None:
    """Return why hits for `text` should cover its subject over time, or None where the best few answer it."""
    if len(text) > LONGEST:
        return None
    asked = " ".join(text[:MOST_CHARACTERS].lower().split())
    return next((reason for reason, words in _ASKED.items() if words.search(asked)), None)
