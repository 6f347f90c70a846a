"""Tells whose memory a request of OpenAI's clients means, and which thread: fields first, then headers."""

from typing import Any

from recollect.api.auth.caller import Caller
from recollect.api.auth.lock import ANYBODY
from recollect.api.openai.callers import wrong
from recollect.api.openai.memory_fields import MemoryFields, MemoryHeaders
from recollect.api.openai.messages import ClientMessages
from recollect.graph.resources import Services
from recollect.memory.values.scope import check_id

CHORE = "### Task:"
"""What Open WebUI's own requests begin with."""


def user_of_request(caller: Caller, given: Any, headers: MemoryHeaders, services: Services) -> str:
    """Return the caller's own user; else `given`, the body's `user`; else the headers' one; else DEFAULT_USER.

    Raises:
        InvalidRequest: nobody is named, or the name is no id.
        NotFound: it is another tenant's user.
    """
    if caller.user_id is not None:
        return caller.user_id
    named = {
        "user": given,
        "X-Memory-User": headers.user,
        "X-OpenWebUI-User-Id": headers.frontend_user if services.trusts_frontends else None,
    }
    for field, name in named.items():
        if name is not None and not isinstance(name, str):
            raise wrong(field, "must be a string")
        if name is not None:
            return caller.acts_for(check_id(field, name))
    default = default_user(caller, services)
    if default is None:
        raise wrong("user", "is missing; name whose memory it is there or in X-Memory-User")
    return default


def default_user(caller: Caller, services: Services) -> str | None:
    """Return DEFAULT_USER for a caller without a key: a service's or an administrator's key has no user of its own."""
    return services.default_user if caller == ANYBODY else None


def thread_of(body: MemoryFields, headers: MemoryHeaders, services: Services) -> str | None:
    """Return the thread that the body names; else the one of the headers; None without any.

    Raises:
        InvalidRequest: a front end's header is no id.
    """
    if body.memory_id is not None or headers.memory_id is not None:
        return body.memory_id if body.memory_id is not None else headers.memory_id
    if headers.frontend_chat is None or not services.trusts_frontends:
        return None
    return check_id("X-OpenWebUI-Chat-Id", headers.frontend_chat)


def is_chore(messages: ClientMessages, headers: MemoryHeaders, services: Services) -> bool:
    """Tell whether a front end asks for itself (a title, tags, …), and not its user: by its only message."""
    is_frontends = services.trusts_frontends and (headers.frontend_user or headers.frontend_chat) is not None
    return is_frontends and not messages.history and not messages.rounds and messages.message.startswith(CHORE)
