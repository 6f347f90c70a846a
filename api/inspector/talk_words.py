"""The words of a person on the page "Talk", and the turn that they ask for."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from recollect.api.schemas.requests import Id, MemoryOptions
from recollect.graph.running_turn import TurnRequest
from recollect.memory.memory import Memory
from recollect.memory.values.scope import Scope

UNREMEMBERED = "unremembered"
"""The key in a message's metadata which says that its turn runs without memory, when it is sent again too."""


class Words(BaseModel):
    """One message as the page sends it. The page made `turn_id`, so that sending it again is safe.

    An empty `message` asks for the stored turn again, which has no reply yet.
    """

    model_config = ConfigDict(extra="ignore")

    thread_id: Id
    turn_id: Id
    message: Annotated[str, Field(strict=True)] = ""
    unremembered: bool = False

    def without_returns(self) -> Self:
        """Return the words with line ends as they were typed: browsers send a form's as CR LF."""
        return self.model_copy(update={"message": self.message.replace("\r\n", "\n")})


async def turn_request(memory: Memory, user_id: str, words: Words, *, wants_tokens: bool = False) -> TurnRequest:
    """Return the turn that the words ask for."""
    thread_id, message, is_unremembered = words.thread_id, words.message, words.unremembered
    stored = None if message else await memory.find_turn(user_id=user_id, turn_id=words.turn_id)
    if stored is not None:
        thread_id, message = stored.message.thread_id, stored.message.content
        is_unremembered = bool(stored.message.metadata.get(UNREMEMBERED))
    return TurnRequest(
        scope=Scope(user_id, thread_id),
        message=message,
        turn_id=words.turn_id,
        metadata={UNREMEMBERED: True} if is_unremembered else {},
        options=MemoryOptions.model_validate({"enabled": not is_unremembered}).model_dump(),
        wants_tokens=wants_tokens,
    )
