"""Lists words for the offline rules, where a capital letter or an article alone does not decide."""

from recollect.memory.language.words import word_set

NO_NAMES = word_set(
    "i a an the not no yes ok okay so too very just really still also never always here there back home away out "
    "in on at off up down over under sorry happy sad glad mad angry fine good great well better best bad worse "
    "ill sick sure unsure ready done busy free late early new old young tired hungry thirsty cold hot warm bored "
    "excited confused interested married single retired divorced engaged scared afraid worried annoyed pleased "
    "disappointed surprised frustrated delighted depressed relaxed stressed lonely alone lost stuck broke broken "
    "drunk sober awake asleep alive dead pregnant healthy lucky curious nervous anxious calm crazy serious "
    "kidding joking thinking going coming leaving trying looking working living doing having getting feeling "
    "being using writing reading learning thankful grateful proud ashamed aware able unable about all right wrong "
    "only both allergic vegan vegetarian gay straight bisexual trans male female human god batman later tomorrow "
    "today tonight yesterday monday tuesday wednesday thursday friday saturday sunday january february march "
    "april june july august september october november december maybe perhaps when if whenever whatever anything "
    "something nothing it that this them him her you me my your mister sir madam important irrelevant secret "
    "unknown private long short hard easy difficult common rare spelled spelt pronounced"
)
NATIONALITIES = word_set(
    "american british english scottish welsh irish french german austrian swiss italian spanish portuguese greek "
    "turkish russian ukrainian polish czech slovak hungarian romanian bulgarian serbian croatian slovenian "
    "bosnian albanian danish swedish norwegian finnish icelandic dutch belgian estonian latvian lithuanian "
    "chinese japanese korean indian pakistani bangladeshi nepali thai vietnamese indonesian malaysian filipino "
    "australian canadian mexican brazilian argentinian chilean colombian peruvian cuban egyptian moroccan "
    "algerian tunisian nigerian kenyan ethiopian ghanaian iranian iraqi israeli syrian lebanese jordanian saudi "
    "afghan european african asian"
)
RELIGIONS = word_set("christian catholic protestant orthodox muslim jewish hindu buddhist sikh atheist agnostic")
DIETS = word_set("vegan vegetarian pescatarian")
OCCUPATIONS = word_set(
    "nurse chef cook student pilot judge architect scientist accountant consultant analyst mechanic clerk coach "
    "intern soldier priest monk nun vet surgeon therapist assistant technician ceo cto cfo founder entrepreneur "
    "freelancer professor postman policeman policewoman fireman salesman saleswoman businessman businesswoman "
    "guide guard model poet librarian musician magician electrician physician politician mathematician technician "
    "waitress actress nanny secretary attorney diplomat agent builder plumber athlete dj paramedic midwife "
    "statistician historian veterinarian"
)
NO_OCCUPATIONS = word_set(
    "mother father brother sister daughter lover hater believer stranger beginner smoker drinker teenager winner "
    "loser owner member user customer outsider insider newcomer foreigner monster sinner survivor visitor leader "
    "follower supporter sleeper learner listener reader thinker dreamer fighter twin person human adult senior "
    "junior minor feminist perfectionist pessimist optimist realist idealist atheist racist tourist vegetarian "
    "humanitarian librarian's christian believer's number liar eater gamer riser other matter disaster bother "
    "donor another later newbie romantic fan bit lot little mess grandfather grandmother stepmother stepfather "
    "widower"
)
OCCUPATION_ENDINGS = ("er", "or", "ist", "ian", "eer", "wright", "smith")
NO_PLACES = word_set(
    "a an my your his her our their this that it fear hope peace pain debt sin luxury poverty the moment past "
    "future work school bed town love there here where what which danger trouble"
)
NO_VALUES = word_set(
    "not so too very really quite kinda killing going coming getting being feeling broken dead down fine ok okay "
    "good great bad better worse best tired late sick here there in at with about from under over out up off like "
    "also still just always never only what why how where when who if that this it wrong right true false done "
    "gone lost running working ready missing empty full hurting aching acting making driving trying telling "
    "asking nothing as than more less because now probably maybe almost already no yes"
)
NO_THINGS = word_set(
    "question problem point guess god goodness apologies apology mistake answer issue message understanding "
    "concern fault turn idea head back bad advice impression suggestion request thinking feeling feelings "
    "pleasure condolences thought thoughts opinion view goal day night morning evening week weekend life heart "
    "stomach mind it i"
)
PARTICLES = word_set("de da del di dos du la le van von der den ter zu bin ibn al el st")
