"""What the lifespan opened, as dependencies of the routes.

They are coroutines, because FastAPI runs plain functions in threads: requests would overtake each other there.
"""

from typing import Annotated

from fastapi import Depends, Request

from graph.resources import Services
from graph.turns import Turns
from memory.memory import Memory
from memory.reindexing import Reindexer


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


async def _memory(request: Request) -> Memory:
    return (await _services(request)).memory


async def _turns(request: Request) -> Turns:
    turns: Turns = request.app.state.turns
    return turns


async def _reindexer(request: Request) -> Reindexer:
    reindexer: Reindexer = request.app.state.reindexer
    return reindexer


OpenServices = Annotated[Services, Depends(_services)]
OpenMemory = Annotated[Memory, Depends(_memory)]
OpenTurns = Annotated[Turns, Depends(_turns)]
OpenReindexer = Annotated[Reindexer, Depends(_reindexer)]
