"""Which fact a quote names."""

from datetime import UTC, datetime

import pytest

from recollect.memory.facts.wording import names_fact
from recollect.memory.values.fact import Fact

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def fact(key: str, value: str) -> Fact:
    return Fact(
        id="f1",
        user_id="ada",
        key=key,
        value=value,
        statement=f"The user's {key} is {value}.",
        created_at=NOW,
        updated_at=NOW,
        confirmed_at=NOW,
        valid_from=NOW,
    )


@pytest.mark.parametrize(
    ("quote", "key", "value", "is_named"),
    [
        ("Mi vuelo sale a las 7 de la tarde del 3 de mayo", "birthday", "3 May", False),
        ("my birthday is not on the 3rd", "birthday", "3 May", True),
        ("Forget 4711.", "pin", "4711", True),
        ("7", "brothers", "7", True),
    ],
)
def test_a_day_or_an_hour_names_a_fact_only_where_nothing_else_is_said(
    quote: str, key: str, value: str, is_named: bool
):
    assert names_fact(quote, fact(key, value)) is is_named
