"""Addresses and codes of a claim: URLs, e-mail addresses, handles, IBANs, serial numbers. Pure.

White space, and the signs between the groups of an IBAN, are ignored, because people write them in many ways.
"""

from collections.abc import Iterator

from recollect.memory.language.late_pattern import late_pattern

_ADDRESS = late_pattern(
    r"[a-z][a-z0-9+.-]{1,20}://\S+|\bwww\.\S+|(?<![^\s@<>()])[^\s@<>()]+@[^\s@<>()]+|(?<![\w@])@\w[\w.]+"
    r"|(?<![\w.\u3002\uff0e-])[\w-]{2,}(?:[.\u3002\uff0e][\w-]+)*[.\u3002\uff0e][^\W\d_]{2,24}(?:[/:?#]\S*)?(?![\w.])"
    r"|(?<![\w-])[\w-]+(?:\s?[\[({]\s?(?:dot|punkt|point|punto|\.|at|@)\s?[\])}]\s?[\w-]+| dot [a-z]{2,10}\b)"
)
_IBAN = late_pattern(r"(?<![a-z0-9])[a-z]{2}\d{2}(?:[ -]?[a-z0-9]{4}){2,7}(?:[ -]?[a-z0-9]{1,4})?(?![a-z0-9])")
_CODE = late_pattern(r"(?<![\w-])[a-z0-9]+(?:-[a-z0-9]+)*(?![\w-])")
_MEASURED = late_pattern(r"\d+(?:[a-z]{1,4}|\u00b5g)")
_CLOSING = ".,;:!?'\u3002)]}>\u2026"
_DIGIT, _LETTER = late_pattern(r"\d"), late_pattern(r"[a-z]")
_SPACES = late_pattern(r"\s+")
_NO_SIGNS = late_pattern(r"[\W_]+")


def claimed_addresses(claim: str) -> Iterator[str]:
    """Yield the addresses and codes of a folded claim. Leave out a number with its unit ("5mg")."""
    for pattern in (_ADDRESS, _IBAN):
        for found in pattern.finditer(claim):
            yield found[0]
    for found in _CODE.finditer(claim):
        if _DIGIT.search(found[0]) and _LETTER.search(found[0]) and not _MEASURED.fullmatch(found[0]):
            yield found[0]


def says_address(said: str, address: str) -> bool:
    """Tell whether the folded text `said` holds the address, with any spaces."""
    return _squeezed(address.strip(_CLOSING)) in _squeezed(said) or (
        _IBAN.fullmatch(address) is not None and _NO_SIGNS.sub("", address) in _NO_SIGNS.sub("", said)
    )


def _squeezed(text: str) -> str:
    return _SPACES.sub("", text)
