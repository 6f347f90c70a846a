"""Reads what a caller chooses for one turn: another chat model, further instructions, parameters of the model."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, cast

from recollect.memory.options.option_rules import Rule, between, text, whole
from recollect.memory.ports.chat_model import ChatModel
from recollect.memory.values.errors import InvalidRequest, ModelUnavailable, Problem
from recollect.memory.values.frozen import frozen

MOST_MODEL_CHARACTERS = 200
MOST_INSTRUCTIONS_CHARACTERS = 20_000
MOST_TOKENS = 1_000_000
MOST_STOPS, MOST_STOP_CHARACTERS = 16, 200
MOST_BIASES = 300
MOST_SEED = 2**53
REFUSED = frozenset({400, 404, 413, 422})
"""The statuses by which a provider refuses a request for what it says."""


@frozen
class ModelChoice:
    """A caller's choice; None, or no parameters, where the configuration decides. `parameters` have OpenAI's names."""

    model: str | None = None
    instructions: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of what was chosen."""
        chosen = {"model": self.model, "instructions": self.instructions, "parameters": self.parameters}
        return tuple(name for name, value in chosen.items() if value)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"model": self.model, "instructions": self.instructions, "parameters": dict(self.parameters)}

    def refused_by(self, error: ModelUnavailable) -> InvalidRequest | None:
        """Return the caller's error where the provider has refused the request (`error`) for what it says."""
        if error.status not in REFUSED or not self.names:
            return None
        problems = [Problem(name, "may be what the model's provider refused") for name in self.names]
        return InvalidRequest(
            f"The model's provider refused the request ({error.status}); check {', '.join(self.names)}.",
            problems=problems,
        )


def read_choice(*, model: Any = None, instructions: Any = None, parameters: Any = None) -> ModelChoice:
    """Return the choice that these values make; None stands for what is not chosen.

    Raises:
        InvalidRequest: names each field (`parameters.top_p`) that is unknown or out of its range.
    """
    given = {"model": model, "instructions": instructions}
    told = [(name, _TEXTS[name](value)) for name, value in given.items() if value is not None]
    known: Mapping[Any, Any] = {}
    if isinstance(parameters, Mapping):
        known = cast("Mapping[Any, Any]", parameters)
        told += [(f"parameters.{name}", _parameter_problem(name, value)) for name, value in known.items()]
    elif parameters is not None:
        told.append(("parameters", "must be an object"))
    problems = [Problem(name, problem) for name, problem in told if problem is not None]
    if problems:
        raise InvalidRequest(f"The request is not valid: see {problems[0].field}.", problems=problems)
    return ModelChoice(model, instructions, {name: value for name, value in known.items() if value is not None})


async def check_choice(chat: ChatModel, choice: ModelChoice) -> None:
    """Check that the chat model's provider lists the chosen model, if it keeps a list, and knows the parameters.

    Raises:
        InvalidRequest: names each field that it does not know.
        ModelUnavailable: the provider cannot be asked.
    """
    unknown = chat.unknown_parameters(choice.parameters)
    problems = [Problem(f"parameters.{name}", "is none that the model's provider takes") for name in unknown]
    if choice.model not in {None, chat.name}:
        listed = await chat.models()
        # A list of the configured model alone is none: then the provider itself says what it knows.
        if choice.model not in listed and set(listed) != {chat.name}:
            problems.append(Problem("model", "is none that the provider lists; see GET /v1/models"))
    if problems:
        raise InvalidRequest(f"The request is not valid: see {problems[0].field}.", problems=problems)


def _parameter_problem(name: Any, value: Any) -> str | None:
    rule = PARAMETERS.get(name)
    if rule is None:
        return "is not a known parameter"
    return None if value is None else rule(value)


def _stop(value: Any) -> str | None:
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    rule = text(MOST_STOP_CHARACTERS)
    fits = 1 <= len(items) <= MOST_STOPS and all(rule(item) is None for item in items)
    return None if fits else f"must be a text or 1 to {MOST_STOPS} texts, of 1 to {MOST_STOP_CHARACTERS} characters"


def _biases(value: Any) -> str | None:
    items = cast("Mapping[Any, Any]", value) if isinstance(value, Mapping) else None
    rule = between(-100, 100)
    fits = items is not None and len(items) <= MOST_BIASES and all(_is_token(name) for name in items)
    if fits and items is not None and all(rule(bias) is None for bias in items.values()):
        return None
    return f"must be an object of at most {MOST_BIASES} numbers from -100 to 100, each under a token's number"


def _is_token(name: Any) -> bool:
    return isinstance(name, str) and name.isascii() and name.isdigit() and len(name) <= 10


_TEXTS: Mapping[str, Rule] = {"model": text(MOST_MODEL_CHARACTERS), "instructions": text(MOST_INSTRUCTIONS_CHARACTERS)}
PARAMETERS: Mapping[str, Rule] = {
    "temperature": between(0, 2),
    "top_p": between(0, 1),
    "top_k": whole(1, 1_000),
    "min_p": between(0, 1),
    "max_tokens": whole(1, MOST_TOKENS),
    "max_completion_tokens": whole(1, MOST_TOKENS),
    "stop": _stop,
    "seed": whole(-MOST_SEED, MOST_SEED),
    "presence_penalty": between(-2, 2),
    "frequency_penalty": between(-2, 2),
    "repetition_penalty": between(0, 10),
    "logit_bias": _biases,
    "reasoning_effort": text(64),
}
"""The parameters that a caller may choose, with their rules: none of them names messages, tools, a server or a key."""
