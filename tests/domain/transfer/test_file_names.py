import re

from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.transfer.file_names import file_name
from recollect.memory.values.scope import ID_PATTERN

IDS = st.from_regex(f"^{ID_PATTERN}$", fullmatch=True).filter(lambda text: text not in {".", ".."})


@given(IDS, IDS)
def test_names_are_safe_and_ones_own(one: str, other: str) -> None:
    name = file_name(one)
    assert re.fullmatch(r"[A-Za-z0-9_@-][A-Za-z0-9._@~-]{0,112}", name)
    assert not name.endswith(".")
    assert (name.casefold() == file_name(other).casefold()) == (one == other)


def test_plain_ids_are_their_own_names() -> None:
    assert [file_name(one) for one in ("ada", "t1", "ada@example.com", "a-b_c.d")] == [
        "ada",
        "t1",
        "ada@example.com",
        "a-b_c.d",
    ]
    for reserved in ("T1", "a:b", "con", "nul.txt", "facts", "documents", "turns", ".git", "a.", "x" * 128):
        assert "~" in file_name(reserved)
