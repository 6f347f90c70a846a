"""Checks what a quote carries: each row is a message, its quote, key, value, statement, and maybe a question."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.learning.proof.claim import ProposedFact, carried_tags, proof_problem
from recollect.memory.learning.proof.evidence import heard
from recollect.memory.learning.proof.witness import Witness

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def problem(*row: Any, **more: Any) -> str | None:
    said, quote, key, value, statement, asked = (*row, "")[:6]
    witness = Witness.of(said, heard(said), at=AT, asked=asked)
    return proof_problem(ProposedFact(key, value, statement, **more), quote, witness)


CARRIED: list[tuple[Any, ...]] = [
    ("I live in Paris.", "I live in Paris", "location", "Paris", "The user lives in Paris."),
    ("Ich wohne in München.", "Ich wohne in München", "location", "Munich", "The user lives in Munich."),
    ("Ich wohne in München.", "Ich wohne in München", "location", "München", "Der Nutzer wohnt in München."),
    ("Mein Hund heißt Rex", "Mein Hund heißt Rex", "dog_name", "Rex", "The user's dog is called Rex."),
    ("Mein Hund heißt Rex", "Mein Hund heißt Rex", "dog_name", "Rex", "Der Hund des Nutzers heißt Rex."),
    (
        "J'habite à Londres depuis 2019.",
        "J'habite à Londres depuis 2019",
        "location",
        "London",
        "The user has lived in London since 2019.",
    ),
    ("Je suis allergique aux noix.", "Je suis allergique aux noix", "allergy", "nuts", "The user is allergic to nuts."),
    ("No como carne.", "No como carne", "diet", "no meat", "The user does not eat meat."),
    (
        "Soy alérgica a los frutos secos",
        "Soy alérgica a los frutos secos",
        "allergy_nuts",
        "nuts",
        "The user is allergic to nuts.",
    ),
    ("Tengo dos hijos", "Tengo dos hijos", "children", "2", "The user has two children."),
    ("私は東京に住んでいます。", "東京に住んでいます", "location", "Tokyo", "The user lives in Tokyo."),
    ("私は東京に住んでいます。", "私は東京に住んでいます", "location", "東京", "ユーザーは東京に住んでいる。"),
    ("我叫王伟,今年三十五岁。", "我叫王伟", "name", "王伟", "用户的名字是王伟。"),
    ("我今年三十五岁。", "我今年三十五岁", "age", "35", "The user is 35 years old."),
    ("我对花生过敏", "我对花生过敏", "allergy", "peanuts", "The user is allergic to peanuts."),
    ("我不吃肉", "我不吃肉", "diet", "no meat", "The user does not eat meat."),
    ("Меня зовут Анна", "Меня зовут Анна", "name", "Anna", "The user's name is Anna."),
    ("Я живу в Москве", "Я живу в Москве", "location", "Moscow", "The user lives in Moscow."),
    ("I moved to Oslo last year", "I moved to Oslo last year", "location", "Oslo", "The user moved to Oslo in 2025."),
    ("I'm 6 feet tall", "I'm 6 feet tall", "height", "183 cm", "The user is 183 cm tall."),
    ("I don't like jazz", "I don't like jazz", "dislikes_jazz", "jazz", "The user dislikes jazz."),
    ("I have two cats", "I have two cats", "number_of_cats", "2", "The user has 2 cats."),
    ("My birthday is 3 May", "My birthday is 3 May", "birthday", "May 3", "The user's birthday is May 3rd."),
    (
        "I was born on 3 May 1990",
        "I was born on 3 May 1990",
        "birthdate",
        "1990-05-03",
        "The user was born on 1990-05-03.",
    ),
    ("Ada", "Ada", "name", "Ada", "The user's name is Ada."),
    ("I live in Oslo with Rex.", "Oslo", "city", "Oslo", "The user's city is Oslo."),
    ("my knee hurts", "my knee hurts", "health_issue", "knee pain", "The user has knee pain."),
    ("I'm not Bob, I'm Ada", "I'm not Bob, I'm Ada", "name", "Ada", "The user's name is Ada."),
    (
        "I'm a nurse at St. Mary's Hospital",
        "I'm a nurse at St. Mary's Hospital",
        "employer",
        "St. Mary's Hospital",
        "The user works at St. Mary's Hospital.",
    ),
    ("Don't forget that I like jazz", "Don't forget that I like jazz", "likes_jazz", "jazz", "The user likes jazz."),
    (
        "I no longer live in Paris, I live in Rome now",
        "I live in Rome now",
        "location",
        "Rome",
        "The user lives in Rome.",
    ),
    ("I can't eat nuts", "I can't eat nuts", "allergy_nuts", "nuts", "The user is allergic to nuts."),
    (
        "My phone number is 555 1234.",
        "My phone number is 555 1234",
        "phone_number",
        "555-1234",
        "The user's phone number is 555-1234.",
    ),
    (
        "My mail is ada@example.org",
        "My mail is ada@example.org",
        "email",
        "ada@example.org",
        "The user's e-mail address is ada@example.org.",
    ),
    (
        "I work as a software engineer",
        "I work as a software engineer",
        "occupation",
        "Software engineer",
        "The user works as a software engineer.",
    ),
    ("I'm from Germany", "I'm from Germany", "nationality", "German", "The user is German."),
    ("Ich mag keinen Jazz", "Ich mag keinen Jazz", "dislikes_jazz", "Jazz", "Der Nutzer mag keinen Jazz."),
    (
        "Ich arbeite als Krankenschwester",
        "Ich arbeite als Krankenschwester",
        "occupation",
        "nurse",
        "The user works as a nurse.",
    ),
    (
        "J'ai un chat qui s'appelle Minou",
        "J'ai un chat qui s'appelle Minou",
        "cat_name",
        "Minou",
        "L'utilisateur a un chat qui s'appelle Minou.",
    ),
    ("meine Schwester heißt Eva", "meine Schwester heißt Eva", "sister_name", "Eva", "The user's sister is named Eva."),
    ("저는 서울에 살아요", "저는 서울에 살아요", "location", "Seoul", "The user lives in Seoul."),
    ("犬を飼っています。名前はポチです。", "名前はポチです", "dog_name", "ポチ", "ユーザーの犬の名前はポチ。"),
    ("I run 5 km every day", "I run 5 km every day", "running", "5 kilometres", "The user runs 5 kilometres daily."),
    ("Yes", "Yes", "vegetarian", "yes", "The user is vegetarian.", "Are you vegetarian?"),
    ("No", "No", "smoker", "no", "The user does not smoke.", "Do you smoke?"),
    ("Ada", "Ada", "name", "Ada", "The user's name is Ada.", "What is your name?"),
    (
        "I can't wait to visit Rome in spring",
        "I can't wait to visit Rome in spring",
        "travel_plan",
        "Rome",
        "The user plans to visit Rome in spring.",
    ),
    ("I hate jazz", "I hate jazz", "dislikes_jazz", "jazz", "The user dislikes jazz."),
    ("I'm vegan", "I'm vegan", "diet", "vegan", "The user is vegan."),
    ("I work for the BBC in London", "I work for the BBC in London", "employer", "BBC", "The user works for the BBC."),
    ("I wear size 41", "I wear size 41", "shoe_size", "41", "The user's shoe size is 41."),
    ("My dose of iron is 5 mg", "My dose of iron is 5 mg", "dose_of_iron", "5mg", "The user takes 5 mg of iron."),
    ("J'ai quatre-vingts ans", "J'ai quatre-vingts ans", "age", "80", "The user is 80 years old."),
    ("Ich bin einundzwanzig Jahre alt.", "Ich bin einundzwanzig Jahre alt", "age", "21", "The user is 21 years old."),
    (
        "Mi cumpleaños es el 3 de mayo",
        "Mi cumpleaños es el 3 de mayo",
        "birthday",
        "May 3",
        "The user's birthday is 3 May.",
    ),
    ("Non mangio pesce", "Non mangio pesce", "diet", "no fish", "The user doesn't eat fish."),
    ("Moro no Brasil", "Moro no Brasil", "country", "Brazil", "The user lives in Brazil."),
    ("I moved here three years ago", "I moved here three years ago", "moved", "2023", "The user moved in 2023."),
    (
        "Tomorrow I fly to Rome",
        "Tomorrow I fly to Rome",
        "trip",
        "Rome on 2026-01-03",
        "The user flies to Rome on 3 January 2026.",
    ),
    ("I get up at half past six", "I get up at half past six", "wake_up_time", "6:30", "The user gets up at 6:30."),
    ("I moved to Oslo in May", "I moved to Oslo in May", "location", "Oslo", "The user moved to Oslo in May 2025."),
    (
        "I drink two litres of water a day",
        "I drink two litres of water a day",
        "water_intake",
        "2 L",
        "The user drinks 2 L of water a day.",
    ),
    ("Ich liebe meine Katzen", "Ich liebe meine Katzen", "likes_cats", "cats", "The user loves cats."),
    (
        "My wife Anna is from Kraków",
        "My wife Anna is from Kraków",
        "wife_name",
        "Anna",
        "The user's wife Anna is from Krakow.",
    ),
    (
        "Ma femme s'appelle Zoé",
        "Ma femme s'appelle Zoé",
        "wife_name",
        "Zoé",
        "L'épouse de l'utilisateur s'appelle Zoé.",
    ),
    (
        "Trabajo como médico en Sevilla",
        "Trabajo como médico en Sevilla",
        "occupation",
        "doctor",
        "The user works as a doctor in Seville.",
    ),
    (
        "Je parle français et allemand",
        "Je parle français et allemand",
        "languages",
        "French, German",
        "The user speaks French and German.",
    ),
    (
        "I'm a Software Engineer",
        "I'm a Software Engineer",
        "occupation",
        "software engineer",
        "The user is a software engineer.",
    ),
    (
        "I'm an SWE at Google",
        "I'm an SWE at Google",
        "occupation",
        "Software Engineer",
        "The user is a software engineer at Google.",
    ),
    (
        "Please reply in German",
        "Please reply in German",
        "preferred_language",
        "German",
        "The user prefers replies in German.",
    ),
    (
        "Bitte antworte auf Deutsch",
        "Bitte antworte auf Deutsch",
        "preferred_language",
        "German",
        "The user prefers answers in German.",
    ),
    (
        "I have an appointment on Friday at 3pm",
        "I have an appointment on Friday at 3pm",
        "appointment",
        "Friday 15:00",
        "The user has an appointment on Friday at 15:00.",
    ),
    ("I weigh 80 kilos", "I weigh 80 kilos", "weight", "80 kg", "The user weighs 80 kg."),
    ("私の誕生日は5月3日です", "私の誕生日は5月3日です", "birthday", "May 3", "The user's birthday is 3 May."),
    ("我的生日是5月3日", "我的生日是5月3日", "birthday", "5月3日", "用户的生日是5月3日。"),
    (
        "我在上海的一家银行工作",
        "我在上海的一家银行工作",
        "location",
        "Shanghai",
        "The user works at a bank in Shanghai.",
    ),
    ("私は看護師です", "私は看護師です", "occupation", "看護師", "ユーザーは看護師である。"),
    ("Ich bin Vegetarierin", "Ich bin Vegetarierin", "diet", "vegetarian", "The user is a vegetarian."),
    ("I never eat meat", "I never eat meat", "diet", "vegetarian", "The user never eats meat."),
    ("I quit smoking", "I quit smoking", "smoking", "quit", "The user has quit smoking."),
    ("I don't have any pets", "I don't have any pets", "pets", "none", "The user has no pets."),
    ("I'm not married", "I'm not married", "marital_status", "single", "The user is not married."),
    (
        "I've been a teacher for ten years",
        "I've been a teacher for ten years",
        "teaching_experience",
        "10 years",
        "The user has been a teacher for 10 years.",
    ),
    (
        "My flat is at 12 Baker Street, London",
        "My flat is at 12 Baker Street, London",
        "address",
        "12 Baker Street, London",
        "The user lives at 12 Baker Street, London.",
    ),
    ("my mom's name is Ruth", "my mom's name is Ruth", "mother_name", "Ruth", "The user's mother is named Ruth."),
    ("I use a MacBook Pro M3", "I use a MacBook Pro M3", "laptop", "MacBook Pro M3", "The user uses a MacBook Pro M3."),
    (
        "Mi hija nació el 2 de abril de 2020",
        "Mi hija nació el 2 de abril de 2020",
        "daughter_birthdate",
        "2020-04-02",
        "The user's daughter was born on 2 April 2020.",
    ),
    (
        "J'ai arrêté de fumer il y a deux ans",
        "J'ai arrêté de fumer il y a deux ans",
        "smoking",
        "quit in 2024",
        "The user stopped smoking in 2024.",
    ),
    ("I'm afraid of spiders", "I'm afraid of spiders", "fear", "spiders", "The user is afraid of spiders."),
    (
        "I prefer tea over coffee",
        "I prefer tea over coffee",
        "preferred_drink",
        "tea",
        "The user prefers tea to coffee.",
    ),
    (
        "My brother doesn't eat gluten",
        "My brother doesn't eat gluten",
        "brother_diet",
        "gluten-free",
        "The user's brother does not eat gluten.",
    ),
    ("I hardly ever drink", "I hardly ever drink", "alcohol", "rarely", "The user rarely drinks alcohol."),
    ("Call me Al", "Call me Al", "preferred_name", "Al", "The user wants to be called Al."),
    ("Nenne mich bitte Al", "Nenne mich bitte Al", "preferred_name", "Al", "The user wants to be called Al."),
    (
        "Mein Geburtstag ist am 3. Mai",
        "Mein Geburtstag ist am 3. Mai",
        "birthday",
        "3 May",
        "The user's birthday is on 3 May.",
    ),
    ("Ich bin 1,85 m groß", "Ich bin 1,85 m groß", "height", "1.85 m", "The user is 1.85 m tall."),
    ("我有一只叫小黑的狗", "我有一只叫小黑的狗", "dog_name", "小黑", "用户的狗叫小黑。"),
    ("妻は花子です", "妻は花子です", "wife_name", "花子", "ユーザーの妻の名前は花子です。"),
    ("I'm learning Japanese", "I'm learning Japanese", "learning", "Japanese", "The user is learning Japanese."),
]
NOT_CARRIED: list[tuple[Any, ...]] = [
    ("I like penguins", "I", "name", "Mallory", "The user's name is Mallory."),
    (
        "I like penguins",
        "I like penguins",
        "iban",
        "DE89370400440532013000",
        "The user's IBAN is DE89370400440532013000.",
    ),
    ("Summarise", "Summarise", "support_url", "https://evil.example", "Support is at https://evil.example."),
    ("I like penguins", "I like penguins", "name", "Mallory", "The user's name is Mallory."),
    ("I like penguins", "I like penguins", "name", "mallory", "The user's name is mallory."),
    ("I like penguins. My IBAN is DE89.", "I like penguins", "iban", "DE89", "IBAN DE89"),
    ("I'm not allergic to nuts", "I'm not allergic to nuts", "allergy_nuts", "nuts", "The user is allergic to nuts."),
    ("I'm not allergic to nuts", "allergic to nuts", "allergy_nuts", "nuts", "The user is allergic to nuts."),
    ("I like jazz", "I like jazz", "likes_jazz", "jazz", "The user does not like jazz."),
    ("Ich mag keinen Jazz", "Ich mag keinen Jazz", "likes_jazz", "Jazz", "Der Nutzer mag Jazz."),
    ("Je n'aime pas le jazz", "Je n'aime pas le jazz", "likes_jazz", "jazz", "The user likes jazz."),
    ("No fumo", "No fumo", "smoker", "yes", "The user smokes."),
    ("我不吃肉", "我不吃肉", "diet", "meat", "The user eats meat."),
    ("私は肉を食べません", "私は肉を食べません", "diet", "肉", "ユーザーは肉を食べる。"),
    ("I like penguins", "I like penguins", "is_admin", "yes", "The user likes penguins."),
    ("I like penguins", "I like penguins", "iban_de89370400", "penguins", "The user likes penguins."),
    ("I have two cats", "I have two cats", "cats", "three", "The user has three cats."),
    ("I have two cats", "I have two cats", "cats", "\uff13", "The user has \uff13 cats."),
    ("I have two cats", "I have two cats", "cats", "two", "The user has two cats and a house in Mallorca."),
    (
        "My site is paypal.com",
        "My site is paypal.com",
        "website",
        "p\u0430ypal.com",
        "The user's site is p\u0430ypal.com.",
    ),
    ("I'm Ada", "I'm Ada", "name", "\u0410da", "The user's name is \u0410da."),
    ("I like penguins", "I like penguins", "note", "call five five five one two", "The user likes penguins."),
    ("I like penguins", "I like penguins", "likes_penguins", "penguins", "The user likes penguins and evil dot com."),
    (
        "I like penguins today",
        "I like penguins today",
        "likes_penguins",
        "penguins",
        "The user has liked penguins since 2019-03-04.",
    ),
    ("I no longer live in Paris", "I no longer live in Paris", "location", "Paris", "The user lives in Paris."),
    ("我喜欢企鹅", "我喜欢企鹅", "name", "马洛里", "用户的名字是马洛里。"),
    ("我喜欢企鹅", "我喜欢企鹅", None, "", "用户的名字是马洛里。"),
    ("我", "我", "name", "王伟", "用户的名字是王伟。"),
    ("总结一下", "总结", "url", "https://evil.example", "x"),
    (
        "I don't like jazz, rock or opera",
        "I don't like jazz, rock or opera",
        "likes_rock",
        "rock",
        "The user likes rock.",
    ),
    ("> My name is Mallory\nThanks, summarise", "My name is Mallory", "name", "Mallory", "The user's name is Mallory."),
    (
        "Yes",
        "Yes",
        "iban",
        "DE89370400440532013000",
        "The user's IBAN is DE89370400440532013000.",
        "Shall I summarise it?",
    ),
    ("Yes", "Yes", "smoker", "no", "The user does not smoke.", "Do you smoke?"),
    ("Yes", "Yes", "vegetarian", "yes", "The user is vegetarian.", ""),
    ("I like penguins", "I like penguins", None, "", "Mallory is the user's boss."),
    ("I like penguins", "I like penguins", "boss", "Mallory", "The user's boss is mallory."),
    ("I take 5 mg", "I take 5 mg", "dose", "50 mg", "The user takes 50 mg."),
    ("My dog Rex is three", "My dog Rex is three", "dog_name", "Max", "The user's dog is Max."),
    ("Mein Hund heißt Rex", "Mein Hund heißt Rex", "dog_name", "Mallory", "Der Hund des Nutzers heißt Mallory."),
    ("I live in Paris", "I live in Paris", "location", "Parma", "The user lives in Parma."),
    ("I like penguins", "I like penguins", "wifi_password", "penguins", "The user likes penguins."),
    (
        "I like penguins.\nhttps://evil.example/x",
        "I like penguins",
        "website",
        "https://evil.example/x",
        "https://evil.example/x",
    ),
]


@pytest.mark.parametrize("row", CARRIED, ids=lambda row: f"{row[0][:30]} {row[2]}")
def test_nothing_true_is_lost(row: tuple[Any, ...]) -> None:
    assert problem(*row) is None


@pytest.mark.parametrize("row", NOT_CARRIED, ids=lambda row: f"{row[0][:30]} {row[2]} {row[3]}")
def test_nothing_is_added_and_no_negation_dropped(row: tuple[Any, ...]) -> None:
    assert problem(*row) is not None


def test_tags_that_add_something_are_left_out() -> None:
    said = "I like penguins"
    witness = Witness.of(said, heard(said), at=AT)
    tags = ("animals", "Zoo", "call +491234567", "7", "evil.example", "of Mallory")
    assert carried_tags(tags, said, witness) == ("animals", "Zoo")


def test_what_is_known_already_may_be_worded_with_its_names() -> None:
    told = ("I moved to Rome", "I moved to Rome", "location", "Rome", "The home of Ada is Rome.")
    assert problem(*told) == "its statement adds a name that the quote's sentence lacks"
    assert problem(*told, known=frozenset({"ada"})) is None


def test_the_key_of_a_known_fact_adds_nothing() -> None:
    told = ("I like penguins", "I like penguins", "spirit_totem", "penguins", "The user likes penguins.")
    assert problem(*told) == "its key adds what the quote's sentence lacks"
    assert problem(*told, is_known_key=True) is None


def test_what_has_ended_need_not_say_so() -> None:
    told = ("I no longer live in Paris", "I no longer live in Paris", "location", "Paris", "The user lived in Paris.")
    assert problem(*told) is not None
    assert problem(*told, is_past=True) is None


@given(
    said=st.text(max_size=80), value=st.text(max_size=30), statement=st.text(max_size=60), asked=st.text(max_size=40)
)
def test_no_text_raises(said: str, value: str, statement: str, asked: str) -> None:
    problem(said, said[:40], "note", value, statement, asked)


@pytest.mark.parametrize(
    "piece",
    [
        "a ",
        "1",
        "1.",
        "one ",
        "A",
        "A ",
        "not ",
        "a, ",
        "@a",
        "a.b",
        "\u4eac",
        "\u30a2",
        "\u4e00",
        "de89 ",
        "may ",
        "5 ft ",
        "'",
        "no longer ",
    ],
)
def test_a_hostile_claim_takes_time_by_its_length(piece: str) -> None:
    text = (piece * 2_000)[:2_000]
    message = (piece * 32_000)[:32_000]
    started = time.process_time()
    problem(message, text[:1_900].strip() or "a", "note", text[:1_000], text, message)
    assert time.process_time() - started < 1.0
