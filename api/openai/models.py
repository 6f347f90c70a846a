"""`/v1/models`: the models that a request may name."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse

from recollect.api.openai.answers import ModelAnswer, ModelsAnswer, model, model_list
from recollect.api.openai.callers import callers_key, with_callers_key
from recollect.api.openai_errors import RESPONSES
from recollect.api.state import OpenServices
from recollect.graph.resources import Services
from recollect.memory.values.errors import ModelUnavailable, UnknownModel

router = APIRouter(prefix="/v1", tags=["openai"])


@router.get(
    "/models",
    response_model=None,
    summary="The models that a request may name",
    description="What the provider lists, CHAT_MODEL first; that one alone where the provider cannot be asked.",
    responses={200: {"model": ModelsAnswer}, **RESPONSES},
)
async def get_models(request: Request, services: OpenServices) -> JSONResponse:
    """Return the list of models, which is fetched again after a minute."""
    return JSONResponse(model_list(await _listed(request, services)))


@router.get(
    "/models/{model_id:path}",
    response_model=None,
    summary="One model",
    responses={200: {"model": ModelAnswer}, **RESPONSES},
)
async def get_model(
    model_id: Annotated[str, Path(description="Its name, which may hold slashes.")],
    request: Request,
    services: OpenServices,
) -> JSONResponse:
    """404 model_not_found where the list has no such name."""
    if model_id not in await _listed(request, services):
        raise UnknownModel
    return JSONResponse(model(model_id))


async def _listed(request: Request, services: Services) -> list[str]:
    chat = services.memory.chat
    api_key = callers_key(request, services)
    try:
        return list(await chat.models(api_key=api_key))
    except ModelUnavailable as error:
        if api_key and error.status in {401, 403}:
            raise with_callers_key(error) from error
        return [chat.name]
