"""The lifespan's objects, as dependencies of the routes.

The dependencies are coroutines, because FastAPI runs plain functions in threads, where requests would overtake each
other.
"""

from typing import Annotated

from fastapi import Depends, Request

from recollect.api.running_imports import RunningImports
from recollect.graph.resources import Services
from recollect.graph.turns import TurnRunner
from recollect.memory.index.reindexing import Reindexer
from recollect.memory.memory import Memory


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


async def _memory(request: Request) -> Memory:
    return (await _services(request)).memory


async def _turns(request: Request) -> TurnRunner:
    turns: TurnRunner = request.app.state.turns
    return turns


async def _reindexer(request: Request) -> Reindexer:
    reindexer: Reindexer = request.app.state.reindexer
    return reindexer


async def _imports(request: Request) -> RunningImports:
    imports: RunningImports = request.app.state.imports
    return imports


OpenServices = Annotated[Services, Depends(_services)]
OpenMemory = Annotated[Memory, Depends(_memory)]
OpenImports = Annotated[RunningImports, Depends(_imports)]
OpenTurns = Annotated[TurnRunner, Depends(_turns)]
OpenReindexer = Annotated[Reindexer, Depends(_reindexer)]
