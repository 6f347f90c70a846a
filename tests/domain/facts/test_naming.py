"""Which fact a quote names."""

import pytest

from recollect.memory.facts.wording import names_fact
from tests.contracts.store.samples import fact


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
    known = fact(key=key, value=value, statement=f"The user's {key} is {value}.")
    assert names_fact(quote, known) is is_named
