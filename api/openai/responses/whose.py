"""Names the user of routes that have no body: the key's own, `X-Memory-User`, `?user=`, or DEFAULT_USER."""

from typing import Annotated

from fastapi import Depends, Header, Query

from recollect.api.auth.caller import WhoCalls
from recollect.api.openai.identity import default_user
from recollect.api.state import OpenServices
from recollect.memory.values.errors import NotFound
from recollect.memory.values.scope import check_id


async def _whose(
    caller: WhoCalls,
    services: OpenServices,
    named: Annotated[
        str | None, Header(alias="X-Memory-User", max_length=128, description="Whose it is; as `user`.")
    ] = None,
    user: Annotated[str | None, Query(max_length=128, description="Whose it is; a user's own key needs none.")] = None,
) -> str:
    """Return the user; another's answers as if it did not exist."""
    given, field = (named, "X-Memory-User") if named is not None else (user, "user")
    if given is not None:
        check_id(field, given)
    if caller.user_id is not None and given not in (None, caller.user_id):
        raise NotFound
    return caller.acts_for(given or default_user(caller, services), field="user")


NamedUser = Annotated[str, Depends(_whose)]
"""The user whose responses and conversations a route is about."""
