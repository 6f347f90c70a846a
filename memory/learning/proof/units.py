"""Units: converts amounts, so that "6 feet" is 183 cm and "two weeks" are 14 days. Pure."""

import re
from collections.abc import Iterator

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.learning.proof.number_words import AMBIGUOUS, VALUES
from recollect.memory.learning.proof.numbers import ascii_digits

_UNITS = {
    "length": {
        0.001: "mm millimetre millimetres millimeter millimeters",
        0.01: "cm centimetre centimetres centimeter centimeters zentimeter centimètres centímetros",
        1: "m metre metres meter meters mètre mètres metro metros metri метр метра метров",
        1000: "km kilometre kilometres kilometer kilometers kilomètres kilómetros chilometri км",
        0.0254: "in inch inches zoll",
        0.3048: "ft foot feet fuß pieds pies",
        0.9144: "yd yard yards",
        1609.344: "mi mile miles meilen millas",
    },
    "mass": {
        0.000001: "\u00b5g mcg microgram micrograms",
        0.001: "mg milligram milligrams milligramm milligrammes",
        1: "g gram grams gramm grammes gramos",
        1000: "kg kilo kilos kilogram kilograms kilogramm kilogrammes kilogramos кг",
        28.3495: "oz ounce ounces",
        453.592: "lb lbs pound pounds pfund",
        6350.29: "st stone stones",
        1_000_000: "t ton tons tonne tonnes tonnen",
    },
    "volume": {
        0.001: "ml millilitre millilitres milliliter",
        0.01: "cl",
        1: "l litre litres liter liters litros",
        0.473: "pint pints",
        3.785: "gallon gallons",
    },
    "time": {
        1 / 60: "s sec second seconds sekunden secondes segundos",
        1: "min minute minutes minuten minutos минут",
        60: "h hr hrs hour hours stunde stunden heure heures hora horas часа часов",
        1440: "day days tag tage tagen jour jours día días дня дней 日 天",
        10080: "week weeks woche wochen semaine semaines semana semanas недели недель 週 周 星期",
        43830: "month months monat monate monaten mois mes meses месяца месяцев 月 ヶ月 个月",
        525960: "year years jahr jahre jahren ans année années año años года лет 年",
        5259600: "decade decades jahrzehnt",
    },
    "amount": {
        1: "times mal fois veces percent % prozent",
        1000: "k thousand tausend tsd mille mil",
        1_000_000: "m million millions mio millionen millones",
        12: "dozen dutzend",
        0.5: "half halb halbe halbes halben demi medio",
    },
}
_BY_NAME: dict[str, list[tuple[str, float]]] = {}
for _kind, _factors in _UNITS.items():
    for _factor, _names in _factors.items():
        for _name in _names.split():
            _BY_NAME.setdefault(_name, []).append((_kind, _factor))
_AMOUNT = late_pattern(
    r"(?:(?P<number>\d+(?:[.,]\d+)?)[\s-]?|(?<!\w)(?P<word>[^\W\d_]+)[\s-](?:(?:an?|eine[nms]?|une?)\s)?)"
    rf"(?P<unit>{'|'.join(sorted(map(re.escape, _BY_NAME), key=len, reverse=True))})(?!\w)"
    r"(?:(?<=m)\s?(?P<more>\d{2})(?!\w))?"
)
_FEET_AND_INCHES = late_pattern(r"(?<!\d)(?P<feet>[1-9])\s?['\u2032]\s?(?P<inches>1[01]|\d)(?!\d)")
_HALVES = late_pattern(r"half|halbe?[nrms]?|demi|medio|media")
_NEAR = 0.02
_MOST = 40


def amounts(text: str) -> list[tuple[str, float, str]]:
    """Return the first amounts of a folded text: (kind, amount in the kind's base unit, the number as written)."""
    plain = ascii_digits(text)
    found = list[tuple[str, float, str]]()
    for feet in _FEET_AND_INCHES.finditer(plain):
        found.append(("length", int(feet["feet"]) * 0.3048 + int(feet["inches"]) * 0.0254, feet["feet"]))
    last_end = -1
    for match in _AMOUNT.finditer(plain):
        written = match["number"] or match["word"]
        number = _value(written)
        if number is None:
            continue
        is_next = 0 <= match.start() - last_end <= len(" and ")
        before = found[-len(_UNITS) :] if is_next else []
        for kind, factor in _BY_NAME[match["unit"]]:
            amount = number * factor
            found += [(kind, amount + other, written) for other_kind, other, _ in before if other_kind == kind]
            found.append((kind, amount, written))
            if match["more"] and factor == 1:
                found.append((kind, amount + int(match["more"]) / 100, match["more"]))
        last_end = match.end()
        if len(found) > _MOST:
            break
    return found


def converted_numbers(claim: str, said: str) -> Iterator[str]:
    """Yield the numbers of a folded claim that say an amount of `said` in another unit, within 2 %."""
    known = amounts(said)
    if not known:
        return
    for kind, amount, number in amounts(claim):
        if any(other == kind and abs(amount - more) <= _NEAR * abs(more) for other, more, _ in known):
            yield number


def _value(written: str) -> float | None:
    if written[0].isdigit():
        return float(written.replace(",", "."))
    if _HALVES.fullmatch(written):
        return 0.5
    value = VALUES.get(written)
    return None if value is None or (written in AMBIGUOUS and value != 1) else float(value)
