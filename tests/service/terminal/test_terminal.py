"""`recollect chat` at a terminal: beside a service, and with one of its own."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.memory.stores.terminal_history import history_path
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, until
from tests.service.support.scripts import facts, learning, texts
from tests.service.support.terminals import Terminal

REPLY = " ".join(f"word{number}" for number in range(40))
CTRL_C, UP, CLEAR = "\x03", "\x1b[A", "\x15"


@pytest.fixture
def terminal(served: Service, model: FakeOpenAI, user: str) -> Iterator[Terminal]:
    """Yield a conversation in thread t1 that waits for its first line."""
    model.on_chat = learning
    with Terminal(served, "chat", "--user", user, "--thread", "t1") as made:
        made.ready()
        yield made


def test_an_answer_comes_as_it_is_spoken(terminal: Terminal, served: Service, model: FakeOpenAI, user: str) -> None:
    model.script(REPLY)
    model.piece_seconds = 0.02
    terminal.press("Tell me.\r")
    terminal.sees("word1 ")
    model.hang()
    assert texts(served, user=user) == [("user", "Tell me.")], "the model is still talking"
    model.release()
    shown = terminal.ready()
    assert "word39" in shown
    assert "model fake-chat" in shown
    assert texts(served, user=user) == [("user", "Tell me."), ("assistant", REPLY)]
    assert terminal.end() == 0


def test_memory_shows_what_is_known_and_what_the_last_turn_recalled_and_taught(terminal: Terminal) -> None:
    assert "Nothing was said in this thread yet." in terminal.enter("!memory")
    terminal.enter("my pet is cat")
    shown = terminal.enter("!memory")
    assert "Known of" in shown
    assert "pet   cat" in shown
    assert "It taught" in shown
    assert "add   pet" in shown
    terminal.enter("!threads t2")
    terminal.enter("What about my cat, my pet?")
    assert "was given 0 turns before it and 1 facts" in terminal.enter("!memory")


def test_facts_are_listed_and_forgotten(terminal: Terminal, served: Service, user: str) -> None:
    assert "Nothing is known." in terminal.enter("!facts")
    terminal.enter("my pet is cat and my town is Bonn")
    shown = terminal.enter("!facts")
    assert "cat" in shown
    assert "Bonn" in shown
    assert "Forgotten: pet" in terminal.enter("!forget pet")
    assert facts(served, user=user) == {"town": "Bonn"}
    assert "Nothing is known under pet" in terminal.enter("!forget pet")
    assert "Say more: !forget KEY" in terminal.enter("!forget")
    shown_id = served.get(f"/api/users/{user}/facts")["items"][0]["id"]
    assert "Forgotten: town" in terminal.enter(f"!forget {shown_id[:8]}")
    assert facts(served, user=user) == {}


def test_the_last_turn_is_undone(terminal: Terminal, served: Service, user: str) -> None:
    assert "Nothing was said" in terminal.enter("!undo")
    terminal.enter("my pet is cat")
    terminal.enter("my pet is dog")
    shown = terminal.enter("!undo")
    assert "Taken back" in shown
    assert "dog" in shown
    assert facts(served, user=user) == {"pet": "cat"}
    assert "takes nothing, or: force" in terminal.enter("!undo it")


def test_the_last_turn_of_an_earlier_conversation_is_undone(served: Service, model: FakeOpenAI, user: str) -> None:
    model.on_chat = learning
    served.turn("my pet is cat", user=user, wait_for_memory=True)
    with Terminal(served, "chat", "--user", user, "--thread", "t1") as terminal:
        terminal.ready()
        assert "Taken back" in terminal.enter("!undo")
        assert facts(served, user=user) == {}


def test_undo_says_where_facts_have_changed_since(terminal: Terminal, served: Service, user: str) -> None:
    terminal.enter("my pet is cat")
    terminal.enter("!facts")  # it was learned from
    assert served.http.put(f"/api/users/{user}/facts/by-key/pet", json={"value": "dog"}).status_code == 200
    assert "Facts have changed since" in terminal.enter("!undo")
    assert "Left: pet" in terminal.enter("!undo force")
    assert facts(served, user=user) == {"pet": "dog"}


def test_search_finds_what_was_said_in_any_thread(terminal: Terminal) -> None:
    terminal.enter("Penguins live in Antarctica.")
    terminal.enter("!threads t2")
    shown = terminal.enter("!search penguins")
    assert "Penguins live in Antarctica." in shown
    assert "t1" in shown
    assert "Say more: !search TEXT" in terminal.enter("!search")


def test_a_thread_is_cleared_when_that_is_wanted(terminal: Terminal, served: Service, user: str) -> None:
    terminal.enter("my pet is cat")
    terminal.enter("!clear")
    terminal.sees("Remove all that was said in t1?")
    assert "Nothing was removed." in terminal.enter("n")
    assert len(texts(served, user=user)) == 2
    terminal.enter("!clear")
    assert "Thread t1 is empty." in terminal.enter("y")
    assert texts(served, user=user) == []
    assert facts(served, user=user) == {"pet": "cat"}
    assert "Nothing was said" in terminal.enter("!undo")


def test_threads_are_listed_and_changed(terminal: Terminal, served: Service, user: str) -> None:
    assert "There are no threads." in terminal.enter("!threads")
    terminal.enter("Hello.")
    assert "Now in thread t2." in terminal.enter("!threads t2")
    terminal.enter("Hello again.")
    shown = terminal.enter("!threads")
    assert shown.index("t2  ") < shown.index("t1  ")
    assert "here" in shown
    assert "is not a valid id" in terminal.enter("!threads a/b")
    assert texts(served, user=user, thread="t2")[0] == ("user", "Hello again.")


def test_help_lists_all_commands_and_unknown_ones_are_named(terminal: Terminal, served: Service, user: str) -> None:
    shown = terminal.enter("!help")
    for name in ("!memory", "!facts", "!forget KEY", "!undo", "!search TEXT", "!clear", "!threads", "!help", "Ctrl-D"):
        assert name in shown
    assert "There is no !x;" in terminal.enter("!x")
    assert "There is no !;" in terminal.enter("!")
    assert "!facts takes nothing more." in terminal.enter("!facts of mine")
    assert texts(served, user=user) == []
    terminal.enter(" !x is a message")
    assert texts(served, user=user)[0] == ("user", "!x is a message")


def offered(terminal: Terminal, typed: str, completed: str) -> None:
    """Type until the menu shows it: keys that come faster than the menu is drawn may leave it out.

    Each try begins with an empty line, because a menu that stands is drawn again only where it differs.
    """
    for _ in range(10):
        for key in typed:
            terminal.press(key)
        if terminal.shows(completed, seconds=2):
            break
        terminal.press(CLEAR)
    else:
        raise AssertionError(terminal.raw)
    terminal.press(CLEAR)


def test_commands_keys_and_threads_are_completed(terminal: Terminal, served: Service, user: str) -> None:
    terminal.enter("my pet is cat and my town is Bonn")
    terminal.enter("!facts")
    offered(terminal, "!for", "forget a fact")
    offered(terminal, "!forget to", "town")
    assert "Forgotten: town" in terminal.enter("!forget town")
    terminal.enter("!threads zebra")
    offered(terminal, "!threads t", "t1")
    assert "Now in thread t1." in terminal.enter("!threads t1")
    assert facts(served, user=user) == {"pet": "cat"}


def test_an_interrupted_answer_is_stored_all_the_same(
    terminal: Terminal, served: Service, model: FakeOpenAI, user: str
) -> None:
    model.script(REPLY)
    model.piece_seconds = 0.02
    terminal.press("Tell me.\r")
    terminal.sees("word1 ")
    terminal.press(CTRL_C)
    assert "stored all the same" in terminal.ready()
    until(lambda: texts(served, user=user) == [("user", "Tell me."), ("assistant", REPLY)])
    assert "word39" in terminal.enter("Tell me."), "the same message shows what was stored"
    assert len(model.chats) == 1
    assert terminal.end() == 0


def test_ctrl_c_gives_a_line_up(terminal: Terminal, served: Service, user: str) -> None:
    terminal.press("never said" + CTRL_C)
    terminal.ready()
    terminal.enter("Said.")
    assert [content for role, content in texts(served, user=user) if role == "user"] == ["Said."]
    assert terminal.end() == 0


def test_a_failed_turn_ends_nothing_and_is_repeated(
    terminal: Terminal, served: Service, model: FakeOpenAI, user: str
) -> None:
    model.fail(400, times=-1, path="chat")
    assert "error: " in terminal.enter("Hello?")
    model.recover()
    assert "All right." in terminal.enter("Hello?")
    assert texts(served, user=user) == [("user", "Hello?"), ("assistant", "All right.")], "it was one turn"


def test_lines_are_kept_for_their_user_alone(served: Service, model: FakeOpenAI, user: str) -> None:
    folder = served.data_dir / "terminal"
    known = set(folder.glob("*"))
    with Terminal(served, "chat", "--user", user, "--thread", "t1") as terminal:
        terminal.ready()
        terminal.enter("Something to say again.")
        terminal.enter("!help")
        assert terminal.end() == 0
    (file,) = set(folder.glob("*")) - known
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert user not in file.name
    with Terminal(served, "chat", "--user", user, "--thread", "t2") as terminal:
        terminal.ready()
        terminal.press(UP + UP)
        terminal.sees("Something to say again.")
        terminal.press("\r")
        terminal.ready()
    assert texts(served, user=user, thread="t2")[0] == ("user", "Something to say again.")
    with Terminal(served, "chat", "--user", f"{user}-other", "--thread", "t1") as terminal:
        terminal.ready()
        terminal.press(UP + "Mine.\r")
        assert "again" not in terminal.ready()


def test_typed_lines_go_with_their_thread_and_with_their_user(served: Service, model: FakeOpenAI, user: str) -> None:
    file = history_path(served.data_dir, user)
    with Terminal(served, "chat", "--user", user, "--thread", "t1") as terminal:
        terminal.ready()
        terminal.enter("Said in one.")
        terminal.enter("!threads t2")
        terminal.enter("Said in two.")
        assert terminal.end() == 0
    assert served.http.post("/memory/clear/t1", params={"user_id": user}).is_success
    assert b"Said in one." not in file.read_bytes()
    assert b"Said in two." in file.read_bytes()
    receipt = served.http.delete(f"/api/users/{user}").json()
    assert receipt["counts"]["terminal"] == 1
    assert receipt["remaining"]["terminal"] == 0
    assert not file.exists()


def test_no_line_is_kept_of_a_service_elsewhere(served: Service, model: FakeOpenAI, tmp_path: Path, user: str) -> None:
    elsewhere = Service(tmp_path)
    with Terminal(elsewhere, "chat", "--user", user, "--thread", "t1", "--url", served.url) as terminal:
        terminal.ready()
        terminal.enter("Hello.")
        assert terminal.end() == 0
    elsewhere.http.close()
    assert texts(served, user=user)[0] == ("user", "Hello.")
    assert list(tmp_path.rglob("*")) == []


def test_hostile_text_is_only_written(terminal: Terminal, served: Service, model: FakeOpenAI, user: str) -> None:
    model.script("\x1b]0;owned\x07\x1b[5;5H [red]x[/red] :smile: \x9b31m \u202eabc")
    terminal.press("Hello.\r")
    terminal.ready()
    assert "␛]0;owned␇␛[5;5H [red]x[/red] :smile: <U+009B>31m <U+202E>abc" in terminal.raw
    served.http.put(f"/api/users/{user}/facts/by-key/pet", json={"value": "\x1b[2Jcat [bold]b[/bold]"})
    for command in ("!facts", "!memory", "!search cat Hello"):
        terminal.press(f"{command}\r")
        terminal.ready()
        assert "␛[2Jcat [bold]b[/bold]" in terminal.raw
        assert "\x1b[2Jcat" not in terminal.raw
