# ruff: noqa: RUF001 - words of many languages, written as their speakers do
"""Questions that ask for a time and nothing else: "what did we discuss yesterday". One pure rule.

A question asks for nothing else if the rest of it, without its time, has only words of the table, all of one language:
question words, helping verbs, words of talking and happening, and those that ask for an order or an overview. One
unknown word (pizza, Anna, eat) makes it a question about something.
"""

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.words import word_set

MOST_CHARACTERS = 150
"""A longer rest is never such a question."""

_WORDS = (
    word_set(
        "what s whats which how did do does done have has had ve we i you us me my our your was were is are been "
        "be the a an of about on in at to with from for during over up and so then there again that it this else "
        "discuss discussed discussing talk talked talking say said saying tell told speak spoke spoken chat "
        "chatted chatting chats mention mentioned ask asked happen happened happening happens going went "
        "everything anything something all things thing stuff topics topic subject subjects conversation "
        "conversations discussion discussions message messages summary summarize summarise recap review list show "
        "overview chronological chronologically timeline event events cover covered came come new these those whole "
        "entire remind give can could would will please catch remember recall hi hey hello ok okay exactly each other"
    ),
    word_set(
        "was worüber wovon worum welche wie wir ich du ihr sie haben hatten hast hattest habe hatte hat war waren "
        "ist gab es geht ging um gesprochen geredet besprochen gesagt erzählt diskutiert geschrieben gefragt "
        "unterhalten passiert geschehen los gemacht getan sagte sagten sprachen redeten besprachen uns mir dir "
        "mich dich miteinander zusammen alles alle zusammenfassung fasse fass überblick liste auf zähle reihenfolge "
        "welcher welches chronologisch chronologischer zeitlicher abfolge ablauf zeig zeige gib nenne erzähl erzähle "
        "unser unsere unserem unseren gespräch gespräche unterhaltung unterhaltungen nachrichten themen thema neues "
        "ganze ganzen über von vom mit und denn so noch mal nochmal kannst bitte erinnere erinnerst daran an am im in "
        "bei die das der den dem "
        "eine einen"
    ),
    word_set(
        "de quoi que qu est ce c qui s il y ai as a avons avez avions on nous je tu vous j t m d l moi toi te me "
        "se parlé discuté dit passé fait raconté évoqué abordé échangé était parlions disait la le les un une "
        "notre nos conversation conversations messages discussion discussions résumé résume résumez montre "
        "rappelle tout sujet sujets quel quels quelles à propos au du en pendant et alors"
    ),
    word_set(
        "de qué que cuáles hablamos hablábamos hablado discutimos discutido dijimos dije dijiste dicho conté "
        "contaste comentamos comentado charlamos conversamos pasó pasado ocurrió sucedió ha he hemos has nosotros "
        "tú yo te me nos se fue era es conversación conversaciones mensajes resumen resume resúmeme muéstrame "
        "recuérdame todo lo el la los las un nuestra nuestras nuestros temas tema sobre acerca hicimos hice en "
        "con y del cosas"
    ),
    word_set(
        "di che cosa cos quali è abbiamo hai ho parlato discusso detto detti raccontato chiacchierato successo "
        "accaduto fatto ci siamo noi io tu mi ti si la il le i gli l un nostra nostre nostri conversazione "
        "conversazioni messaggi riassunto riassumi mostrami ricordami tutto argomenti argomento era del della "
        "nella in e con su"
    ),
    word_set(
        "o que do de da sobre qual quais falamos falado discutimos conversamos conversado dissemos disse "
        "aconteceu foi era temos tínhamos eu nós você a gente me te nos se os as um nossa nossas nossos conversa "
        "conversas mensagens resumo resuma mostre lembre tudo assunto assuntos na no em com e fizemos fiz"
    ),
    word_set(
        "wat waar waarover hebben heb hebt hadden we wij ik jij je besproken gepraat gesproken gezegd verteld "
        "gebeurd is was er het over gehad ons onze mij me jou gesprek gesprekken berichten samenvatting alles de "
        "van met en gedaan een geef toon in op"
    ),
    word_set(
        "что о об чём чем мы я ты вы мне тебе говорили обсуждали обсудили говорил говорила сказал сказала сказали "
        "было произошло случилось происходило с тобой вами наш наши нашего разговор разговора разговоры сообщения "
        "всё все итоги покажи напомни и в на"
    ),
    word_set(
        "o czym co rozmawialiśmy mówiliśmy omawialiśmy omówiliśmy powiedziałem powiedziałam mówiłem mówiłam było "
        "stało się wydarzyło działo nasza naszej nasze rozmowa rozmowy wiadomości podsumowanie podsumuj pokaż z "
        "ze w my ja mi"
    ),
)
_PHRASES = word_set(
    "何を話した 何を話したか 何を話したの 何を話しましたか 何の話をした 何を話したっけ 何があった 何がありましたか "
    "は何を話した は何があった 说了什么 聊了什么 讨论了什么 发生了什么 我们说了什么 我们聊了什么 我们谈了什么 "
    "我们讨论了什么 我們聊了什麼 我們討論了什麼"
)
_WORD = late_pattern(r"\w+")
_IN_ORDER = late_pattern(r"\bin (?:(?:which|what|the|their|chronological) )*(?:order|sequence)\b")
"""An order that is asked for. The word alone does not pass for one: "what did I order yesterday?"."""


def asks_for_nothing_else(rest: str) -> bool:
    """Tell whether `rest`, a question without the time it names, asks for that time alone; an empty one does."""
    if len(rest) > MOST_CHARACTERS:
        return False
    said = _WORD.findall(_IN_ORDER.sub(" ", rest.casefold()))
    return any(language.issuperset(said) for language in _WORDS) or (len(said) == 1 and said[0] in _PHRASES)
