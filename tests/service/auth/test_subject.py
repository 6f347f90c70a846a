import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.api.auth.subject import user_of_claim
from recollect.memory.values.scope import ID_PATTERN

ESCAPES = re.compile(r"(?:@[0-9a-f]{2})+")
PLAIN = re.compile(r"[A-Za-z0-9._:-]")


@pytest.mark.parametrize(
    ("subject", "user_id"),
    [
        ("ada", "ada"),
        ("ada@example.com", "ada@example.com"),
        ("bob@acme.com", "bob@acme.com"),
        ("li@163.com", "li@163.com"),
        ("auth0|5f7c", "auth0@7c5f7c"),
        ("https://id.example/ada", "https:@2f@2fid.example@2fada"),
        ("Zoë", "Zo@c3@ab"),
        ("\U0001f600", "@f0@9f@98@80"),
        ("a b", "a@20b"),
        ("a@20b", "a@4020b"),
        ("a@40b", "a@4040b"),
        ("@c3@ab", "@40c3@ab"),
        ("x" * 128, "x" * 128),
        (42, "42"),
    ],
)
def test_characters_that_ids_do_not_have_become_the_hex_of_their_bytes(subject: object, user_id: str) -> None:
    assert user_of_claim(subject) == user_id


@pytest.mark.parametrize(
    "subject", [None, "", ".", "..", "x" * 129, "é" * 22, "a\nb", "\x7f", "\ud800", True, 1.5, ["ada"], {"sub": "ada"}]
)
def test_what_names_nobody_is_nobody(subject: object) -> None:
    assert user_of_claim(subject) is None


@given(st.text(alphabet="@0123456789abcdefé|/ x.", max_size=14) | st.text(max_size=20))
def test_every_user_comes_from_one_subject(subject: str) -> None:
    user_id = user_of_claim(subject)
    if user_id is not None:
        assert re.fullmatch(ID_PATTERN, user_id)
        assert read_back(user_id) == subject


def read_back(user_id: str) -> str:
    """Return the subject: from left to right each escape is the character that it stands for, all else is itself."""
    subject, at = "", 0
    while at < len(user_id):
        run = ESCAPES.match(user_id, at)
        character, length = first_character(run.group()) if run else (None, 0)
        subject += character or user_id[at]
        at += length if character else 1
    return subject


def first_character(run: str) -> tuple[str | None, int]:
    """Return the character that the escapes begin with, if they do, and how long its escapes are."""
    data = bytes.fromhex(run.replace("@", ""))
    for size in range(1, 5):
        try:
            character = data[:size].decode()
        except UnicodeDecodeError:
            continue
        if len(character) == 1 and not PLAIN.fullmatch(character) and character.isprintable() | (character > "\x7f"):
            return character, 3 * size
    return None, 0
