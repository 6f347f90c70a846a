"""Large pages are packed, for those who take that, each time to another length."""

import httpx

from recollect.api.inspector.packing import MOST_PADDING
from tests.service.support.running import Service

ADDRESS = "/users/me/search"


def raw_length(running: Service, encoding: str) -> tuple[int, str]:
    with httpx.stream("GET", f"{running.url}{ADDRESS}", headers={"Accept-Encoding": encoding}) as answer:
        assert answer.headers["vary"] == "Accept-Encoding"
        return sum(len(piece) for piece in answer.iter_raw()), answer.headers.get("content-encoding", "")


def test_a_large_page_is_packed_to_lengths_that_differ(offline: Service) -> None:
    plain, how = raw_length(offline, "identity")
    assert how == ""
    lengths = {raw_length(offline, "gzip") for _ in range(20)}
    assert {how for _, how in lengths} == {"gzip"}
    assert len(lengths) > 5
    assert max(length for length, _ in lengths) < plain / 2 + MOST_PADDING


def test_a_packed_page_is_read_as_it_was(offline: Service) -> None:
    with httpx.Client(base_url=offline.url) as browser:
        read = [browser.get(ADDRESS, headers={"Accept-Encoding": how}).text for how in ("identity", "gzip", "gzip")]
    assert read[1] == read[2]
    assert read[1].count("<form") == read[0].count("<form")
