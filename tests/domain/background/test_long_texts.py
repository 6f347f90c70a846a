import threading

from recollect.memory.background.long_texts import INLINE_CHARACTERS, off_loop


async def test_long_texts_are_worked_on_beside_the_event_loop() -> None:
    here = threading.get_ident()
    assert await off_loop(threading.get_ident, ["a" * INLINE_CHARACTERS]) == here
    assert await off_loop(threading.get_ident, ["a" * INLINE_CHARACTERS, "b"]) != here
