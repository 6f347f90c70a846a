"""Values: dataclasses that are compared, hashed, shown, copied and replaced as Python's frozen ones are."""

import copy
import dataclasses
import pickle
from dataclasses import dataclass, field

import pytest
from pydantic import TypeAdapter
from typing_extensions import override

from recollect.memory.values.frozen import frozen


@frozen
class Place:
    name: str
    tags: tuple[str, ...] = ()
    key: str = field(default="secret", repr=False)
    seen: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class OrdinaryPlace:
    name: str
    tags: tuple[str, ...] = ()
    key: str = field(default="secret", repr=False)
    seen: int = field(default=0, compare=False)


@frozen
class City(Place):
    people: int = 0


@frozen
class One:
    only: object


@frozen
class Empty:
    pass


@frozen
class ByLength:
    text: str

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByLength) and len(self.text) == len(other.text)

    @override
    def __hash__(self) -> int:
        return len(self.text)

    @override
    def __repr__(self) -> str:
        return "mine"


def test_values_are_equal_where_all_compared_fields_are() -> None:
    assert Place("Bern", ("a",)) == Place("Bern", ("a",), seen=7)
    assert Place("Bern") != Place("Basel")
    assert Place("Bern") != Place("Bern", key="other")
    assert len({Place("Bern"), Place("Bern", seen=1), Place("Basel")}) == 2


def test_values_of_other_classes_are_never_equal() -> None:
    assert Place("Bern") != OrdinaryPlace("Bern")
    assert City("Bern", people=0) != Place("Bern")
    assert City("Bern", people=1) != City("Bern", people=2)
    assert One(("a",)) != ("a",)
    assert One("a") != "a"
    assert Empty() == Empty()
    assert Empty() != One(None)


def test_a_value_that_holds_a_list_has_no_hash() -> None:
    with pytest.raises(TypeError):
        hash(One([]))


def test_a_value_is_shown_as_an_ordinary_one_is() -> None:
    assert repr(Place("Bern", ("a",))) == repr(OrdinaryPlace("Bern", ("a",))).removeprefix("Ordinary")
    assert "secret" not in repr(Place("Bern"))
    assert repr(Empty()) == "Empty()"


def test_a_classs_own_methods_stay() -> None:
    assert ByLength("ab") == ByLength("cd")
    assert hash(ByLength("abc")) == 3
    assert repr(ByLength("abc")) == "mine"


def test_a_value_has_no_other_attributes() -> None:
    with pytest.raises(AttributeError):
        object.__setattr__(Place("Bern"), "other", 1)


@pytest.mark.parametrize("value", [Place("Bern", ("a",), seen=3), City("Bern", people=3), One(None), Empty()])
def test_a_value_is_copied_replaced_and_pickled(value: object) -> None:
    copies = [copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))]

    assert all(made == value and type(made) is type(value) for made in copies)
    assert dataclasses.asdict(copies[0]) == dataclasses.asdict(copies[2])  # pyright: ignore[reportArgumentType]  # all are dataclasses
    assert dataclasses.replace(Place("Bern"), name="Basel") == Place("Basel")


def test_pydantic_reads_and_writes_a_value() -> None:
    adapter = TypeAdapter(City)

    assert adapter.validate_json(adapter.dump_json(City("Bern", ("a",), people=5))) == City("Bern", ("a",), people=5)
