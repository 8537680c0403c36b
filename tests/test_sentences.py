import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scorekit.languages import guess_language
from scorekit.sentences import split_sentences


def split(text):
    return split_sentences(pd.Series([text], dtype=object))[0]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        (" \n\t ", []),
        ("😀 🎉", []),
        ("--- *** !!!", []),
        ("42", ["42"]),
        ("Paris", ["Paris"]),
        ("It is 3.5 km, e.g. far. Dr. Smith agrees! Yes?", ["It is 3.5 km, e.g. far.", "Dr. Smith agrees!", "Yes?"]),
        ("The answer is 2.", ["The answer is 2."]),
        ("A. Smith went. He slept.", ["A. Smith went.", "He slept."]),
        ("Then **Bold.** More *it.* Rest", ["Then **Bold.**", "More *it.*", "Rest"]),
        ('"No." he said. "Yes."', ['"No." he said.', '"Yes."']),
        ("Yes.\r\nNo.\r\n", ["Yes.", "No."]),
        ("Name: Ada\nBorn: 1815", ["Name: Ada", "Born: 1815"]),
    ],
)
def test_split_prose_gives_sentences(text, pieces):
    assert split(text) == pieces


def test_split_hard_wrapped_prose_joins_lines():
    text = "This line is long enough to have been wrapped by an editor at\nsixty columns or so. Next one."
    assert split(text) == [text[: text.index(" Next")], "Next one."]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("1. Boil. 2. Add rice. 3. Eat!", ["1. Boil.", "2. Add rice.", "3. Eat!"]),
        ("1.\nFirst\n2.\nSecond", ["1.\nFirst", "2.\nSecond"]),
        ("1. **A**: One. Two. 2. **B**: Three.", ["1. **A**: One.", "Two.", "2. **B**: Three."]),
        ("Steps:\n1) one. a\n2) two", ["Steps:", "1) one. a", "2) two"]),
        ("- a\n- b: x. y\n  goes on\n    - nested. item\n", ["- a", "- b: x. y\n  goes on", "- nested. item"]),
        ("* one\n+ two\n• three\n– four", ["* one", "+ two", "• three", "– four"]),
        ("・卵を割る。焼く。\n１．混ぜる。", ["・卵を割る。焼く。", "１．混ぜる。"]),
        ("1）水を沸かす。\n2）味噌を入れる。", ["1）水を沸かす。", "2）味噌を入れる。"]),
    ],
)
def test_split_lists_keep_items_whole(text, pieces):
    assert split(text) == pieces


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("# A title. Of two\nText one. Text two", ["# A title. Of two", "Text one.", "Text two"]),
        ("**Symptoms:**\nFever. Cough.", ["**Symptoms:**", "Fever.", "Cough."]),
        ("Title\n=====\nText.", ["Title", "Text."]),
        ("```py\nx = 1.\n\ny = 2. \n```\nAfter. More", ["```py\nx = 1.\n\ny = 2. \n```", "After.", "More"]),
        ("~~~\nnever. closed", ["~~~\nnever. closed"]),
        ("````\n```\nx\n````\nEnd", ["````\n```\nx\n````", "End"]),
        ("| a | b |\n|---|---|\n| 1. X | 2. Y |\n\nAfter", ["| a | b |\n|---|---|\n| 1. X | 2. Y |", "After"]),
        (
            "Traceback (most recent call last):\n  File x\nValueError: a. b\n\nok",
            ["Traceback (most recent call last):\n  File x\nValueError: a. b", "ok"],
        ),
        ("Error: connection refused. Try again.", ["Error: connection refused. Try again."]),
        ("> One. Two", ["> One.", "Two"]),
    ],
)
def test_split_blocks_stay_whole(text, pieces):
    assert split(text) == pieces


def test_split_urls_mail_and_inline_code_stay_whole():
    text = "See https://a.b/c?d=E.f! Mail a.b@c.de. Use `x. Y` here."
    assert split(text) == ["See https://a.b/c?d=E.f!", "Mail a.b@c.de.", "Use `x. Y` here."]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("富士山です。高い！本当？", ["富士山です。", "高い！", "本当？"]),
        ("「はい。そうです。」と言った。次は（注。）です。", ["「はい。そうです。」と言った。", "次は（注。）です。"]),
        ("你好。我很好！", ["你好。", "我很好！"]),
        ("यह है। वह है।", ["यह है।", "वह है।"]),
        ("مرحبا. كيف حالك؟ أنا بخير.", ["مرحبا.", "كيف حالك؟", "أنا بخير."]),
        ("Das ist z. B. gut. Am 3. Mai war es so. Ende.", ["Das ist z. B. gut.", "Am 3. Mai war es so.", "Ende."]),
    ],
)
def test_split_other_languages_uses_their_marks(text, pieces):
    assert split(text) == pieces


def test_split_lone_surrogates_stay_as_they_are():
    assert split("\ud800 abc. Def \udfff. Ghi") == ["\ud800 abc.", "Def \udfff.", "Ghi"]


def test_split_zero_texts_gives_no_lists():
    assert split_sentences(pd.Series([], dtype="string")) == []


HOSTILE = st.text(alphabet=st.sampled_from("aB1.!?。！\n\r\t `~#*-|>()[]\"'「」:é字かاह\ud800😀_+@/"), max_size=80)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=200), HOSTILE))
def test_split_pieces_are_the_text_in_order_and_lose_only_marks(text):
    rest = text
    for piece in split(text):
        before, found, rest = rest.partition(piece)
        assert found
        assert not any(map(str.isalnum, before))
    assert not any(map(str.isalnum, rest))


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "word ",
        "ab. ",
        "!?",
        '"a ',
        "😀",
        "\n",
        "あ",
        "あ。",
        "- a\n",
        "|a|\n",
        "`",
        "` ",
        "1. ",
        "a@",
        "www.",
        " ",
        "a.b@",
        "> ",
        "```\n",
    ],
)
def test_split_200_kb_of_anything_gives_slices_of_it(unit):
    text = unit * (200_000 // len(unit))
    assert all(piece in text for piece in split(text)[:50])


def test_guess_language_by_script_and_stop_words():
    texts = [
        "Where is the key?",
        "Où est la clé ?",
        "Wo ist der Schlüssel?",
        "Dov'è la chiave?",
        "Где ключ?",
        "鍵は？",
        "钥匙呢？",
        "열쇠",
        "",
        "42",
    ]
    assert [guess_language(text) for text in texts] == ["en", "fr", "de", "it", "ru", "ja", "zh", "ko", "en", "en"]


def test_guess_language_mostly_latin_with_a_foreign_word_is_latin():
    assert guess_language('The Japanese word for mountain, "山", is read yama.') == "en"
