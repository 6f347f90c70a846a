"""The messages of the benchmarks' users: each tells one fact, so that each update has something to learn."""

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
