"""Whose facts an address names: the user's own, or the global ones that the user sees too."""

from typing import Annotated

from fastapi import Depends, Path, Request

from recollect.api.auth.caller import PathUser, WhoCalls
from recollect.api.inspector.rendering import segment
from recollect.api.schemas.requests import Id
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import GLOBAL_USER

GLOBAL = "global"
"""The part of an address that stands before a global fact's id."""


@frozen
class Owned:
    """The facts of `owner`, as a page of `user_id` shows them. Who `may_write` sees forms and buttons too."""

    user_id: str
    owner: str
    may_write: bool

    @property
    def list(self) -> str:
        """The address of the user's list, which has the global facts too."""
        return f"/users/{segment(self.user_id)}/facts"

    @property
    def is_global(self) -> bool:
        """Whether these facts are everybody's."""
        return self.owner == GLOBAL_USER

    @property
    def address(self) -> str:
        """The address that a fact's id follows."""
        return f"{self.list}/{GLOBAL}" if self.is_global else self.list

    def fact(self, fact_id: str) -> str:
        """Return the address of a fact's page."""
        return f"{self.address}/{segment(fact_id)}"


async def _seen(request: Request, user_id: PathUser, caller: WhoCalls) -> Owned:
    is_global = request.url.path.split("/")[4:5] == [GLOBAL]  # /users/{user_id}/facts/global
    return facts_owned_by(user_id, is_global=is_global, is_admin=caller.is_admin)


async def _writable(owned: Annotated[Owned, Depends(_seen)], caller: WhoCalls) -> Owned:
    """Return the facts to a caller who may change them.

    Raises:
        Forbidden: they are global, and the caller is no administrator.
    """
    if not owned.may_write:
        caller.check_admin()
    return owned


def facts_owned_by(user_id: str, *, is_global: bool, is_admin: bool) -> Owned:
    """Return the user's own facts, or the global ones, which administrators write."""
    return Owned(user_id, GLOBAL_USER if is_global else user_id, may_write=is_admin or not is_global)


Seen = Annotated[Owned, Depends(_seen)]
Writable = Annotated[Owned, Depends(_writable)]
FactId = Annotated[Id, Path()]
