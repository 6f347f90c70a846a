from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fakes.openai_server import FakeOpenAI, call
from tests.service.support.events import check_stream, data_of, names, read_events, stream
from tests.service.support.lessons import add, teach
from tests.service.support.running import Service
from tests.service.support.shapes import ERROR, check, check_recalled, check_turn, check_update, fields, refused

REPLY = "One two three\nfour — “five” 😀."


def test_events_come_in_order_and_tokens_make_the_reply(served: Service, model: FakeOpenAI, user: str) -> None:
    model.script(REPLY)
    events = stream(served, "Count.", user=user, turn_id="counted")
    tokens = [data for name, data in events if name == "token"]
    assert names(events) == ["turn", "memory", *["token"] * len(tokens), "message", "done"]
    assert len(tokens) > 3
    assert all(set(token) == {"text"} and token["text"] for token in tokens)
    assert "".join(token["text"] for token in tokens) == REPLY
    assert data_of(events, "turn") == {"turn_id": "counted"}
    assert data_of(events, "done") == {}
    message = check_turn(data_of(events, "message"))
    assert (message["reply"], message["usage"]) == (REPLY, {"input_tokens": 10, "output_tokens": 2})
    recalled = data_of(events, "memory")
    check_recalled(recalled)
    assert {**recalled, "update": message["memory"]["update"]} == message["memory"]
    stored = served.settled("counted", user=user)
    stored["memory"]["update"] = message["memory"]["update"]
    assert stored == message


def test_with_wait_for_memory_the_update_comes_before_done(served: Service, model: FakeOpenAI, user: str) -> None:
    teach(model, {"I'm Ada.": [add("Ada", key="name", evidence="I'm Ada")]})
    events = stream(served, "I'm Ada.", user=user, wait_for_memory=True)
    assert names(events)[:2] == ["turn", "memory"]
    assert names(events)[-3:] == ["message", "update", "done"]
    update = data_of(events, "update")
    check_update(update)
    assert update["status"] == "done"
    assert [change["after"] for change in update["changes"]] == ["Ada"]
    turn_id = data_of(events, "turn")["turn_id"]
    assert served.get(f"/api/turns/{turn_id}", user_id=user)["memory"]["update"] == update


def test_the_offline_model_streams_too(offline: Service, user: str) -> None:
    events = stream(offline, "My name is Ada.", user=user)
    said = "".join(data["text"] for name, data in events if name == "token")
    assert said == data_of(events, "message")["reply"]
    assert names(events)[-1] == "done"


def test_tokens_arrive_while_the_model_still_speaks(served: Service, model: FakeOpenAI, user: str) -> None:
    model.script("Slow words come one by one.")
    body = {"user_id": user, "thread_id": "t1", "message": "Speak.", "stream": True, "turn_id": "slow"}
    model.piece_seconds = 0.2
    with served.http.stream("POST", "/api/agent", json=body) as answer:
        check_stream(answer)
        for name, _ in read_events(answer.iter_lines()):
            if name == "token":
                model.hang()
                break
        turn = served.get("/api/turns/slow", user_id=user)
        assert check_turn(turn, unfinished=True)
    model.piece_seconds = 0
    model.release()
    # The client has gone away in the middle: the turn finishes all the same.
    finished = served.settled("slow", user=user)
    assert finished["reply"] == "Slow words come one by one."
    assert finished["memory"]["update"]["status"] == "done"


def test_a_repeat_of_a_finished_turn_streams_without_tokens(served: Service, model: FakeOpenAI, user: str) -> None:
    first = served.turn("Hello.", user=user, turn_id="again", wait_for_memory=True)
    before = len(model.chats)
    events = stream(served, "Hello.", user=user, turn_id="again")
    assert names(events) == ["turn", "memory", "message", "done"]
    assert data_of(events, "message") == first
    assert {**data_of(events, "memory"), "update": first["memory"]["update"]} == first["memory"]
    waited = stream(served, "Hello.", user=user, turn_id="again", wait_for_memory=True)
    assert names(waited) == ["turn", "memory", "message", "update", "done"]
    assert data_of(waited, "update") == first["memory"]["update"]
    assert len(model.chats) == before


def test_a_repeat_of_a_running_stream_hears_it_from_the_beginning(
    served: Service, model: FakeOpenAI, user: str
) -> None:
    model.script("One and the same reply.")
    model.piece_seconds = 0.05
    with ThreadPoolExecutor(2) as clients:
        both = [clients.submit(stream, served, "Once.", user=user, turn_id="twice") for _ in range(2)]
        heard = [client.result() for client in both]
    assert data_of(heard[0], "message") == data_of(heard[1], "message")
    for events in heard:
        said = "".join(data["text"] for name, data in events if name == "token")
        assert said in {"One and the same reply.", ""}
        assert names(events)[-2:] == ["message", "done"]
    assert len([chat for chat in model.chats if chat["messages"][-1]["content"] == "Once."]) == 1


@pytest.mark.parametrize(("status", "code"), [(500, "model_unavailable"), (400, "model_unavailable")])
def test_an_error_after_the_turn_event_is_an_event(
    served: Service, model: FakeOpenAI, user: str, status: int, code: str
) -> None:
    model.fail(status, times=-1, path="/chat/completions")
    events = stream(served, "Hello.", user=user, turn_id="broken")
    assert names(events) == ["turn", "memory", "error"]
    whole = data_of(events, "error")
    assert set(whole) == {"error"}
    error = check(ERROR, whole["error"])
    assert (error["code"], error["turn_id"], error["details"]) == (code, "broken", None)
    model.recover()
    assert stream(served, "Hello.", user=user, turn_id="broken")[-1][0] == "done"


def test_a_stream_that_breaks_off_ends_in_an_error(served: Service, model: FakeOpenAI, user: str) -> None:
    model.script("These words never come to their end.")
    model.piece_seconds = 0.2
    body = {"user_id": user, "thread_id": "t1", "message": "Speak.", "stream": True, "turn_id": "cut"}
    heard, asked = list[str](), len(model.chats)
    with served.http.stream("POST", "/api/agent", json=body) as answer:
        for name, data in read_events(answer.iter_lines()):
            heard.append(name)
            if name == "token" and heard.count("token") == 1:
                model.hang()
                model.cut()
            if name == "error":
                assert data["error"]["turn_id"] == "cut"
                assert data["error"]["code"] == "model_unavailable"
    assert len(model.chats) == asked + 1  # what broke off amid its words is not asked for again
    assert heard[:3] == ["turn", "memory", "token"]
    assert heard[-1] == "error"
    assert heard.count("error") == 1
    assert not {"message", "done"} & set(heard)


def test_refusals_before_the_turn_are_plain_statuses(offline: Service, user: str) -> None:
    body = {"user_id": user, "thread_id": "t1", "message": "Hello.", "stream": True, "turn_id": "taken"}
    assert fields(offline.http.post("/api/agent", json={**body, "message": ""})) == ["message"]
    offline.turn("Hello.", user=user, turn_id="taken")
    refused(offline.http.post("/api/agent", json={**body, "message": "Other."}), 409, "turn_conflict")
    refused(offline.http.post("/api/agent", json={**body, "thread_id": "t2"}), 409, "turn_conflict")


def test_tokens_of_a_tool_round_do_not_spoil_the_reply(served: Service, model: FakeOpenAI, user: str) -> None:
    model.script(call("search_memory", query="jazz"), "You like jazz.")
    events = stream(served, "What do I like?", user=user)
    said = "".join(data["text"] for name, data in events if name == "token")
    assert said == data_of(events, "message")["reply"] == "You like jazz."


def test_a_token_that_cannot_be_sent_is_mended(served: Service, model: FakeOpenAI, user: str) -> None:
    model.script("Half of a \ud83d pair.")
    events = stream(served, "Speak.", user=user)
    said = "".join(data["text"] for name, data in events if name == "token")
    assert said == data_of(events, "message")["reply"] == "Half of a ? pair."
