"""The addresses of the room: the user's own facts under `/facts`, the global ones under `/facts/global`."""

from fastapi import APIRouter

from recollect.api.inspector.known import acts, erasing, forms, lists, reviews
from recollect.api.inspector.known.owned import GLOBAL

LIST = "/users/{user_id}/facts"
router = APIRouter()

router.include_router(lists.router, prefix=LIST)
for place in (f"{LIST}/{GLOBAL}", LIST):
    # A form's address comes before those that begin with a fact's id.
    for verbs in (forms.verbs, acts.verbs, reviews.verbs, lists.verbs):
        router.include_router(verbs, prefix=place)
router.include_router(erasing.router)
