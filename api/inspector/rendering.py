"""Renders templates: Jinja2 with autoescape, so that stored text is always shown as text."""

import functools
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from recollect.api.inspector.static_files import address_of

FOLDS_AFTER = 2_000
"""Characters of a text that are shown at once; the rest unfolds."""
MOST_FOLDED = 60_000
"""Characters that a page of many long texts holds of them together, shown or folded: it has at most 100 kB, packed."""
_FOLDER = Path(__file__).parent / "templates"


def render(name: str, *, status: int = 200, part: str | None = None, **values: Any) -> HTMLResponse:
    """Return a template as a response; with `part`, only its block of that name.

    `values` must name every variable that the template uses: a missing one is an error, not an empty text.
    """
    return HTMLResponse(rendered(name, part=part, **values), status)


def rendered(name: str, *, part: str | None = None, **values: Any) -> str:
    """Return a template as text; with `part`, only its block of that name. `values` are as in `render`."""
    template = environment().get_template(name)
    if part is None:
        return template.render(values)
    return "".join(template.blocks[part](template.new_context(values)))


@functools.cache
def environment() -> Environment:
    """Return the templates' environment."""
    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters, names = cast("dict[str, Any]", made.filters), cast("dict[str, Any]", made.globals)
    filters.update(moment=moment, field_time=field_time, segment=segment, number=number)
    names.update(static=address_of, folds_after=FOLDS_AFTER)
    # A global, because a part of a page is rendered without the imports at the template's top.
    names["kit"] = made.get_template("kit.html").module
    return made


def moment(time: datetime | str) -> tuple[str, str]:
    """Return a time for its `datetime` attribute, and as UTC for people."""
    at = datetime.fromisoformat(time) if isinstance(time, str) else time
    at = at.astimezone(UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z"), f"{at:%Y-%m-%d %H:%M} UTC"


def field_time(at: datetime) -> str:
    """Return a time in UTC, to the second, as the field of a form has it."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")


def share(texts: Iterable[str]) -> int | None:
    """Return how many characters of each text a page holds; None where it holds all of them."""
    lengths = [len(text) for text in texts]
    if sum(lengths) <= MOST_FOLDED:
        return None
    return max(FOLDS_AFTER, MOST_FOLDED // len(lengths))


def segment(text: str) -> str:
    """Return the text as one segment of an address: ids may hold characters that mean something there."""
    return quote(text, safe="")


def number(value: float) -> str:
    """Return a number for people: thousands apart, at most three decimals."""
    if isinstance(value, int) or value.is_integer():
        return f"{int(value):,}"
    return f"{value:,.3f}".rstrip("0").rstrip(".")
