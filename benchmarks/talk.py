"""The messages of the benchmarks' users, most of which tell a fact, so that updates have something to learn."""

_THINGS = ("colour", "dish", "city", "book", "sport", "season", "drink", "film", "song", "animal", "flower", "number")
_WORDS = (
    *("amber", "birch", "cobalt", "dune", "ember", "fjord", "garnet", "harbour", "iris", "juniper", "kelp", "lagoon"),
    *("maple", "nectar", "onyx", "pebble", "quartz", "raven", "saffron", "thistle"),
)


def telling(number: int, user: int = 0) -> str:
    """Return the `number`-th message of a user: 12 keys in turn, each time with a new value for the key."""
    thing = _THINGS[number % len(_THINGS)]
    first, second = _WORDS[(number + user) % len(_WORDS)], _WORDS[(number * 7 + user * 3) % len(_WORDS)]
    return (
        f"My favourite {thing} is {first} {second} {number}. I came to think so last week, when a friend told me about "
        f"the {second} near the old {first}; what would you do with it on a free afternoon?"
    )


_DOINGS = (
    *("planted a maple beside", "repaired the bench behind", "sketched the old gate of", "counted the herons near"),
    *("took the early train to", "met my cousin at", "lost my umbrella in", "baked bread for the neighbours of"),
    *("carried the canoe past", "photographed the lamps of", "slept in the cabin above", "paid for the roof of"),
    *("taught chess in", "played the cello at", "swept the courtyard of"),
)
_QUESTIONS = (
    *("Which tools would you take along for work on", "How would you describe the light in the evening over"),
    *("Could you word a short invitation to", "What might a child ask first about"),
    *("Which three things would you check before a visit to", "How long would you plan for a walk around"),
    *("What would you pack for a wet week at", "Can you think of a good name for a boat that sails to"),
    *("Which songs fit a slow evening near", "What would you cook for eight guests at"),
    *("How would you explain a detour to", "Which month would you choose for a stay at"),
    *("What is a fair price for a painting of", "How would you warn somebody of the dog at"),
    *("Which of the two paths would you take to",),
)


def chatting(number: int, user: int = 0) -> str:
    """Return the `number`-th message of a talk in which nobody says anything twice.

    Fifteen doings, each told as a fact without a key, alternate with fifteen questions that tell nothing; user and
    number make each message one of its own.
    """
    at = number // 2
    first, second = _WORDS[(at + user) % len(_WORDS)], _WORDS[(at * 7 + user * 3) % len(_WORDS)]
    place = f"{first.capitalize()} {second.capitalize()} House {user * 1_000 + number}"
    if number % 2:
        asked = _QUESTIONS[at % len(_QUESTIONS)]
        return f"{asked} {place}? A few plain sentences are enough, and I read them on the way home this evening."
    done = _DOINGS[at % len(_DOINGS)]
    return f"I {done} {place}. It took most of the day, so tell me what you would have done with the rest of it."
