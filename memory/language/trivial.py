# ruff: noqa: RUF001 - words of nine languages, written as their speakers do
"""Trivial messages: thanks, assent, greetings, laughter and emoji, which teach nothing. One pure rule.

A message is trivial if it consists only of phrases of the table, emoji and punctuation. Anything else in it (a name, a
digit, one unknown word) makes it worth reading: in doubt it is not trivial.
"""

import re
import unicodedata

from recollect.memory.language.folding import folded
from recollect.memory.language.late_pattern import late_pattern

MOST_CHARACTERS = 200
"""A longer message is never trivial."""

_PHRASES = """
ok, okay, okey, okie, okey dokey, k, kk, yes, yeah, yep, yup, ya, no, nope, nah, sure, sure thing, of course, alright
all right, right, correct, exactly, indeed, true, agreed, got it, i see, understood, noted, fine, good, great, nice
cool, perfect, wonderful, awesome, excellent, amazing, brilliant, fantastic, lovely, super, sounds good, looks good
well done, good job, very good, very nice, that is great, that s great, thats great, that is all, that s all
thats all, no problem, no worries, never mind, nevermind, you are welcome, you re welcome, youre welcome, my pleasure
don t mention it, wow, oh, ah, aha, uh, hm, hmm, mhm, oh ok, oh okay, oh no, oh well, oops, sorry, pardon, please
yes please, no thanks, no thank you, thanks, thank you, thank u, thx, tysm, thnx, cheers, many thanks, thanks a lot
thanks so much, thanks a million, thanks again, thank you again, thank you so much, thank you very much
thank you kindly, much appreciated, i appreciate it, thanks for that, thanks for your help, thank you for your help
thanks for the help, thank you for the help, thanks for everything, thank you for everything, for your help
for the help, for everything, for your time, hi, hey, hello, hiya, howdy, yo, hi there, hello there, hey there
hi again, hello again, hi all, hello everyone, greetings, welcome back, good morning, good afternoon, good evening
good night, good day, morning, gn, gm, bye, bye bye, goodbye, good bye, see you, see ya, see you later, see you soon
see you tomorrow, cya, later, take care, farewell, have a nice day, have a good day, have a great day, how are you
how are you doing, how is it going, how s it going, what s up, whats up, sup, nice to meet you, lol, lmao, rofl, haha
hehe, xd

ja, nein, nö, doch, jep, jawohl, genau, stimmt, klar, na klar, alles klar, natürlich, gut, sehr gut, super, toll
prima, schön, passt, verstanden, ach so, achso, aha, danke, danke schön, dankeschön, danke sehr, vielen dank
besten dank, herzlichen dank, tausend dank, danke dir, danke ihnen, ich danke dir, nein danke, ja bitte, bitte
bitte schön, gern, gerne, gern geschehen, kein problem, macht nichts, schon gut, hallo, hi, hey, moin, servus
grüß gott, grüß dich, guten tag, guten morgen, guten abend, gute nacht, wie geht s, wie geht es dir, tschüss, tschüs
ciao, bis bald, bis später, bis dann, bis morgen, auf wiedersehen, mach s gut, schönen tag noch, schönes wochenende
entschuldigung, na gut, in ordnung

oui, non, si, ouais, d accord, dac, ok merci, bien, très bien, c est bon, c est bien, bien sûr, parfait, super, génial
exactement, entendu, compris, je vois, merci, merci beaucoup, merci bien, mille mercis, un grand merci, non merci
oui merci, s il te plaît, s il vous plaît, stp, svp, de rien, pas de problème, pas de souci, je t en prie
je vous en prie, bonjour, bonsoir, salut, coucou, bonne nuit, bonne journée, bonne soirée, ça va, comment ça va
au revoir, à bientôt, à plus, à plus tard, à demain, désolé, désolée, pardon, mdr, ptdr

sí, si, no, claro, claro que sí, por supuesto, vale, bueno, bien, muy bien, perfecto, genial, exacto, entendido
de acuerdo, listo, estupendo, gracias, muchas gracias, mil gracias, muchísimas gracias, no gracias, sí gracias
por favor, de nada, no hay problema, no pasa nada, hola, buenas, buenos días, buen día, buenas tardes, buenas noches
qué tal, cómo estás, adiós, hasta luego, hasta pronto, hasta mañana, nos vemos, lo siento, perdón

sì, certo, certamente, va bene, bene, molto bene, perfetto, esatto, ottimo, capito, ho capito, d accordo, giusto
grazie, grazie mille, molte grazie, tante grazie, mille grazie, no grazie, sì grazie, per favore, per piacere, prego
di niente, nessun problema, ciao, salve, buongiorno, buon giorno, buonasera, buona sera, buonanotte, buona notte
buona giornata, come stai, come va, arrivederci, a presto, a dopo, a domani, ci vediamo, scusa, scusi, mi dispiace

sim, não, claro, com certeza, tá, tá bom, tá bem, está bem, está bom, certo, beleza, perfeito, ótimo, muito bem
muito bom, legal, entendi, entendido, combinado, obrigado, obrigada, muito obrigado, muito obrigada
obrigado pela ajuda, valeu, não obrigado, não obrigada, por favor, de nada, sem problema, olá, oi, e aí, bom dia
boa tarde, boa noite, tudo bem, tudo bom, como vai, tchau, adeus, até logo, até mais, até amanhã, até breve, desculpa
desculpe, kkk, rsrs

да, нет, ага, угу, неа, конечно, ладно, хорошо, отлично, прекрасно, супер, класс, круто, понятно, понял, поняла, ясно
ок, окей, точно, верно, договорились, спасибо, спс, большое спасибо, спасибо большое, огромное спасибо
спасибо за помощь, нет спасибо, да спасибо, благодарю, пожалуйста, не за что, ничего страшного, без проблем, привет
приветик, здравствуй, здравствуйте, доброе утро, добрый день, добрый вечер, доброй ночи, спокойной ночи, как дела
пока, пока пока, до свидания, до встречи, до завтра, увидимся, извини, извините, прости, простите, ой, ух ты, лол
"""
_SPACELESS_PHRASES = """
好 好的 好吧 好啊 好呀 好哒 行 行吧 可以 可以的 没问题 没事 没关系 不客气 不用谢 不用了 不用 是 是的 是啊 不 不是 不对
不行 不要 对 对的 对啊 对呀 没错 嗯 嗯嗯 恩 哦 噢 喔 啊 呀 吧 哇 唉 哎 明白 明白了 知道了 了解 了解了 收到 懂了 当然
谢谢 谢谢你 谢谢您 多谢 感谢 非常感谢 太感谢了 谢了 谢啦 辛苦了 太好了 太棒了 真棒 很好 不错 真好 厉害 完美 你好 您好
你好啊 嗨 哈喽 喂 大家好 早 早安 早上好 上午好 中午好 下午好 晚上好 晚安 你好吗 再见 拜拜 拜 回见 明天见 待会见
一会儿见 保重 对不起 抱歉 不好意思 请 哈 呵 嘻 嘿 嘿嘿 謝謝 謝謝你 多謝 沒問題 沒關係 再見 對 對的 是喔 早晨 好喔

はい いいえ うん ううん いや ええ オッケー オーケー おけ りょ 了解 了解です 了解しました りょうかい わかった
わかりました 分かった 分かりました 承知しました かしこまりました なるほど そう そうです そうですね そうですか そうか
そっか いいね いいよ いいですね いいです 大丈夫 大丈夫です もちろん お願いします よろしく よろしくお願いします
よろしくお願いいたします ありがとう ありがとうね ありがとうございます ありがとうございました どうもありがとう
どうもありがとうございます どうも サンキュー 感謝です どういたしまして すみません ごめん ごめんね ごめんなさい
こんにちは こんにちわ こんばんは おはよう おはようございます おやすみ おやすみなさい もしもし はじめまして やあ
さようなら さよなら またね じゃあね じゃあまた また明日 バイバイ お疲れ様 お疲れ様です お疲れ様でした おつかれさま
すごい すごいですね 素晴らしい 最高 やった へえ ふーん ねえ ね よ です 笑 草 あはは はは ふふ えへへ
"""
_LAUGHTER = late_pattern(
    r"(?:a?(?:ha){2,}h?|(?:he){2,}h?|(?:hi){2,}|(?:ho){2,}|a?(?:ja){2,}j?|(?:je){2,}|(?:rs){2,}|k{3,}|w{2,}|lo+l"
    r"|а?(?:ха){2,}х?|(?:хе){2,}|(?:хи){2,}|哈{2,}|呵{2,}|嘻{2,}|笑{2,}|草{2,})"
)
_EMOTICON = late_pattern(r"(?<!\S)(?:[:;=][-'^o]?[)(\][dDpPoO3*/\\|]+|[xX]D+|</?3+|\^[_.]?\^|T_T|[oO]_[oO]|:'\()(?!\S)")
_LONG_DRAWN = late_pattern(r"(\w)\1{2,}")
_ASCII_WORD = late_pattern(r"[A-Za-z]+")
_REGIONAL = range(0x1F1E6, 0x1F200)
_MOST_WORDS = 12


def is_trivial(message: str) -> bool:
    """Tell whether `message` has nothing to learn from: see the module."""
    if len(message) > MOST_CHARACTERS:
        return False
    left = _EMOTICON.sub(" ", message)
    if left.isascii() and len(_ASCII_WORD.findall(left)) > _MOST_WORDS:  # they would not grow fewer
        return False
    said = _said(left)
    if said is None:
        return False
    tokens = said.split()
    if len(tokens) > _MOST_WORDS:
        return False
    reached = [True] + [False] * len(tokens)
    for end in range(1, len(tokens) + 1):
        reached[end] = any(
            reached[start] and _is_phrase(tokens[start:end]) for start in range(max(0, end - _LONGEST), end)
        )
    return reached[-1]


def _said(text: str) -> str | None:
    """Return the letters of `text`, folded, a space for all else; None if it has a digit, flag or other symbol."""
    kept: list[str] = []
    for char in folded(text):
        category = unicodedata.category(char)
        if category in {"Nd", "Nl", "No", "Sc", "Cs"} or (category == "Sm" and char not in "~|") or _is_flag(char):
            return None
        is_mark = category in {"Mn", "Mc"} and bool(kept) and kept[-1] != " "
        kept.append(char if category.startswith("L") or (is_mark and char != "\ufe0f") else " ")
    return "".join(kept)


def _is_flag(char: str) -> bool:
    """Tell whether it is a letter of a flag, which may say where somebody comes from."""
    return ord(char) in _REGIONAL


def _is_phrase(words: list[str]) -> bool:
    if tuple(words) in _TABLE:
        return True
    if len(words) > 1:
        return False
    word = words[0]
    if _LAUGHTER.fullmatch(word) or _is_spaceless(word):
        return True
    return any((_LONG_DRAWN.sub(drawn, word),) in _TABLE for drawn in (r"\1", r"\1\1"))


def _is_spaceless(word: str) -> bool:
    """Tell whether the word consists only of phrases of the languages that write no spaces."""
    reached = [True] + [False] * len(word)
    for end in range(1, len(word) + 1):
        reached[end] = any(
            reached[start] and (word[start:end] in _SPACELESS or _LAUGHTER.fullmatch(word[start:end]) is not None)
            for start in range(max(0, end - _LONGEST_SPACELESS), end)
        )
    return reached[-1]


def _table(text: str) -> frozenset[tuple[str, ...]]:
    phrases = re.split(r"[,\n]", text)
    return frozenset(tuple((_said(phrase) or "").split()) for phrase in phrases if phrase.strip())


_TABLE = _table(_PHRASES)
_SPACELESS = frozenset(_said(phrase) or "" for phrase in _SPACELESS_PHRASES.split())
_LONGEST = max(len(phrase) for phrase in _TABLE)
_LONGEST_SPACELESS = max(len(phrase) for phrase in _SPACELESS)
