"""The caller of a request, and the user whose memory it may touch.

`api/auth/lock.py` identifies the caller before any route runs and sets it in the request's state; routes, the OpenAI
door and MCP get the user from it. Another user's memory answers as if it did not exist.
"""

from dataclasses import field
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request

from recollect.api.schemas.requests import Id
from recollect.memory.ports.keys import EVERY
from recollect.memory.values.errors import Forbidden, InvalidRequest, NotFound, Problem
from recollect.memory.values.filtering.filter import Filter, of_agent
from recollect.memory.values.frozen import frozen


@frozen
class Caller:
    """An authenticated caller.

    `user_id`: the one user that it may act for; None: any, or with `user_prefix` (a tenant's) those whose ids begin so.
    `agent_id`: the agent whose label it writes and filters by; None: no label of its own. `name` tells callers apart in
    rate limits and erasure receipts: a key's id, or a hash; never a secret. `key_id` and `ends_at` (UTC) tell what ends
    a session: the key that was shown, the end of the token.
    """

    name: str
    user_id: str | None = None
    is_admin: bool = False
    key_id: str | None = field(default=None, compare=False)
    ends_at: datetime | None = field(default=None, compare=False)
    user_prefix: str | None = None
    agent_id: str | None = None

    @property
    def bound(self) -> str | None:
        """The user, or the tenant's users, that it is bound to, as roles and sessions name them: `ada`, `acme:*`."""
        return self.user_id if self.user_prefix is None else f"{self.user_prefix}{EVERY}"

    def may_act_for(self, user_id: str) -> bool:
        """Tell whether it may act for this user."""
        return self.user_id in (None, user_id) and user_id.startswith(self.user_prefix or "")

    def acts_for(self, given: str | None, *, field: str = "user_id") -> str:
        """Return the user of this call: `given`, or the bound caller's own user where it is None.

        Raises:
            NotFound: it is another user's.
            InvalidRequest: nobody is named; `field` is what names them.
        """
        if given is None and self.user_id is None:
            raise InvalidRequest(f"The request is not valid: see {field}.", problems=[Problem(field, "is missing")])
        if given is not None and not self.may_act_for(given):
            raise NotFound
        return self.user_id or given or ""

    def label(self, given: str | None = None, *, field: str = "agent_id") -> str | None:
        """Return the agent's label of what the call writes: `given`, or that of the caller's own agent.

        Raises:
            InvalidRequest: the caller is bound to another agent.
        """
        if self.agent_id is not None and given not in (None, self.agent_id):
            problem = Problem(field, "must be left out, or name the key's own agent")
            raise InvalidRequest(f"The request is not valid: see {field}.", problems=[problem])
        return self.agent_id or given

    def narrowed(self, asked: Filter | None) -> Filter | None:
        """Return the filter of what the call may see: `asked`, within the label of the caller's own agent."""
        return asked if self.agent_id is None else of_agent(self.agent_id, asked)

    def options(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return a turn's memory options, within the label of the caller's own agent."""
        return given if self.agent_id is None else {**given, "agent_id": self.agent_id}

    def check_label(self, agent_id: str | None) -> None:
        """Raise NotFound for a thing with this label, if the caller is bound to another agent.

        Raises:
            NotFound: it does not see it.
        """
        if self.agent_id not in (None, agent_id):
            raise NotFound

    def check_admin(self) -> None:
        """Raise Forbidden unless the caller is an administrator.

        Raises:
            Forbidden: it is none.
        """
        if not self.is_admin:
            raise Forbidden


ANYBODY = Caller("anybody", is_admin=True)
"""The caller without AUTH: nobody proves who they are, and only this machine may call, as the administrator."""
OWNER = Caller("owner", is_admin=True)
"""The caller that can read the lock file of DATA_DIR, on its machine."""
NOBODY = Caller("nobody", user_id="")
"""The caller of what is open to all; it may act for no user."""


def bound_caller(
    name: str,
    bound: str | None,
    *,
    is_admin: bool = False,
    key_id: str | None = None,
    ends_at: datetime | None = None,
    agent_id: str | None = None,
) -> Caller:
    """Return the caller that is bound as `Caller.bound` says it."""
    is_tenant = bound is not None and bound.endswith(EVERY)
    return Caller(
        name,
        None if is_tenant else bound,
        # A key of an earlier version may be both: what it administers is not its agent's alone.
        is_admin and agent_id is None,
        key_id,
        ends_at,
        user_prefix=bound.removesuffix(EVERY) if bound is not None and is_tenant else None,
        agent_id=agent_id,
    )


def caller_of(state: Any) -> Caller:
    """Return the caller that the lock set in a request's state."""
    caller: Caller = state.caller
    return caller


async def _caller(request: Request) -> Caller:
    return caller_of(request.state)


WhoCalls = Annotated[Caller, Depends(_caller)]


async def _user_in_query(
    caller: WhoCalls,
    user_id: Annotated[Id | None, Query(description="Whose it is; a key of one user's own may leave it out.")] = None,
) -> str:
    return caller.acts_for(user_id)


async def user_in_path(caller: WhoCalls, user_id: Annotated[Id, Path()]) -> str:
    """Return the user in the path, as a dependency."""
    return caller.acts_for(user_id)


async def _admin(caller: WhoCalls) -> None:
    caller.check_admin()


async def _admin_to_write(request: Request, caller: WhoCalls) -> None:
    if request.method != "GET":
        caller.check_admin()


UserId = Annotated[str, Depends(_user_in_query)]
"""The user of the path's thread or turn: `?user_id=`."""
PathUser = Annotated[str, Depends(user_in_path)]
"""The user in the path."""
ADMIN_ONLY = Depends(_admin)
ADMIN_WRITES = Depends(_admin_to_write)
"""The dependency of routes that everybody may read and administrators may write."""
