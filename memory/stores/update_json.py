"""Converts an update to the JSON text in which both stores keep it, and back.

Reading skips fields of later versions and gives missing fields their defaults. Stores compare texts to detect a change,
and values where the texts differ: one version of this code writes an update as one text, also after reading it.
"""

from dataclasses import fields

import orjson
from pydantic import TypeAdapter, ValidationError

from recollect.memory.values.update import Update

_FIELDS = tuple(item.name for item in fields(Update) if item.name != "steps")
_READER = TypeAdapter(Update)


def update_to_json(update: Update) -> str:
    """Return the whole update as JSON text, without fields that are empty; times are in ISO 8601."""
    named = ((name, getattr(update, name)) for name in _FIELDS)
    given = {name: value for name, value in named if value or isinstance(value, str)}
    # pydantic would write times with a Z; a stored text that is worded otherwise looks like another update.
    return orjson.dumps({"steps": dict(update.steps), **given}).decode()


def update_from_json(text: str) -> Update:
    """Return the update that `update_to_json` wrote as `text`.

    Raises:
        ValueError: the text is no update; the error names the field and quotes nothing.
    """
    try:
        return _READER.validate_json(text)
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"])
    # Outside the handler: pydantic's own error, which quotes the text, must not reach a log with this one.
    raise ValueError(f"A stored update cannot be read: {place or 'the text'} is not as this version writes it")


def is_indexed(update: Update) -> bool:
    """Tell whether the turn's messages are in the vector index."""
    step = update.steps.get("index")
    return step is not None and step.status == "done"
