"""The page "What is known", without JavaScript."""

import re
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.facts_of import FactsOf
from tests.service.support.lessons import add, teach
from tests.service.support.locked import bearer, made_key, owner_token
from tests.service.support.running import Service, model_settings, service
from tests.service.support.visitor import Visitor, token_in

HOSTILE = '<script>alert(1)</script>{{7*7}}"><img src=x onerror=alert(1)>\u202egnal\u0301\u0301\u0301' + "W" * 400
MESSAGE = "I live in Oslo. <b>Bold</b> words"
FIELD = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')


@pytest.fixture
def visitor(offline: Service) -> Iterator[Visitor]:
    with Visitor(offline) as visitor:
        yield visitor


@pytest.fixture
def ada(offline: Service, user: str) -> FactsOf:
    return FactsOf(offline, user)


def home(user: str | None) -> str:
    return f"/users/{user}/facts"


def field(page: str, name: str) -> str:
    """Return the value that a hidden field has in all of the page's own forms."""
    (value,) = {unescape(value) for found, value in FIELD.findall(page) if found == name}
    return value


def proposal(visitor: Visitor, fact_id: str) -> dict[str, Any]:
    """Return what the forms of the user ada's proposed fact send, as its page shows them."""
    page = visitor.page(f"{home('ada')}/{fact_id}")
    return {name: field(page, name) for name in ("version", "seen", "seen_replaced")}


def sent_form(visitor: Visitor, address: str, **changes: str) -> httpx.Response:
    """Send the form at an address as a browser would, with `changes`."""
    page = visitor.page(address)
    inputs = re.findall(r'<input id="(\w+)" name="\w+"[^>]*? value="([^"]*)"', page)
    areas = re.findall(r'<textarea id="(\w+)"[^>]*>\n([^<]*)</textarea>', page)
    fields = {name: unescape(value) for name, value in [*inputs, *areas] if name != "user"}
    sent: dict[str, Any] = {**fields, "version": field(page, "version"), **changes}
    return visitor.post(address, **sent)


def test_an_empty_page_says_what_to_do(visitor: Visitor, user: str) -> None:
    page = visitor.page(home(user))
    assert "Nothing is known yet." in page
    assert "Tell the agent something in Talk, or add a fact yourself." in page
    for kind in ("keyed", "notes", "thread", "global"):
        assert 'class="empty"' in visitor.page(f"{home(user)}?kind={kind}")
    assert "No fact fits." in visitor.page(f"{home(user)}?text=x")


def test_facts_are_added_and_listed_by_kind(visitor: Visitor, ada: FactsOf) -> None:
    new = f"{home(ada.user)}/new"
    added = sent_form(visitor, new, key="city", value="Oslo", tags="home\r\nplace", pinned="true")
    (city,) = ada.items()
    assert (added.status_code, added.headers["location"]) == (303, f"{home(ada.user)}/{city['id']}")
    assert (city["value"], city["tags"], city["pinned"]) == ("Oslo", ["home", "place"], True)
    sent_form(visitor, new, value="Likes tea.")
    sent_form(visitor, new, key="mood", value="curious", thread_id="t-1")
    shown = {kind: visitor.page(f"{home(ada.user)}?kind={kind}") for kind in ("", "keyed", "notes", "thread")}
    assert {kind: ["Oslo" in page, "Likes tea." in page, "curious" in page] for kind, page in shown.items()} == {
        "": [True, True, False],
        "keyed": [True, False, False],
        "notes": [False, True, False],
        "thread": [False, False, True],
    }
    assert f'href="/users/{ada.user}/threads/t-1"' in shown["thread"]


def test_a_field_that_cannot_be_stored_is_named_and_the_words_stay(visitor: Visitor, ada: FactsOf) -> None:
    refused = sent_form(visitor, f"{home(ada.user)}/new", key="No Key", value="</textarea><b>", importance="2")
    assert refused.status_code == 422
    assert "must be of the form" in refused.text
    assert "&lt;/textarea&gt;&lt;b&gt;</textarea>" in refused.text
    refused = sent_form(visitor, f"{home(ada.user)}/new", value="x", importance="2", valid_from="soon", tags="a" * 65)
    assert "must be a time such as" in refused.text
    assert 'value="2"' in refused.text
    assert 'value="soon"' in refused.text
    assert ada.items() == []


@pytest.mark.parametrize("size", [100_001, 1_100_000])
def test_words_that_are_too_many_come_back_with_the_apis_sentence(visitor: Visitor, ada: FactsOf, size: int) -> None:
    words = "</textarea><b>" + "w" * size
    refused = visitor.post(f"{home(ada.user)}/new", value=words, tags="x")
    assert refused.status_code == 422
    assert 'value</bdi> <bdi class="said">String should have at most 100000 characters' in refused.text
    assert f'dir="auto">\n{escape(words)}</textarea>' in refused.text
    assert '<input type="hidden" name="tags" value="x">' in refused.text
    assert ada.items() == []


def test_a_key_that_is_taken_shows_both_texts_and_stores_nothing(visitor: Visitor, ada: FactsOf) -> None:
    ada.put("city", value="Oslo")
    both = sent_form(visitor, f"{home(ada.user)}/new", key="city", value="Rome")
    assert both.status_code == 412
    assert "Nothing was stored." in both.text
    assert "Oslo" in both.text
    assert "Rome" in both.text
    assert ada.known() == {"city": "Oslo"}


def test_an_edit_of_what_has_changed_shows_both_texts_and_stores_nothing(visitor: Visitor, ada: FactsOf) -> None:
    city = ada.put("city", value="Oslo")
    address = f"{home(ada.user)}/{city['id']}/edit"
    page = visitor.page(address)
    ada.put("city", value="Rome")
    both = visitor.post(address, version=field(page, "version"), value="Bergen", importance="0.5")
    assert both.status_code == 412
    assert "Rome" in both.text
    assert "Bergen</textarea>" in both.text
    assert ada.known() == {"city": "Rome"}
    missing = visitor.post(address, value="Bergen")
    assert missing.status_code == 412, "a form without a version was shown none"
    stored = visitor.post(address, version=field(both.text, "version"), value="Bergen", importance="0.5")
    assert stored.status_code == 303
    assert ada.known() == {"city": "Bergen"}


def test_pinning_keeps_the_list_and_names_the_version(visitor: Visitor, ada: FactsOf) -> None:
    city = ada.put("city", value="Oslo", tags=["a&b"])
    page = visitor.page(f"{home(ada.user)}?tag=a%26b")
    act: dict[str, Any] = {"version": field(page, "version"), "back": field(page, "back"), "pinned": "true"}
    pinned = visitor.post(f"{home(ada.user)}/{city['id']}/pin", **act)
    assert pinned.headers["location"] == f"{home(ada.user)}?tag=a%26b"
    assert ada.one("city")["pinned"]
    act["pinned"] = "false"
    late = visitor.post(f"{home(ada.user)}/{city['id']}/pin", **act)
    assert late.status_code == 412
    assert ada.one("city")["pinned"]


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example/?x=1", "?x=1\r\nSet-Cookie: a=b", "\\\\evil"])
def test_an_act_leads_to_the_own_list_alone(visitor: Visitor, ada: FactsOf, back: str) -> None:
    city = ada.put("city", value="Oslo")
    version = field(visitor.page(home(ada.user)), "version")
    headers = {"HX-Request": "true", "HX-Request-Type": "partial"}
    act = f"{home(ada.user)}/{city['id']}/pin"
    done = visitor.post(act, headers=headers, version=version, pinned="true", back=back)
    assert done.status_code == 200
    assert done.headers["hx-redirect"].partition("?")[0] == home(ada.user)
    assert "set-cookie" not in done.headers


def test_the_filters_stay_in_the_address(visitor: Visitor, ada: FactsOf) -> None:
    ada.put("city", value="Oslo", tags=["a&b"])
    ada.put("town", value="Bergen", tags=["other"])
    for query in ("text=OSL", "tag=a%26b", "text=osl&tag=a%26b&source=manual&status=&as_of=&kind=keyed&cursor="):
        page = visitor.page(f"{home(ada.user)}?{query}")
        assert "Oslo" in page
        assert "Bergen" not in page
    assert 'name="kind" value="keyed"' in page
    assert 'value="a&amp;b"' in page
    assert '<option value="manual" selected>' in page
    assert "Oslo" not in visitor.page(f"{home(ada.user)}?source=turn")
    assert "Oslo" not in visitor.page(f"{home(ada.user)}?status=rejected")
    for wrong in ("kind=no", "status=no", "as_of=soon", "cursor=%21", "cursor=YQ", f"text={'a' * 201}"):
        assert visitor.get(f"{home(ada.user)}?{wrong}").status_code == 422


def test_as_of_shows_what_held_then(visitor: Visitor, ada: FactsOf) -> None:
    ada.put("city", value="Oslo", valid_from="2020-01-01T00:00:00Z")
    ada.put("city", value="Rome")
    then = visitor.page(f"{home(ada.user)}?as_of=2021-05-06T07:08:09Z")
    assert "Oslo" in then
    assert "Rome" not in then
    assert 'value="2021-05-06T07:08:09"' in then
    assert 'type="datetime-local"' in then
    assert "/pin" not in then, "the present fact is another one"
    assert "Nothing is known" not in visitor.page(f"{home(ada.user)}?as_of=2019-01-01T00:00")


def test_lists_have_pages(visitor: Visitor, ada: FactsOf) -> None:
    for number in range(23):
        ada.put(f"key_{number}", value=f"value-{number}.", tags=["t"])
    first = visitor.page(f"{home(ada.user)}?tag=t")
    (following,) = re.findall(r'rel="next" href="([^"]+)"', first)
    second = visitor.page(unescape(following))
    assert first.index("value-22.") < first.index("value-21.") < first.index("value-3.")
    assert ("value-2." in first, "value-3." in second) == (False, False)
    assert second.index("value-2.") < second.index("value-0.")
    assert 'rel="next"' not in second


def test_a_history_has_pages_newest_first(visitor: Visitor, ada: FactsOf) -> None:
    city = [ada.put("city", value=f"place-{number}.") for number in range(22)][-1]
    first = visitor.page(f"{home(ada.user)}/{city['id']}")
    assert first.index("place-21.") < first.index("place-20.") < first.index("place-2.")
    assert "place-1." not in first
    (following,) = re.findall(r'rel="next" href="([^"]+)"', first)
    assert "place-1." in visitor.page(unescape(following))


def test_forgetting_lists_first_what_goes(visitor: Visitor, ada: FactsOf) -> None:
    ada.put("city", value="Oslo")
    city = ada.put("city", value="Rome")
    own = f"{home(ada.user)}/{city['id']}"
    asked = visitor.page(f"{own}/forget")
    for text in ("Oslo", "Rome", "This cannot be undone.", "0 turns&#39; records", "The conversation keeps the words"):
        assert text in asked
    ada.put("city", value="Paris")
    again = visitor.post(f"{own}/forget", seen=field(asked, "seen"))
    assert again.status_code == 412
    assert "Paris" in again.text
    assert ada.known() == {"city": "Paris"}
    done = visitor.post(f"{own}/forget", seen=field(again.text, "seen"))
    assert (done.status_code, done.headers["location"]) == (303, home(ada.user))
    assert ada.items() == []
    tombstone = visitor.page(own)
    assert "No text is left." in tombstone
    assert not any(text in tombstone for text in ("Oslo", "Rome", "Paris"))
    assert visitor.get(f"{own}/edit").status_code == 409
    assert visitor.post(f"{own}/forget", seen="").status_code == 303, "a forgetting that was cut off is completed"


def test_hostile_text_is_shown_as_text(visitor: Visitor, ada: FactsOf) -> None:
    thread = "t|=~@:+"
    ada.put("city", value=HOSTILE, statement=HOSTILE + ".", tags=[HOSTILE[:64], "c,d\u2028e"])
    ada.put("mood", value=HOSTILE, scope="thread", thread_id=thread)
    own = sent_form(visitor, f"{home(ada.user)}/new", value=f"Note: {HOSTILE}", tags="<b>").headers["location"]
    kinds = [f"{home(ada.user)}?kind={kind}&text=%3Cscript%3E" for kind in ("keyed", "notes", "thread")]
    for address in (*kinds, own, f"{own}/edit", f"{own}/forget"):
        page = visitor.page(address)
        assert "&lt;script&gt;alert(1)&lt;/script&gt;{{7*7}}" in page
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "<b>" not in page
    assert "threads/t%7C%3D~%40%3A%2B" in visitor.page(kinds[2])


def test_nobody_elses_fact_has_an_address(visitor: Visitor, ada: FactsOf) -> None:
    city = ada.put("city", value="Oslo")
    for end in ("", "/edit", "/forget"):
        assert visitor.get(f"/users/other/facts/{city['id']}{end}").status_code == 404
        assert visitor.get(f"{home(ada.user)}/global/{city['id']}{end}").status_code == 404
    for act in ("edit", "pin", "approve", "reject", "forget"):
        sent: dict[str, Any] = {"version": "x", "pinned": "true"}
        assert visitor.post(f"/users/other/facts/{city['id']}/{act}", **sent).status_code == 404
    assert ada.known() == {"city": "Oslo"}


def test_a_learned_fact_shows_its_quote_and_turn(served: Service, model: FakeOpenAI, user: str, tmp_path: Path) -> None:
    teach(model, {MESSAGE: [add("Oslo", key="city", evidence="I live in Oslo")]})
    turn_id = served.turn(MESSAGE, user=user, wait_for_memory=True)["turn_id"]
    with Visitor(served) as visitor:
        page = visitor.page(home(user))
        assert "I live in Oslo" in page
        assert f'href="/users/{user}/turns/{turn_id}"' in page
        (fact,) = FactsOf(served, user).items()
        own = f"{home(user)}/{fact['id']}"
        assert "1 turn&#39;s record of" in visitor.page(f"{own}/forget")
        sent_form(visitor, f"{own}/edit", tags="place")
        assert "I live in Oslo" in visitor.page(own), "another tag takes no quote away"
        sent_form(visitor, f"{own}/edit", value="Rome")
        (fact,) = FactsOf(served, user).items()
        assert (fact["source"], fact["evidence"], fact["tags"]) == ("manual", None, ["place"])
        assert visitor.page(own).count(f'href="/users/{user}/turns/{turn_id}"') >= 1, "the history keeps the turn"


def test_proposed_facts_are_approved_and_rejected(tmp_path: Path, fake: FakeOpenAI) -> None:
    with service(tmp_path, **model_settings(fake.url), REVIEW="all") as running, Visitor(running) as visitor:
        ada = FactsOf(running, "ada")
        running.turn("My city is Oslo and my dog is Rex", user="ada", wait_for_memory=True)
        assert "Some facts wait for approval." in visitor.page(home("ada"))
        waiting = {fact["key"]: fact["id"] for fact in ada.items(status="proposed")}
        page = visitor.page(f"{home('ada')}?status=proposed")
        assert page.count("waits for approval</span>") == 2
        (back,) = {value for name, value in FIELD.findall(page) if name == "back"}
        done = visitor.post(f"{home('ada')}/{waiting['city']}/approve", **proposal(visitor, waiting["city"]), back=back)
        assert done.headers["location"] == f"{home('ada')}?status=proposed"
        visitor.post(f"{home('ada')}/{waiting['dog']}/reject", **proposal(visitor, waiting["dog"]))
        assert ada.known() == {"city": "Oslo"}
        assert "Rex" in visitor.page(f"{home('ada')}?status=rejected")
        again = visitor.post(f"{home('ada')}/{waiting['dog']}/approve")
        assert again.status_code == 409


def test_a_proposal_that_has_changed_shows_both_and_decides_nothing(tmp_path: Path, fake: FakeOpenAI) -> None:
    with service(tmp_path, **model_settings(fake.url), REVIEW="all") as running, Visitor(running) as visitor:
        ada = FactsOf(running, "ada")
        running.turn("My city is Oslo", user="ada", wait_for_memory=True)
        (first,) = ada.items(status="proposed")
        assert visitor.post(f"{home('ada')}/{first['id']}/approve", **proposal(visitor, first["id"])).status_code == 303
        running.turn("My city is Rome", user="ada", wait_for_memory=True)
        (waiting,) = ada.items(status="proposed")
        own = f"{home('ada')}/{waiting['id']}"
        shown = proposal(visitor, waiting["id"])
        ada.put("city", value="Bergen <b>")
        for act in ("approve", "reject"):
            both = visitor.post(f"{own}/{act}", **shown)
            assert both.status_code == 412
            assert "Nothing was decided." in both.text
            assert all(words in both.text for words in ("city: Rome", "city: Oslo", "city: Bergen &lt;b&gt;"))
            assert ada.known() == {"city": "Bergen <b>"}
        assert visitor.post(f"{own}/approve").status_code == 412, "a form without a version was shown none"
        decided = visitor.post(f"{own}/approve", version=field(both.text, "version"))
        assert (decided.status_code, ada.known()) == (303, {"city": "Rome"})


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Serve callers who need keys, with one global fact."""
    with service(tmp_path_factory.mktemp("locked"), AUTH="api_key") as running:
        body, headers = {"value": "Acme"}, bearer(owner_token(running))
        answer = running.http.put("/api/global/facts/by-key/company", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        yield running


@pytest.fixture
def company(locked: Service) -> str:
    """Return the id of the global fact."""
    (fact,) = locked.http.get("/api/global/facts", headers=bearer(owner_token(locked))).json()["items"]
    fact_id: str = fact["id"]
    return fact_id


@pytest.mark.parametrize(("role", "writes"), [("user:ada", False), ("service", False), ("admin", True)])
def test_global_facts_are_written_by_administrators_alone(
    locked: Service, company: str, role: str, *, writes: bool
) -> None:
    with Visitor(locked) as visitor:
        visitor.sign_in(made_key(locked, role)["key"])
        page = visitor.page("/users/ada/facts?kind=global")
        assert "Acme" in page
        assert (f"/global/{company}/edit" in page, "/global/new" in page) == (writes, writes)
        own = f"/users/ada/facts/global/{company}"
        assert "Acme" in visitor.page(own)
        expected = 200 if writes else 403
        for end in (f"{own}/edit", f"{own}/forget", "/users/ada/facts/global/new"):
            assert visitor.get(end).status_code == expected
        token = visitor.token(own)
        if not writes:
            for act in ("edit", "pin", "approve", "reject", "forget"):
                sent: dict[str, Any] = {"version": "x", "pinned": "true"}
                assert visitor.post(f"{own}/{act}", token=token, **sent).status_code == 403
            assert visitor.post("/users/ada/facts/global/new", token=token, value="x").status_code == 403


def test_a_user_sees_the_own_page_alone(locked: Service) -> None:
    with Visitor(locked) as visitor:
        visitor.sign_in(made_key(locked, "user:ada")["key"])
        assert 'id="user"' not in visitor.page("/users/ada/facts")
        token = visitor.token("/users/ada/facts")
        for end in ("facts", "facts/new", "facts/global/new", "data/erase"):
            assert visitor.get(f"/users/bo/{end}").status_code == 404
        assert visitor.post("/users/bo/facts/new", token=token, value="x").status_code == 404
        assert visitor.post("/users/bo/data/erase", token=token, typed="bo").status_code == 404


def test_a_user_erases_everything_and_gets_the_receipt(locked: Service) -> None:
    owner = bearer(owner_token(locked))
    locked.http.put("/api/users/eve/facts/by-key/city", json={"value": "Oslo"}, headers=owner)
    with Visitor(locked) as visitor:
        visitor.sign_in(made_key(locked, "user:eve")["key"])
        asked = visitor.get("/users/eve/data/erase")
        assert "This cannot be undone." in asked.text
        wrong = visitor.post("/users/eve/data/erase", token=token_in(asked.text), typed="ada")
        assert wrong.status_code == 422
        assert "nothing was erased" in wrong.text
        assert locked.http.get("/api/users/eve/facts", headers=owner).json()["facts"] == {"city": "Oslo"}
        receipt = visitor.post("/users/eve/data/erase", token=token_in(asked.text), typed="eve")
        assert receipt.status_code == 200
        assert "<td>1</td><td>0</td>" in receipt.text
        assert visitor.get("/users/eve/facts").headers["location"].startswith("/sign-in")
    assert locked.http.get("/api/users/eve/facts", headers=owner).json()["facts"] == {}
