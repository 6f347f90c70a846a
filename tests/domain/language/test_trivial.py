# ruff: noqa: RUF001 - messages of nine languages, written as their speakers do
import time

import pytest

from recollect.memory.language.trivial import is_trivial

TRIVIAL = [
    *("", "  \n", "?!", "...", "👍", "❤️", "👍🏽👍🏽", "👨‍👩‍👧", ":)", ":-D", "<3", "^_^"),
    *("ok", "OK!", "Okaaay", "K", "Yes.", "no", "Nope!", "hmm...", "Thanks!", "thank you so much 🙏", "Hello", "heyyy"),
    *("Thanks a lot for your help!", "Got it, thanks.", "Good morning!", "Bye, see you tomorrow", "lol", "hahahaha"),
    *("How are you?", "That's great!", "Don\u2019t mention it", "ＯＫ", "No problem. Have a nice day!", "hi there :)"),
    *("Danke schön!", "Vielen Dank", "Ja", "nein, danke", "Guten Morgen", "Alles klar, bis morgen!", "Tschüss"),
    *("Merci beaucoup !", "D'accord", "d\u2019accord, merci", "Oui", "Bonjour", "Bonne nuit", "À bientôt", "mdr"),
    *("¡Gracias!", "muchas gracias", "Vale, perfecto", "Sí", "¡Hola! ¿Qué tal?", "Buenos días", "jajaja"),
    *("Grazie mille", "Va bene, grazie", "Sì", "Ciao!", "Buongiorno", "Buona notte", "Arrivederci", "d'accordo"),
    *("Obrigado!", "muito obrigada", "Tá bom", "Sim", "não", "Olá, tudo bem?", "Boa noite", "kkkkk", "rsrsrs", "tchau"),
    *("Спасибо!", "Большое спасибо", "да", "Нет, спасибо.", "Привет", "Доброе утро!", "хахаха", "До свидания", "ок"),
    *("谢谢", "好的,谢谢!", "嗯嗯", "是的。", "不是", "你好!", "晚安", "再见", "哈哈哈", "没问题", "收到,谢谢您"),
    *("ありがとうございます", "はい、わかりました", "いいえ", "了解です!", "こんにちは", "おやすみなさい"),
    *("笑笑", "wwww", "じゃあね", "Genau.", "Hasta luego"),
]
TELLING = [
    *("Bo", "Ada", "5", "1️⃣", "+1", "$", "C++", "🇩🇪", "No sugar", "yes, Paris", "Hi, Mark", "Hi, I'm Ada"),
    *("ok, my name is Bo", "Thanks, I moved to Rome", "I'm fine, call me Al", "Good morning from Oslo", "no gluten"),
    *("I like it", "yes and no, I'm vegan", "never", "Ok, see you on Friday, it's my birthday", "<3 Eva", "lol I'm 30"),
    *("Ja, Berlin", "Danke, ich heiße Bo", "gut, ich bin Lehrer", "Nein, kein Fleisch", "Guten Morgen aus Wien"),
    *("Merci, je suis Paul", "Oui, à Lyon", "d'accord, j'habite ici", "Bonjour, moi c'est Léa", "non, pas de viande"),
    *("Gracias, soy Ana", "Sí, en Madrid", "Hola, me llamo Luz", "vale, tengo dos hijos", "no como carne"),
    *("Grazie, sono Bo", "Sì, a Roma", "ciao, vivo qui", "va bene, ho due figli", "no, niente glutine"),
    *("Obrigado, sou a Rita", "sim, no Porto", "Olá, moro aqui", "tá bom, tenho um gato", "não como carne"),
    *("да, Москва", "Спасибо, я Ира", "Привет, меня зовут Лев", "нет, я веган", "хорошо, у меня кот"),
    *("好的,我叫小明", "谢谢,我搬家了", "是的,北京", "我不吃肉", "你好,我是小红", "不是学生"),
    *("はい、東京です", "オッケー、田中です", "ありがとう、引っ越しました", "いいえ、独身です", "肉は食べません"),
    "ok " * 100,
    "yes no " * 10,
]


@pytest.mark.parametrize("message", TRIVIAL)
def test_nothing_to_learn(message: str) -> None:
    assert is_trivial(message)


@pytest.mark.parametrize("message", TELLING)
def test_in_doubt_there_is_something_to_learn(message: str) -> None:
    assert not is_trivial(message)


@pytest.mark.parametrize("piece", ["ok ", "好", "は", "ha", "a", "k", "👍", "\ud800", "\u0301"])
def test_a_hostile_message_takes_no_time(piece: str) -> None:
    started = time.process_time()
    for length in (200, 32_000):
        is_trivial((piece * length)[:length])
    assert time.process_time() - started < 0.1
