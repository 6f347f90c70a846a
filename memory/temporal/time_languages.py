# ruff: noqa: RUF001 - words of many languages, written as their speakers do
"""The languages other than English and German that a text names a time in: a cheap check before dateparser runs. Pure.

A language is listed with the words of past times that no English or German text has. A script that only one or two
languages use needs no list.
"""

from collections import Counter

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.words import word_set

_WORDS = {
    "fr": "aujourd lundi mardi mercredi jeudi vendredi samedi dimanche semaine semaines mois année années jours "
    "dernier dernière janvier février avril juin juillet août septembre octobre novembre décembre",
    "es": "ayer anteayer anoche hoy lunes miércoles jueves viernes sábado semana semanas pasada pasado meses días año "
    "años hace enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "ieri oggi lunedì martedì mercoledì giovedì venerdì sabato domenica settimana settimane scorsa scorso mese "
    "mesi giorni anno gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "ontem anteontem hoje segunda terça quarta quinta sexta semana semanas passada passado mês meses dias anos "
    "atrás fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "nl": "gisteren eergisteren vandaag maandag dinsdag woensdag donderdag vrijdag zaterdag zondag vorige afgelopen "
    "geleden weken maanden deze vorig jaar maand januari februari maart mei augustus",
    "pl": "wczoraj przedwczoraj dzisiaj dziś poniedziałek wtorek środa środę czwartek piątek sobota sobotę niedziela "
    "niedzielę tydzień tygodniu tygodnie tygodni zeszły zeszłym zeszłego miesiąc miesiącu miesiące miesięcy temu roku "
    "stycznia styczniu lutego lutym marca marcu kwietnia kwietniu maja maju czerwca czerwcu lipca lipcu sierpnia "
    "sierpniu września wrześniu października październiku listopada listopadzie grudnia grudniu",
    "sv": "igår idag måndag tisdag onsdag torsdag fredag lördag söndag förra veckan veckor månaden månader går",
    "da": "går forgårs mandag tirsdag onsdag torsdag fredag lørdag søndag sidste uge uger måned måneder siden",
    "cs": "včera předevčírem dnes pondělí úterý středu čtvrtek pátek sobotu neděli týden týdnu týdny minulý minulém "
    "měsíc měsíci měsíci lety ledna února března dubna května června července srpna října listopadu prosince",
    "tr": "dün bugün geçen hafta önce pazartesi salı çarşamba perşembe cuma cumartesi ocak şubat mart nisan mayıs "
    "haziran temmuz ağustos eylül ekim kasım aralık",
    "ru": "вчера позавчера сегодня понедельник вторник среду среда четверг пятницу пятница субботу суббота воскресенье "
    "неделе неделю недели недель прошлой прошлую прошлом прошлый месяце месяц месяца месяцев назад год году года лет "
    "января январе февраля феврале марта марте апреля апреле мая мае июня июне июля июле августа августе сентября "
    "сентябре октября октябре ноября ноябре декабря декабре",
    "uk": "вчора позавчора сьогодні понеділок вівторок середу четвер пятницю суботу неділю тижня тижні тиждень тижнів "
    "минулого місяця місяць місяців тому року років",
}
_WORD_SETS = {language: word_set(text) for language, text in _WORDS.items()}
_LANGUAGES = {
    word: tuple(language for language, its in _WORD_SETS.items() if word in its)
    for words in _WORD_SETS.values()
    for word in words
}
_FRENCH = word_set(
    "nous avons avez quoi qu que est c dans pour avec sur parlé discuté ai le les au une était vous passé"
)
_DOUBTFUL = {
    "hier": ("fr", _FRENCH),
    "mars": ("fr", _FRENCH | {"en"}),
    "ans": ("fr", _FRENCH | {"il", "y"}),
    "janeiro": ("pt", word_set("em que nós uma um dia foi falamos discutimos passado")),
}
"""Words that count only beside one of these: "hier" and "ans" are German too, Mars is a planet, Janeiro in a city."""
_SCRIPTS = (
    (late_pattern("[\u3040-\u30ff]"), ("ja",)),
    (late_pattern("[\u4e00-\u9fff]"), ("zh", "zh-Hant", "ja")),
    (late_pattern("[\uac00-\ud7a3]"), ("ko",)),
    (late_pattern("[\u0590-\u05ff]"), ("he",)),
    (late_pattern("[\u0600-\u06ff]"), ("ar", "fa")),
    (late_pattern("[\u0370-\u03ff]"), ("el",)),
    (late_pattern("[\u0900-\u097f]"), ("hi",)),
    (late_pattern("[\u0e00-\u0e7f]"), ("th",)),
)
_MOST = 2
_WORD = late_pattern(r"[^\W\d_]+")


def languages_of(text: str) -> tuple[str, ...]:
    """Return the codes of at most three languages, the likelier first; none where the text names no time in any."""
    said = set(_WORD.findall(text.casefold()))
    found = said & _LANGUAGES.keys()
    votes = Counter(language for word in found for language in _LANGUAGES[word])
    doubtful = (_DOUBTFUL[word] for word in said & _DOUBTFUL.keys())
    votes.update(language for language, among in doubtful if not said.isdisjoint(among))
    if votes:
        return tuple(language for language, _ in votes.most_common(_MOST))
    if text.isascii():
        return ()
    return next((languages for script, languages in _SCRIPTS if script.search(text)), ())


def time_words(language: str) -> frozenset[str]:
    """Return the words by which `languages_of` recognises the language; none for one that its script identifies."""
    return word_set(_WORDS.get(language, "")) | {word for word, (its, _) in _DOUBTFUL.items() if its == language}
