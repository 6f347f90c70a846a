from recollect.memory.ports.vector_index import SparseVector
from recollect.memory.stores.points import checked_words, read_entry
from tests.contracts.index.points import entry


def test_a_payload_from_before_there_were_positions_is_read() -> None:
    told = entry(position=3)
    payload = told.payload()
    assert read_entry(told.id, payload).position == 3
    del payload["metadata"]["position"]
    assert read_entry(told.id, payload).position is None


def test_each_user_has_word_ids_of_their_own() -> None:
    ids = [0, 7, 2**31, 2**32 - 1]
    ada, bob = (checked_words(SparseVector(ids, [1, 2, 3, 4]), user) for user in ("ada", "bob"))
    assert ada is not None
    assert bob is not None
    assert set(ada.indices).isdisjoint(bob.indices)
    assert len(set(ada.indices)) == 4
    assert all(0 <= number < 2**32 for number in ada.indices)
    assert checked_words(SparseVector(ids, [1, 2, 3, 4]), "ada") == ada
    assert checked_words(SparseVector([], []), "ada") is None
