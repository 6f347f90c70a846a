"""Words a key and its value as a sentence to the user ("You live in Paris.") or of them ("The user lives in …")."""

_FORMS = {
    "name": ("your name is {}", "The user's name is {}"),
    "location": ("you live in {}", "The user lives in {}"),
    "hometown": ("you are from {}", "The user is from {}"),
    "birthplace": ("you were born in {}", "The user was born in {}"),
    "employer": ("you work at {}", "The user works at {}"),
    "nationality": ("you are {}", "The user is {}"),
    "religion": ("you are {}", "The user is {}"),
    "diet": ("you are {}", "The user is {}"),
    "studies": ("you study {}", "The user studies {}"),
}
_PREFIXES = {
    "likes_": ("you like {}", "The user likes {}"),
    "dislikes_": ("you dislike {}", "The user dislikes {}"),
    "allergy_": ("you are allergic to {}", "The user is allergic to {}"),
}
_ENDED = {
    "location": "you no longer live in {}",
    "employer": "you no longer work at {}",
    "occupation": "you no longer work as {}",
    "likes_": "you no longer like {}",
    "dislikes_": "you no longer dislike {}",
}
_PEOPLE = {"children", "sons", "daughters", "dogs", "cats", "brothers", "sisters", "siblings", "grandchildren"}
_NUMBERS = {"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}


def told_clause(key: str, value: str) -> str:
    """Return the clause said to the user: "you live in Paris"."""
    return _worded(key, value, 0)


def stated(key: str, value: str) -> str:
    """Return the self-contained sentence about the user: "The user lives in Paris."."""
    return sentence(_worded(key, value, 1))


def told_ended(key: str, value: str) -> str:
    """Return the clause said to the user when it no longer holds: "you no longer live in Paris"."""
    form = _ENDED.get(key) or next((form for prefix, form in _ENDED.items() if key.startswith(prefix)), None)
    if form:
        return form.format(_with_article(value) if key == "occupation" else value)
    return f"I no longer hold that {told_clause(key, value)}"


def sentence(clause: str) -> str:
    """Return the clause with a capital letter and a full stop."""
    return clause[:1].upper() + clause[1:] + ("" if clause.endswith((".", "!", "?")) else ".")


def of_key(key: str) -> str:
    """Return a key as words: "dog_name" is "dog's name"."""
    words = key.replace("_", " ").strip()
    owner, name, rest = words.rpartition(" name")
    return (
        f"{owner}'s name"
        if name and not rest and owner not in {"last", "first", "full", "middle", "nick", "user"}
        else words
    )


def _worded(key: str, value: str, person: int) -> str:
    if key == "occupation":
        return ("you work as {}", "The user works as {}")[person].format(_with_article(value))
    if key == "age":
        years = " years old" if value.isdigit() else ""
        return ("you are {}", "The user is {}")[person].format(value + years)
    if key in _PEOPLE and (value in _NUMBERS or value.isdigit()):
        return ("you have {}", "The user has {}")[person].format(f"{value} {key}")
    forms = _FORMS.get(key) or next((forms for prefix, forms in _PREFIXES.items() if key.startswith(prefix)), None)
    if forms:
        return forms[person].format(value)
    thing = of_key(key)
    is_many = thing.endswith("s") and not thing.endswith(("ss", "us", "is"))
    owner = ("your", "The user's")[person]
    return f"{owner} {thing} {'are' if is_many else 'is'} {value}"


def _with_article(job: str) -> str:
    first = job.split(" ")[0].casefold()
    if first in {"a", "an", "the"}:
        return job
    return f"{'an' if first[:1] in 'aeiou' else 'a'} {job}"
