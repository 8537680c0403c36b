"""Which language a text is probably written in, by its script and its commonest words, and which words say little in it.

A guess for splitting and stemming only: the wrong one costs an abbreviation or a word ending, not a failure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

SAMPLE_CHARACTERS: Final = 1_000
"""How much of a text a guess reads."""

STOP_WORDS: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": """a about after again all also am an and any are aren as at be because been before being best better between both but by can cannot
        could couldn did didn do does doesn doing don down during each either else ever every few for from get give give go had has have having he her here
        him his how i if in into is isn it its itself just know let like ll make many may me might more most much must my name no nor not of off on once one
        only or other our out over own please re s same say shall she should so some such t tell than that the their them then there these they
        thing this those through to too under until up us use very want was way we well were what when where which while who whom whose why will
        with without would you your yours""",
        "de": """ab aber alle als also am an auch auf aus bei bin bis bist da damit dann das dass dein dem den denn der des die dies diese diesem diesen
        dieser dieses dir doch du durch ein eine einem einen einer eines er es euch für gegen gibt hat hatte haben ich ihm ihn ihr ihre im in ist ja
        jede jeder kann kein keine können man mehr mein meine mich mir mit muss nach nicht noch nur ob oder ohne sehr sein seine sich sie sind so soll
        über um und uns unter viel viele vom von vor wann war waren warum was weil welche welcher welches wenn wer werden wie wieso wir wird wo wurde
        zu zum zur zwischen""",
        "fr": """à afin ai alors au aucun aussi autre aux avec avoir bien c car ce cela ces cet cette chaque ci comme comment d dans de depuis des deux donc du
        elle elles en encore entre es est et été être eux fait faut il ils j je l la le les leur leurs lors lui m ma mais me même mes moi mon n ne
        nos notre nous on ont ou où par pas peu peut plus pour pourquoi puis qu quand que quel quelle quelles quels qui quoi s sa sans se selon ses si son
        sont sous sur t ta te tes toi ton tous tout toute toutes très tu un une vos votre vous y""",
        "es": """a al algo ante antes aunque cada como cómo con contra cual cuál cuáles cuando cuándo cuánto cuántos de debe debo del desde donde dónde dos
        durante e el él ella ellos en entre era es esa ese eso esta está están este esto fue ha hace hacer hasta hay la las le les lo los más me mi mis
        mucho muy nada ni no nos o os para pero poco por porque puede puedo que qué quién se sea ser si sí sin sobre son su sus también tan te tiene todo
        todos tu tus un una uno unos y ya yo""",
        "it": """a ad ai al alla alle allo anche bene c che chi ci ciò col come con cos cosa così cui d da dal dalla dalle degli dei del della delle dello di dopo dov
        dove due e è ed era essere fa fare fra gli ha hanno ho i il in io l la le lei li lo loro ma me mi mia mio molto ne nei nel nella nelle non o ogni
        per perché però più può qual quale quali quando quanto quanti quella quelle quello questa queste questi questo se sei si sia sono su sua sul sulla
        suo te ti tra tu tua tuo un una uno""",
        "pt": """à a ao aos apenas as às até cada com como da das de dela dele depois deve devo do dos e é ela ele eles em entre era essa esse esta está este eu
        foi há isso isto já lhe mais mas me mesmo meu minha muito na não nas nem no nos nós o onde os ou para pela pelas pelo pelos pode por porque por
        posso qual quais quando quanto quantos que quem se sem ser seu seus só sua suas são também te tem ter todo todos um uma umas uns você""",
        "nl": """aan al alle als bij daar dan dat de deze die dit doen door dus een en er geen had heb hebben heeft het hij hoe hoeveel hun ik in is ja je jij
        kan kunnen maar me meer men met mij mijn moet na naar niet nog nu of om omdat onder ons ook op over te tegen toch tot u uit van veel voor waar
        waarom wanneer want waren was wat we welke wel werd wie wij wil worden wordt zal ze zich zij zijn zo zonder""",
        "sv": """att av blir då de dem den denna det detta dig din dom du där efter ej eller en ett från för ha har hon honom hur hun hög här i icke igen in
        inte jag kan man med mellan men mig min mot mycket ni nu när och om oss på sig sin ska skulle som så till under upp ut vad var varför vara
        vem vi vid vilka vilken vilket är över""",
        "pl": """a albo ale bez był była było być by co czy dla do gdy gdzie go i ich ile im jak jaka jaki jakie jako jego jej jest jeszcze już kiedy kto która
        które który lub ma może można mnie na nad nie niż o od oraz po pod przed przez przy się są ta tak także tam te tego tej ten to tu ty tylko tym
        w we więc wiele z za ze że""",
        "tr": """acaba ama ancak bana ben bir biz bu bunu çok da daha de değil diye en gibi hangi hem hep her için ile ise kaç kadar ki kim mi mı mu mü
        nasıl ne neden nedir nerede niçin niye o olan olarak olduğu olur onu sen siz şey şu ve veya ya yani""",
        "ru": """а без более бы был была было быть в вам вас весь во вот все всего всех вы где да для до его ее если есть ещё же за и из или им их к как какая какие
        каким какой когда которые который кто ли между меня мне может мой мы на над надо нам нас не него нет ни но о об он она они от очень
        по под почему при с сколько со так такой также там то тоже только ты у уже чего чем что чтобы это этого этот я""",
        "ar": """من في على إلى عن مع هذا هذه ذلك التي الذي ما ماذا كيف متى أين لماذا هل كم أن إن كان كانت هو هي هم أو و ثم لا لم لن قد كل بعد قبل بين عند
        أي أنا أنت نحن يكون يمكن لي لك""",
        "hi": """का के की को में से है हैं था थे थी और यह वह ये वे पर ने तो भी क्या कैसे कब कहाँ क्यों कौन कितने कितना एक हो ही कि जो लिए साथ या नहीं मैं हम आप
        अपने कर करें करता करते करना""",
    }.items()
}
"""Words that carry grammar rather than a subject, folded to lower case; question words among them."""

_WORD = re.compile(r"[^\W\d_]{2,}")  # single letters are also abbreviations and names: "e.g." is not Italian
_KANA: Final = "\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_HAN: Final = "\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_CJK = re.compile(f"[{_KANA}{_HAN}]")
_KANA_LETTER = re.compile(f"[{_KANA}]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_SCRIPTS: Final = {
    "ru": re.compile("[\u0400-\u052f]"),
    "ar": re.compile("[\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufeff]"),
    "hi": re.compile("[\u0900-\u097f]"),
    "ko": re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]"),
    "el": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
    "he": re.compile("[\u0590-\u05ff]"),
    "hy": re.compile("[\u0530-\u058f]"),
    "ta": re.compile("[\u0b80-\u0bff]"),
}
_LATIN_LANGUAGES: Final = ("en", "de", "fr", "es", "it", "pt", "nl", "sv", "pl", "tr")


def guess_language(text: str, default: str = "en") -> str:
    """Return the ISO 639-1 code of the language that a text is probably written in.

    The commonest script decides; between languages in Latin letters the number of different stop words does.

    Parameters
    ----------
    text
        Any text; its first 1,000 characters are read.
    default
        What to return where nothing tells.

    Returns
    -------
    str
        ``"en"``, ``"ja"`` and so on.

    Examples
    --------
    >>> [guess_language(text) for text in ["Where is the key?", "Wo ist der Schlüssel?", "鍵はどこですか。", "钥匙在哪里？", "42"]]
    ['en', 'de', 'ja', 'zh', 'en']
    """
    sample = text[:SAMPLE_CHARACTERS]
    if not sample.isascii():
        # a Chinese character or a kana says as much as two or three Latin letters do
        counts = {"latin": len(_LATIN.findall(sample)), "cjk": 2 * len(_CJK.findall(sample))}
        counts |= {language: len(script.findall(sample)) for language, script in _SCRIPTS.items()}
        script = max(counts, key=lambda name: counts[name])
        if counts[script] == 0:
            return default
        if script == "cjk":
            return "ja" if _KANA_LETTER.search(sample) else "zh"
        if script != "latin":
            return script
    words = set(_WORD.findall(sample.casefold()))
    votes = {language: len(words & STOP_WORDS[language]) for language in _LATIN_LANGUAGES}
    winner = max(votes, key=lambda language: votes[language])
    return winner if votes[winner] > votes.get(default, 0) else default
