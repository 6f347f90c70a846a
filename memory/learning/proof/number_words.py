"""Words for numbers, in ten languages, with the value of each. Pure."""

from recollect.memory.language.words import word_set

_UNITS = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
    "siebzehn achtzehn neunzehn",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept "
    "dix-huit dix-neuf",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis "
    "diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis "
    "veintisiete veintiocho veintinueve",
    "it": "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici "
    "diciassette diciotto diciannove",
    "pt": "zero um dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis dezessete "
    "dezoito dezenove",
    "nl": "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien "
    "zeventien achttien negentien",
    "ru": "ноль один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать "
    "четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать",
    "pl": "zero jeden dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście dwanaście trzynaście "
    "czternaście piętnaście szesnaście siedemnaście osiemnaście dziewiętnaście",
    "sv": "noll ett två tre fyra fem sex sju åtta nio tio elva tolv tretton fjorton femton sexton sjutton arton nitton",
}
_TENS = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "fr": "vingt trente quarante cinquante soixante septante huitante nonante",
    "es": "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "it": "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
    "pt": "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
    "nl": "twintig dertig veertig vijftig zestig zeventig tachtig negentig",
    "ru": "двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто",
    "pl": "dwadzieścia trzydzieści czterdzieści pięćdziesiąt sześćdziesiąt siedemdziesiąt osiemdziesiąt "
    "dziewięćdziesiąt",
    "sv": "tjugo trettio fyrtio femtio sextio sjuttio åttio nittio",
}
_OTHERS = {
    1: "first einmal первый erste ersten erster premier première primero primera primo prima eine einen einem ein une "
    "una a an single jeden jedną одна одну eén één",
    2: "second twice couple both pair twins zweite zweiten zwo beide beiden zwillinge deuxième jumeaux segundo segunda "
    "gemelos две двое dwie duas secondo",
    3: "third thrice dritte dritten troisième tercero tercera troje трое",
    4: "fourth vierte vierten quatrième cuarto",
    5: "fifth fünfte cinquième quinto",
    6: "sixth sechste sixième sexto",
    7: "seventh siebte septième séptimo",
    8: "eighth achte huitième octavo",
    9: "ninth neunte neuvième noveno",
    10: "tenth zehnte dixième décimo",
    12: "dozen dutzend douzaine docena twelfth",
    20: "vingts",
    100: "hundred hundert cent cents cien ciento cento honderd сто sto hundra",
    200: "doscientos doscientas duzentos двести",
    300: "trescientos trescientas trezentos триста",
    400: "cuatrocientos quatrocentos четыреста",
    500: "quinientos quinientas quinhentos пятьсот",
    1000: "thousand tausend mille mil mila duizend тысяча тысячи тысяч tysiąc tysiące tysięcy tusen k",
    1_000_000: "million millions millionen millón millones milione milioni milhão milhões miljoen миллион миллиона "
    "миллионов milion miliony miljon miljoner",
    1_000_000_000: "billion billions milliarde milliarden milliard milliards miliardo миллиард",
}
SCALES = frozenset({100, 1000, 1_000_000, 1_000_000_000})
AND = word_set("and und et y e en и")
"""Words that may stand between the parts of one number."""


_GERMAN_UNITS, _GERMAN_TENS = _UNITS["de"].split(), ["", "", *_TENS["de"].split()]


def _german(number: int) -> str:
    """Return the German word of a number below 2,000."""
    units, tens = _GERMAN_UNITS, _GERMAN_TENS
    if number < len(units):
        return units[number]
    if number < 100:
        ten, unit = divmod(number, 10)
        return tens[ten] if unit == 0 else f"{'ein' if unit == 1 else units[unit]}und{tens[ten]}"
    hundred, rest = divmod(number, 100)
    named = "ein" if hundred == 1 else _german(hundred)
    return f"{named}hundert{_german(rest) if rest else ''}"


def _dutch(number: int) -> str:
    ten, unit = divmod(number, 10)
    link = "ën" if _UNITS["nl"].split()[unit].endswith("e") else "en"
    return f"{_UNITS['nl'].split()[unit]}{link}{_TENS['nl'].split()[ten - 2]}"


def _italian(number: int) -> str:
    ten, unit = divmod(number, 10)
    named = _TENS["it"].split()[ten - 2]
    return f"{named[:-1] if unit in {1, 8} else named}{_UNITS['it'].split()[unit]}"


def _values() -> dict[str, int]:
    found: dict[str, int] = {}
    for number, named in _OTHERS.items():
        found |= dict.fromkeys(named.split(), number)
    for units in _UNITS.values():
        found |= {word: number for number, word in enumerate(units.split())}
    for tens in _TENS.values():
        found |= {word: number * 10 for number, word in enumerate(tens.split(), start=2)}
    found |= {_german(number): number for number in range(20, 2000)}
    found |= {_german(number).removeprefix("ein"): number for number in range(100, 200)}
    for number in (each for each in range(21, 100) if each % 10):
        found |= {_dutch(number): number, _italian(number): number}
    return {word.casefold(): number for word, number in found.items()}


VALUES = _values()
"""The value of each word, by the folded word."""
AMBIGUOUS = word_set(
    "a an one ein eine einen einem einmal un une una uno um een one's second seconds first erste ersten erster premier "
    "première primero primera primo prima single once elf sei due k mil mille cent cents neuf six sex dix both pair "
    "couple "
    "twins zwillinge beide beiden segundo segunda secondo e acht quinto sto null fem arton jeden jedną одна одну одни "
    "один ett third quarter cuarto"
)
"""Words that mean something else as well: in a claim they count as no number."""
SIGNS = {
    **{char: value for value, char in enumerate("〇一二三四五六七八九")},
    **{"零": 0, "两": 2, "兩": 2, "壱": 1, "弐": 2, "参": 3},
}
SIGN_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "萬": 10_000, "億": 100_000_000, "亿": 100_000_000}
NATIVE_KOREAN = {
    **{"하나": 1, "한": 1, "둘": 2, "두": 2, "셋": 3, "세": 3, "넷": 4, "네": 4, "다섯": 5, "여섯": 6, "일곱": 7},
    **{"여덟": 8, "아홉": 9, "열": 10, "스물": 20, "스무": 20, "서른": 30, "마흔": 40, "쉰": 50},
}
JAPANESE_COUNTS = {"ひとり": 1, "ふたり": 2, "一つ": 1, "二つ": 2, "ふたつ": 2, "みっつ": 3}
