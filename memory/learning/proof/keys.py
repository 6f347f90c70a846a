"""Keys of claims: tells words that say what kind of thing a value is from words that add something. Pure."""

from collections.abc import Iterator

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.words import word_set

_GRAMMAR = word_set(
    "intake consumption plus sharp up out off get gets go goes wake issue problem favourites is are was has have had "
    "does do can will of "
    "in at on to "
    "the a an by for from with and or my user users current "
    "currently new own main primary full first last middle preferred prefers prefer likes like liked loves love enjoys "
    "dislikes dislike hates hate wants want needs need uses use owns own lives live works work speaks speak plays play "
    "drives drive takes take eats eat drinks drink born start end since until date time day type kind name names info "
    "details status level count number total again not no"
)
_KINDS = _GRAMMAR | word_set(
    "nickname surname location city town village country region state province district neighbourhood neighborhood "
    "address street postcode zip home hometown residence birthplace birthday birthdate birth origin nationality "
    "citizenship ethnicity language languages mother tongue occupation job title profession role position career "
    "employer employers company workplace office industry field team department boss manager colleague coworker salary "
    "income education degree school university college course studies study subject major age gender sex pronouns "
    "height "
    "weight size shoe clothing eye hair colour color blood group diet dietary food foods dish meal drink cuisine "
    "restaurant allergy allergies allergic intolerance restriction restrictions medication medicine medicines dose "
    "dosage condition illness disease diagnosis injury health symptom symptoms doctor dentist therapist vet pharmacy "
    "insurance smoker smoking alcohol sleep bedtime exercise sport sports gym hobby hobbies interest interests "
    "favourite "
    "favorite music genre band artist song singer instrument film movie show series book author game games team club "
    "season flower bird animal tree number colour pet pets dog dogs cat cats fish horse rabbit parrot hamster breed "
    "family mother mom mum father dad parent parents sister brother sibling siblings son daughter child children kid "
    "kids baby husband wife spouse partner girlfriend boyfriend fiance fiancee grandmother grandfather grandparents "
    "grandma grandpa aunt uncle cousin niece nephew twin friend friends best roommate flatmate neighbour neighbor "
    "landlord tenant marital relationship wedding anniversary married religion faith politics political party zodiac "
    "star sign car vehicle bike bicycle motorcycle phone telephone mobile email mail contact website url account "
    "username handle computer laptop device operating system editor programming tool tools software app browser theme "
    "project projects goal goals plan plans trip travel vacation holiday destination visited appointment meeting event "
    "deadline schedule routine habit habits preference preferences style tone format length unit units timezone zone "
    "currency budget money bank savings debt rent house flat apartment garden room floor mood feeling feelings emotion "
    "fear dream wish opinion belief value values skill skills talent experience expertise certification award military "
    "service note notes fact thing things reminder motto quote password pin license licence plate passport visa coffee "
    "tea order flight flights train bus ticket tickets booking reservation hotel departure arrival seat newspaper "
    "magazine podcast channel shop store brand"
)
_NAMED = word_set(
    "name nickname surname location city town village country region state hometown birthplace residence employer "
    "company "
    "workplace school university college address street email mail website url link account iban phone telephone "
    "mobile "
    "username handle"
)
_RELATED = word_set(
    "boss manager doctor dentist landlord therapist wife husband spouse partner girlfriend boyfriend sister brother "
    "mother "
    "father son daughter friend colleague teacher lawyer bank cousin uncle aunt"
)
_NOT_NAMES = word_set(
    "self employed freelance freelancer none home remote remotely abroad unemployed retired the a an in at of and near "
    "on my his her their city town village area region state street st dr mr mrs ms de la le der die das und et y e i "
    "im "
    "am bei user"
)
_LIKING = word_set("likes like liked loves love enjoys prefers fan can eats drinks speaks owns wants plays uses smoker")
_DISLIKING = word_set(
    "dislikes dislike hates hate avoids allergy allergies allergic intolerance intolerant not no non without never "
    "cannot unable former"
)
_TRUTHS = word_set("yes no true false ja nein oui non si s\u00ed n\u00e3o sim da \u0434\u0430 \u043d\u0435\u0442")
_INDEX = late_pattern(r"[1-9]")


def key_words(key: str) -> list[str]:
    """Split a key into its words."""
    return [part for part in key.split("_") if part]


def added_words(key: str, *, is_truth: bool) -> Iterator[str]:
    """Yield the words of a key that say more than what kind of thing its value is.

    If the value is yes or no (`is_truth`), these are all but the grammatical words. A single digit adds nothing: it
    numbers things of a kind.
    """
    known = _GRAMMAR if is_truth else _KINDS
    return (word for word in key_words(key) if word not in known and not _INDEX.fullmatch(word))


def is_truth(value: str) -> bool:
    """Tell whether a folded value is yes or no: then the key itself makes the statement."""
    return value in _TRUTHS


def names_something(key: str | None, *, is_english: bool) -> bool:
    """Tell whether the value under `key` is a name or an address, also in small letters.

    With `is_english` (key and sentence share their language) this includes relations, such as the user's doctor.
    """
    last = key_words(key)[-1:] if key is not None else []
    return bool(last) and (last[0] in _NAMED or (is_english and last[0] in _RELATED))


def may_be_unsaid(word: str) -> bool:
    """Tell whether `word` in such a value is no part of the name, so that the user need not have said it."""
    return word in _NOT_NAMES


def judges(key: str) -> bool:
    """Tell whether `key` itself affirms or denies something ("likes", "allergy")."""
    return not (_LIKING | _DISLIKING).isdisjoint(key_words(key))
