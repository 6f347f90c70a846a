from collections.abc import Mapping, Sequence

import pytest

from recollect.memory.ports.chat_model import ChatReply, ChatRequest, KnownMemory
from recollect.memory.providers.offline import OfflineChat
from recollect.memory.providers.offline.acknowledgement import NOT_KEPT

FACTS = {
    "name": "Ada",
    "dietary_preference": "vegan",
    "shoe_size": "38",
    "job_title": "CTO",
    "likes_sushi": "sushi",
    "likes_jazz": "jazz",
    "dislikes_rain": "rain",
    "dog_name": "Rex",
    "location": "Paris",
    "age": "36",
    "allergy_nuts": "nuts",
}


async def reply_to(message: str, **memory: object) -> str:
    known = KnownMemory(**memory)  # pyright: ignore[reportArgumentType]  # a table's row
    request = ChatRequest(
        messages=[{"role": "system", "content": "Be kind."}, {"role": "user", "content": message}], memory=known
    )
    return (await OfflineChat().complete(request)).text


CONVERSATION = [
    ("Hi, I'm Ada.", "Nice to meet you, Ada."),
    ("What is my name?", "Your name is Ada."),
    ("I live in Paris and work as a nurse.", "Noted: you live in Paris and you work as a nurse."),
    ("I like jazz, hiking and sushi.", "Noted: you like jazz, you like hiking and you like sushi."),
    ("My dog's name is Rex.", "Noted: your dog's name is Rex."),
    ("Where do I live?", "You live in Paris."),
    ("What do I do for a living?", "You work as a nurse."),
    ("What do I like?", "You like jazz, hiking and sushi."),
    ("Do I like jazz?", "Yes, you like jazz."),
    ("Do I like opera?", "I don't know that yet."),
    ("What's my dog called?", "Your dog's name is Rex."),
    ("No, my name is Eva.", "Corrected: your name is Eva, not Ada."),
    ("What's my name?", "Your name is Eva."),
    ("Is my name Ada?", "No, your name is Eva."),
    ("I moved to Berlin last week.", "Corrected: you live in Berlin, not Paris."),
    ("Where do I live now?", "You live in Berlin."),
    ("I don't like sushi any more.", "Noted: you no longer like sushi."),
    ("What do I like?", "You like jazz and hiking."),
    ("I like hiking.", "I know: you like hiking."),
    ("I'm Eva, what's my job?", "I know: your name is Eva. You work as a nurse."),
    ("We flew to Lisbon in June.", "Understood."),
    ("Where did we fly in June?", "You told me: 'We flew to Lisbon in June.'"),
    ("Thanks!", "You're welcome, Eva."),
    ("What is the capital of France?", "I don't know that yet."),
]


async def test_a_conversation_is_remembered_from_the_window_alone() -> None:
    chat, messages, replies = OfflineChat(), list[Mapping[str, str]](), list[str]()
    for said, _ in CONVERSATION:
        messages.append({"role": "user", "content": said})
        replies.append((await chat.complete(ChatRequest(messages=messages))).text)
        messages.append({"role": "assistant", "content": replies[-1]})
    assert list(zip((said for said, _ in CONVERSATION), replies, strict=True)) == CONVERSATION


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is my dietary preference?", "Your dietary preference is vegan."),
        ("What size are my shoes?", "Your shoe size is 38."),
        ("what do i do", "Your job title is CTO."),
        ("What is my dog's name?", "Your dog's name is Rex."),
        ("Tell me my name", "Your name is Ada."),
        ("Do you remember where I live?", "You live in Paris."),
        ("Do I live in Rome?", "No, you live in Paris."),
        ("How old am I?", "You are 36 years old."),
        ("What am I allergic to?", "You are allergic to nuts."),
        ("What do I like?", "You like sushi and jazz."),
        ("What don't I like?", "You dislike rain."),
        ("Do I like rain?", "No, you dislike rain."),
        ("What's my cat's name?", "I don't know that yet."),
        ("What is my last name?", "I don't know that yet."),
        ("What am I afraid of?", "I remember: The user is afraid of spiders."),
        ("Where did I meet Tom?", "You told me: 'I met Tom at the station.'"),
        ("Who won the cup?", "I don't know that yet."),
    ],
)
async def test_answers_come_from_what_was_recalled(question: str, answer: str) -> None:
    notes, recalled = ["The user is afraid of spiders."], ["Noted: you met Tom.", "I met Tom at the station.", "Hi"]
    assert await reply_to(question, facts=FACTS, notes=notes, recalled=recalled) == answer


@pytest.mark.parametrize(
    ("key", "question", "answer"),
    [
        ("birthday", "When is my birthday?", "Your birthday is X."),
        ("favourite_colour", "What's my favorite color?", "Your favourite colour is X."),
        ("car", "What car do I drive?", "Your car is X."),
        ("email_address", "what is my email address", "Your email address is X."),
        ("hometown", "Where am I from?", "You are from X."),
        ("employer", "Who do I work for?", "You work at X."),
    ],
)
async def test_any_key_can_be_asked_for(key: str, question: str, answer: str) -> None:
    assert await reply_to(question, facts={key: "X"}) == answer


async def test_a_documents_words_are_not_the_users() -> None:
    given = {"recalled": ["I met Tom."], "passages": ["Dinner is served at seven."]}
    assert await reply_to("When is dinner served?", **given) == "Your documents say: 'Dinner is served at seven.'"
    assert await reply_to("Where did I meet Tom?", **given) == "You told me: 'I met Tom.'"


async def test_all_that_is_known_is_listed() -> None:
    answer = await reply_to("What do you know about me?", facts={"name": "Ada", "age": "36"}, notes=["They paint."])
    assert answer == "Here is what I know about you:\n- Your name is Ada.\n- You are 36 years old.\n- They paint."
    assert await reply_to("What do you know about me?") == "I don't know anything about you yet."


async def test_what_the_window_says_later_wins_over_the_facts() -> None:
    messages = [
        {"role": "user", "content": "I live in Rome now."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": [{"type": "text", "text": "Where do I live?"}]},
    ]
    reply = await OfflineChat().complete(ChatRequest(messages=messages, memory=KnownMemory(facts=FACTS)))
    assert reply.text == "You live in Rome."


async def test_the_stream_is_the_reply_word_by_word_and_usage_is_counted() -> None:
    chat = OfflineChat()
    request = ChatRequest(messages=[{"role": "user", "content": "Hi, I'm Ada."}])
    pieces: list[str | ChatReply] = [piece async for piece in chat.stream(request)]
    reply = await chat.complete(request)
    assert pieces == ["Nice", " to", " meet", " you,", " Ada.", reply]
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 6)
    assert (reply.model, chat.name, chat.calls_tools) == ("offline", "offline", False)


@pytest.mark.parametrize("messages", [[], [{"role": "user"}], [{"role": "user", "content": None}]])
async def test_a_request_without_words_is_answered_too(messages: Sequence[Mapping[str, object]]) -> None:
    assert (await OfflineChat().complete(ChatRequest(messages=messages))).text == "Understood."


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("I live in Rome.", f"Understood: you live in Rome. {NOT_KEPT}"),
        ("Hi, I'm Ada. I work as a nurse.", f"Nice to meet you, Ada. Understood: you work as a nurse. {NOT_KEPT}"),
        ("I live in Rome. Where do I live?", f"Understood: you live in Rome. You live in Rome. {NOT_KEPT}"),
        ("The weather turned.", f"Understood. {NOT_KEPT}"),
        ("Hello", "Hello."),
        ("Thanks!", "You're welcome."),
    ],
)
async def test_where_nothing_is_kept_the_reply_says_so(message: str, says: str) -> None:
    request = ChatRequest(messages=[{"role": "user", "content": message}], memory=KnownMemory(is_kept=False))
    assert (await OfflineChat().complete(request)).text == says
