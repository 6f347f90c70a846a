"""Wanted keys: a JSON schema's properties limit which keys are learned, and which values they take. Pure.

A fact's value is text: "42" is an integer, "yes" a boolean. A property's schema may use `type` (string, number,
integer, boolean), `enum`, `const`, `pattern`, `minimum`, `maximum` and `description`; the rest is ignored.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from recollect.memory.facts.wording import clean_excerpt
from recollect.memory.values.decision import Proposal, RefusedProposal
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.fact import Fact, is_key
from recollect.memory.values.frozen import frozen

_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}
_TYPES = frozenset({"string", "number", "integer", "boolean"})
_MOST_MATCHED_CHARACTERS = 1_000


@frozen
class WantedKey:
    """Describes one property, and checks its values."""

    description: str = ""
    type: str = "string"
    choices: tuple[Any, ...] | None = None
    pattern: re.Pattern[str] | None = None
    minimum: float = -math.inf
    maximum: float = math.inf

    def problem(self, value: str) -> str | None:
        """Return why `value` is not allowed, or None if it is."""
        read = self._read(value.strip())
        if read is None:
            return f"its value is no {self.type}"
        if self.choices is not None and read not in self.choices:
            return "its value is none of those that are wanted"
        if self.pattern is not None and not self.pattern.search(value[:_MOST_MATCHED_CHARACTERS]):
            return "its value has not the wanted form"
        if not isinstance(read, str | bool) and not self.minimum <= read <= self.maximum:
            return "its value is not in the wanted range"
        return None

    def _read(self, value: str) -> str | bool | float | None:
        if self.type == "string":
            return value
        if self.type == "boolean":
            return _BOOLEANS.get(value.casefold())
        try:
            number = float(value)
        except ValueError:
            return None
        whole = math.isfinite(number) and (self.type == "number" or number.is_integer())
        return number if whole else None


@frozen
class WantedKeys:
    """Holds the keys that are learned, in the schema's order."""

    keys: Mapping[str, WantedKey]

    @classmethod
    def from_schema(cls, schema: object) -> "WantedKeys":
        """Read the keys from a parsed JSON schema.

        Raises:
            ConfigurationError: it is no schema of an object whose properties can be keys; the message says why.
        """
        if not isinstance(schema, Mapping):
            raise _problem("it must be a JSON object")
        found = cast("Mapping[str, Any]", schema)
        properties = found.get("properties")
        if found.get("type", "object") != "object" or not isinstance(properties, Mapping) or not properties:
            raise _problem('it must have "type": "object" and at least one property under "properties"')
        named = cast("Mapping[str, Any]", properties)
        for key, wanted in named.items():
            if not is_key(key):
                raise _problem(f"the property {key[:80]!r} is no key of the form [a-z][a-z0-9_]{{0,63}}")
            if not isinstance(wanted, Mapping):
                raise _problem(f"the property {key} must be a JSON object")
        return cls({key: _wanted(key, wanted) for key, wanted in named.items()})

    def described(self) -> str:
        """Describe the keys for the model, a line each."""
        return "\n".join(f"- {key}{_described(wanted)}" for key, wanted in self.keys.items())

    def sift(
        self, proposals: Sequence[Proposal], known: Sequence[Fact]
    ) -> tuple[list[Proposal], list[RefusedProposal]]:
        """Return the proposals that may be learned, and the refused ones. Never refuse a delete."""
        wanted: list[Proposal] = []
        refused: list[RefusedProposal] = []
        for proposal in proposals:
            problem = self._problem(proposal, known)
            if problem is None:
                wanted.append(proposal)
            else:
                refused.append(_refused(proposal, problem))
        return wanted, refused

    def _problem(self, proposal: Proposal, known: Sequence[Fact]) -> str | None:
        if proposal.decision == "delete":
            return None
        key = proposal.key
        if key is None and proposal.decision != "add" and proposal.shown is not None:
            key = known[proposal.shown - 1].key if 1 <= proposal.shown <= len(known) else None
        if key is None:
            return "only facts with a wanted key are learned"
        if key not in self.keys:
            return "its key is not among those that are wanted"
        return self.keys[key].problem(proposal.value) if proposal.value else None


def _problem(text: str) -> ConfigurationError:
    return ConfigurationError(f"EXTRACTION_SCHEMA_FILE holds no schema that can be used: {text}.")


def _wanted(key: str, schema: Mapping[str, Any]) -> WantedKey:
    given = schema.get("type", "string")
    named = cast("list[object]", given) if isinstance(given, list) else [given]
    types = [name for name in named if name != "null"]
    if len(types) != 1 or str(types[0]) not in _TYPES:
        raise _problem(f"the type of the property {key} must be one of {', '.join(sorted(_TYPES))}")
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if choices is not None and not isinstance(choices, list):
        raise _problem(f"the enum of the property {key} must be a list")
    return WantedKey(
        description=str(schema.get("description", ""))[:500],
        type=str(types[0]),
        choices=None if choices is None else tuple(cast("list[Any]", choices)),
        pattern=_pattern(key, schema.get("pattern")),
        minimum=_number(key, schema.get("minimum"), -math.inf),
        maximum=_number(key, schema.get("maximum"), math.inf),
    )


def _pattern(key: str, pattern: object) -> re.Pattern[str] | None:
    if pattern is None:
        return None
    try:
        return re.compile(str(pattern))
    except re.error as error:
        raise _problem(f"the pattern of the property {key} is no regular expression: {error}") from None


def _number(key: str, value: object, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _problem(f"the range of the property {key} must be numbers")
    return float(value)


def _described(wanted: WantedKey) -> str:
    form = wanted.type if wanted.choices is None else " | ".join(str(choice) for choice in wanted.choices)
    return f" ({form}): {wanted.description}" if wanted.description else f" ({form})"


def _refused(proposal: Proposal, reason: str) -> RefusedProposal:
    return RefusedProposal(
        decision=proposal.decision,
        fact_id=None,
        key=clean_excerpt(proposal.key),
        value=clean_excerpt(proposal.value if proposal.value is not None else proposal.statement),
        evidence=clean_excerpt(proposal.evidence) or "",
        reason=reason,
    )
