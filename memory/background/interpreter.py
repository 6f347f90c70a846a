"""Sets Python's interpreter for a process that serves, once all that it needs is imported."""

import gc
import sys

from recollect.memory.background.short_calls import SHORT_CALLS

SWITCH_SECONDS = 0.001
"""How long another thread may go on while the event loop waits for the interpreter. With Python's own 5 ms a thread
that makes values of what the index found held the loop for 6 to 9 ms in 300 searches, and for 3 to 5 with this."""
YOUNG_OBJECTS = 10_000
"""How many objects are made, less those that are gone, between two looks for garbage among the youngest. With Python's
own 700 the looks took 5 % of a turn's time under load: most objects live as long as the turn that made them."""
LOOKS = 20
"""How many looks among younger objects come before one among the next older."""


def settle_interpreter() -> None:
    """Leave all present objects out of the garbage collection from now on, and switch between threads sooner.

    From now on short calls that block run on the event loop, see `short_calls`.

    150,000 objects of libraries live as long as the process: each full collection would scan them, and stop it for
    0.1 s. They are not collected before: of the imports some 800 small objects are garbage, and looking for them would
    hold the first requests up for as long.
    """
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, LOOKS, LOOKS)
    gc.enable()
    sys.setswitchinterval(SWITCH_SECONDS)
    SHORT_CALLS.on_loop = True
