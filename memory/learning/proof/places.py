# ruff: noqa: RUF001 - names in many languages, written as their speakers do
"""Places: names of cities and countries, their people and languages, in other languages ("München", "Munich"). Pure."""

from recollect.memory.language.words import word_set

_COUNTRIES = """
germany german germans deutschland deutsch deutsche deutscher allemagne allemand allemande alemania alemán alemana
germania tedesco tedesca alemanha alemão duitsland германия германии 德国 德國 德语 ドイツ 독일;
austria austrian österreich österreicher österreicherin autriche austríaco австрия австрии 奥地利 オーストリア
오스트리아;
switzerland swiss schweiz schweizer schweizerin suisse suiza suizo svizzera suíça zwitserland швейцария швейцарии 瑞士
スイス 스위스;
france french frenchman frankreich französisch franzose französin français française francia francés francesa francese
frança frankrijk франция франции 法国 法國 法语 フランス 프랑스;
spain spanish spaniard spanien spanisch spanier spanierin espagne espagnol espagnole españa español española spagna
spagnolo espanha spanje испания испании 西班牙 スペイン 스페인;
italy italian italien italienisch italiener italienerin italie italienne italia italiano italiana itália италия италии
意大利 義大利 イタリア 이탈리아;
portugal portuguese portugiesisch portugiese portugais portugaise portugués portuguesa português португалия 葡萄牙
ポルトガル
포르투갈;
netherlands holland dutch niederlande niederlanden niederländisch niederländer pays-bas néerlandais hollandais
países_bajos
holandés holanda paesi_bassi olandese países_baixos нидерланды 荷兰 オランダ 네덜란드;
belgium belgian belgien belgier belgique belge bélgica belga belgio бельгия 比利时 ベルギー 벨기에;
england english britain british uk united_kingdom great_britain grossbritannien großbritannien englisch engländer
brite
angleterre anglais anglaise royaume-uni britannique inglaterra inglés inglesa reino_unido británico inghilterra
inglese
inglês англия англии 英国 英國 英语 イギリス 英語 영국 영어;
scotland scottish schottland schotte écosse écossais escocia escocés 苏格兰 スコットランド;
ireland irish irland ire irlande irlandais irlanda irlandés ирландия 爱尔兰 アイルランド;
usa us u.s united_states america american vereinigte_staaten amerika amerikaner amerikanisch états-unis américain
américaine estados_unidos eeuu estadounidense americano stati_uniti сша америка америки 美国 美國 アメリカ 미국;
canada canadian kanada kanadier canadien canadienne canadá canadiense канада канады 加拿大 カナダ 캐나다;
mexico mexican mexiko mexique mexicain méxico mexicano mexicana messico мексика 墨西哥 メキシコ 멕시코;
brazil brazilian brasilien brasilianisch brésil brésilien brasil brasileño brasileiro brasile бразилия 巴西 ブラジル
브라질;
argentina argentine argentinian argentinien argentin argentino аргентина 阿根廷 アルゼンチン;
russia russian russland russisch russe russie rusia ruso russo rússia россия россии русский 俄罗斯 俄国 ロシア 러시아;
ukraine ukrainian ukrainisch ukrainer ukrainien ucrania ucraniano ucraina украина украины украине 乌克兰 ウクライナ
우크라이나;
poland polish polen polnisch pole pologne polonais polonaise polonia polaco polska polsce polski польша польши 波兰
ポーランド
폴란드;
czechia czech tschechien tschechisch tchéquie tchèque chequia checo česko čeština чехия 捷克 チェコ 체코;
sweden swedish schweden schwedisch suède suédois suecia sueco svezia sverige svensk швеция 瑞典 スウェーデン 스웨덴;
norway norwegian norwegen norwegisch norvège norvégien noruega noruego norge norsk норвегия 挪威 ノルウェー;
denmark danish dane dänemark dänisch danemark danois dinamarca danés danmark dansk дания 丹麦 デンマーク;
finland finnish finnland finnisch finlande finlandais finlandia finlandés suomi финляндия 芬兰 フィンランド;
greece greek griechenland griechisch grieche grèce grec grecia griego grécia ελλάδα греция 希腊 ギリシャ 그리스;
turkey turkish türkei türkisch türke turquie turc turquía turco türkiye türkçe турция 土耳其 トルコ 터키;
hungary hungarian ungarn ungarisch hongrie hongrois hungría húngaro magyarország венгрия 匈牙利 ハンガリー;
romania romanian rumänien rumänisch roumanie roumain rumania rumano românia румыния 罗马尼亚 ルーマニア;
japan japanese japanisch japaner japon japonais japonaise japón japonés giappone giapponese japão япония японии 日本
日语
日本語 일본 일본어;
china chinese chinesisch chinois chinoise chino cina cinese китай китая 中国 中國 中文 中国語 중국 중국어;
taiwan taiwanese taiwanais taiwanés тайвань 台湾 台灣 대만;
korea korean südkorea south_korea koreanisch corée coréen corea coreano корея кореи 韩国 韓國 韓国 한국 한국어;
india indian indien indisch indienne indio índia индия индии 印度 インド 인도;
thailand thai thaïlande tailandia таиланд 泰国 タイ ประเทศไทย 태국;
vietnam vietnamese vietnamesisch viêt_nam vietnamita việt_nam вьетнам 越南 ベトナム 베트남;
australia australian australien australier australie australiano austrália австралия 澳大利亚 澳洲 オーストラリア
호주;
egypt egyptian ägypten égypte egipto egitto مصر египет 埃及 エジプト 이집트;
morocco moroccan marokko maroc marocain marruecos المغرب марокко 摩洛哥 モロッコ;
israel israeli israelisch israël ישראל израиль 以色列 イスラエル;
europe european europa europäisch européen européenne europeo europea европа 欧洲 ヨーロッパ 유럽;
"""
_CITIES = """
munich münchen monaco_di_baviera múnich munique мюнхен мюнхене 慕尼黑 ミュンヘン 뮌헨;
cologne köln colonia keulen кёльн 科隆 ケルン;
vienna wien vienne viena вена вене 维也纳 ウィーン 빈;
zurich zürich zúrich zurigo цюрих 苏黎世 チューリッヒ;
geneva genf genève ginebra ginevra женева 日内瓦 ジュネーブ;
berlin berlín berlino berlim берлин берлине 柏林 ベルリン 베를린;
hamburg hambourg hamburgo amburgo гамбург 汉堡 ハンブルク;
frankfurt francfort fráncfort francoforte франкфурт 法兰克福 フランクフルト;
nuremberg nürnberg núremberg norimberga 纽伦堡 ニュルンベルク;
paris parís parigi париж париже 巴黎 パリ 파리;
lyon lyons lione лион 里昂 リヨン;
marseille marseilles marsella marsiglia марсель 马赛 マルセイユ;
nice nizza niza ницца 尼斯 ニース;
strasbourg straßburg strassburg estrasburgo strasburgo 斯特拉斯堡;
brussels brüssel bruxelles bruselas bruxelas брюссель 布鲁塞尔 ブリュッセル;
antwerp antwerpen anvers amberes anversa антверпен 安特卫普;
the_hague hague den_haag la_haye la_haya гаага 海牙;
amsterdam ámsterdam амстердам амстердаме 阿姆斯特丹 アムステルダム;
london londres londra londen лондон лондоне 伦敦 倫敦 ロンドン 런던;
edinburgh édimbourg edimburgo эдинбург 爱丁堡 エディンバラ;
dublin dublín dublino дублин 都柏林 ダブリン;
lisbon lisboa lissabon lisbonne lisbona лиссабон 里斯本 リスボン 리스본;
porto oporto порту 波尔图;
madrid мадрид мадриде 马德里 マドリード 마드리드;
seville sevilla séville siviglia севилья 塞维利亚 セビリア;
barcelona barcelone barcellona барселона 巴塞罗那 バルセロナ 바르셀로나;
rome rom roma рим риме 罗马 ローマ 로마;
milan mailand milano milán милан 米兰 ミラノ 밀라노;
florence florenz firenze florencia флоренция 佛罗伦萨 フィレンツェ;
venice venedig venise venezia venecia венеция 威尼斯 ヴェネツィア;
naples neapel napoli nápoles неаполь 那不勒斯 ナポリ;
turin torino turín турин 都灵 トリノ;
genoa genua gênes genova génova генуя;
athens athen athènes atenas atene αθήνα афины 雅典 アテネ;
prague prag praga praha praze прага праге 布拉格 プラハ 프라하;
warsaw warschau varsovie varsovia varsavia warszawa warszawie варшава варшаве 华沙 ワルシャワ;
krakow kraków cracow krakau cracovie cracovia krakowie краков;
copenhagen kopenhagen copenhague copenaghen københavn копенгаген 哥本哈根 コペンハーゲン;
stockholm estocolmo stoccolma стокгольм 斯德哥尔摩 ストックホルム;
oslo осло 奥斯陆 オスロ;
helsinki helsingfors helsingissä хельсинки 赫尔辛基 ヘルシンキ;
moscow moskau moscou moscú mosca moskva москва москве москвы 莫斯科 モスクワ 모스크바;
saint_petersburg petersburg sankt_petersburg petersbourg petersburgo петербург петербурге 圣彼得堡
サンクトペテルブルク;
kyiv kiev kiew київ києві киев киеве 基辅 キーウ;
istanbul istambul estambul стамбул 伊斯坦布尔 イスタンブール;
budapest будапешт 布达佩斯 ブダペスト;
bucharest bukarest bucarest bucureşti bucurești бухарест;
new_york nueva_york nuova_york nova_york нью-йорк 纽约 紐約 ニューヨーク 뉴욕;
los_angeles лос-анджелес 洛杉矶 ロサンゼルス;
san_francisco сан-франциско 旧金山 サンフランシスコ;
mexico_city ciudad_de_méxico mexiko-stadt 墨西哥城;
tokyo tokio tóquio токио 东京 東京 とうきょう 도쿄;
osaka осака 大阪 おおさか 오사카;
kyoto kioto киото 京都 きょうと;
yokohama иокогама 横滨 横浜;
beijing peking pékin pekín pechino pequim пекин пекине 北京 ペキン 베이징;
shanghai schanghai shanghái шанхай 上海 シャンハイ 상하이;
guangzhou canton 广州 広州;
shenzhen 深圳;
hangzhou 杭州;
chengdu 成都;
wuhan 武汉;
nanjing 南京;
hong_kong hongkong гонконг 香港 ホンコン 홍콩;
taipei taipeh 台北 臺北 タイペイ;
singapore singapur singapour сингапур 新加坡 シンガポール;
seoul séoul seúl сеул 首尔 ソウル 서울;
busan pusan 釜山 부산;
bangkok бангкок 曼谷 バンコク กรุงเทพ;
delhi neu-delhi дели 德里 デリー;
cairo kairo le_caire el_cairo القاهرة каир 开罗 カイロ;
jerusalem jérusalem jerusalén gerusalemme ירושלים иерусалим 耶路撒冷;
sydney sídney сидней 悉尼 シドニー;
"""


def _families() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for names in f"{_COUNTRIES}{_CITIES}".split(";"):
        family = frozenset(name.replace("_", " ").casefold() for name in word_set(names))
        found |= {name: found.get(name, frozenset()) | family for name in family}
    return found


FAMILIES = _families()
"""The family of each name: every name of the same place, or country, people and language; folded, with spaces."""
MOST_PARTS = 3
"""The number of words in the longest of these names."""
