"""Tone: the published numbers, vaderSentiment's numbers, modes, scripts."""

import json
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vaderSentiment.vaderSentiment import BOOSTER_DICT, NEGATE, SPECIAL_CASES, SentimentIntensityAnalyzer

from scorekit.errors import ArgumentTypeError, OptionRangeError, UnknownOptionError
from scorekit.scorers import vader
from scorekit.scorers.afinn import afinn_sentiment, afinn_tokens
from scorekit.scorers.tone import TONE, score_tone
from scorekit.scorers.vader import vader_sentiment
from scorekit.testing import check_scorer

ROOT = Path(__file__).parents[2]
GOLDEN_FILES = sorted((ROOT / "tests" / "golden").glob("*.json"))
GOLDEN = json.loads((ROOT / "tests" / "golden" / "tone_afinn.json").read_text(encoding="utf-8"))["rows"]
ANALYZER = SentimentIntensityAnalyzer()

# npm looks negators up in a JavaScript object, where "constructor" is found on the prototype, so it negates the word after it
NOT_AS_IN_NPM = {"neg-026"}

# npm calls texts without an English word neutral; ours says that it cannot tell
OTHER_SCRIPTS = {
    "astral-012", "astral-013", "comb-006", "huge-004", "intl-000", "intl-001", "intl-003", "intl-005", "intl-007", "intl-008", "intl-011",
    "intl-012", "intl-016", "intl-019",
}  # fmt: skip

FIELDS = ["response_sentiment", "reference_sentiment", "difference", "avg_sentiment", "sentiment_variance"]
ENGLISH = pd.DataFrame(
    {
        "input": ["I love this!", "It was fine.", "Not good.", "Great service! Friendly staff. Perfect atmosphere.", ""],
        "output": ["I hate this!", "It was fine.", "VERY good, but slow", "", "good"],
    }
)


def one(a, b, **options):
    """Score one pair."""
    row = score_tone(pd.DataFrame({"input": [a], "output": [b]}, dtype=object), **options).iloc[0]
    return {name.removeprefix("tone_"): row[name] for name in row.index if name.startswith("tone_")}


def texts_in(cell):
    """Yield every text in a value read from JSON."""
    if isinstance(cell, str):
        yield cell
    elif isinstance(cell, (list, dict)):
        for inner in cell.values() if isinstance(cell, dict) else cell:
            yield from texts_in(inner)


@pytest.mark.parametrize(
    ("a", "b", "score", "fields"),
    [
        ("This product is fantastic and amazing!", "The product is excellent and wonderful!", 0.8333333333333335, {"response_sentiment": 4 / 3, "reference_sentiment": 7 / 6, "difference": 1 / 6}),
        ("Great service! Friendly staff. Perfect atmosphere.", "", 0.9444444444444444, {"avg_sentiment": 4 / 3, "sentiment_variance": 1 / 18}),
        ("The interface is frustrating and confusing, though it has potential.", "The design shows promise but needs significant improvements to be usable.", 0.4181818181818182, {"response_sentiment": -0.4, "reference_sentiment": 2 / 11, "difference": 0.5818181818181818}),
    ],
)  # fmt: skip
def test_score_tone_afinn_documented_examples_give_documented_values(a, b, score, fields):
    found = one(a, b, lexicon="afinn")
    assert found["score"] == pytest.approx(score, abs=1e-12)
    for name in FIELDS:
        assert found[name] == pytest.approx(fields.get(name, np.nan), abs=1e-12, nan_ok=True)


def has_emoji(row):
    """Return whether a text of the row has a symbol that npm may give a value: emoji count 0 here."""
    return any(unicodedata.category(character) == "So" for side in ("input", "output") for character in row[side])


@pytest.mark.parametrize(("key", "options"), [("comparison", {"mode": "comparison"}), ("stability_of_output", {"mode": "stability"}), ("stability_of_input", {"mode": "stability", "output": "input"})])  # fmt: skip
def test_score_tone_afinn_golden_rows_without_emoji_give_golden_values(key, options):
    scored = score_tone(pd.DataFrame(GOLDEN, columns=["input", "output"], dtype=object), lexicon="afinn", **options)
    unscored = set()
    for (_, found), row in zip(scored.iterrows(), GOLDEN, strict=True):
        if row[key] is None or has_emoji(row) or row["id"] in NOT_AS_IN_NPM:
            continue
        if pd.notna(found["tone_error"]):
            unscored.add((row["id"], found["tone_error"]))
            continue
        for name, value in row[key].items():
            assert found[f"tone_{name}"] == pytest.approx(value, abs=1e-12), row["id"]
    assert unscored <= {(name, "not_scorable") for name in OTHER_SCRIPTS}


def test_vader_sentiment_of_golden_texts_equals_vadersentiment():
    texts = {text for path in GOLDEN_FILES for text in texts_in(json.loads(path.read_text(encoding="utf-8")))}
    assert [text for text in texts if vader_sentiment(text)[0] != ANALYZER.polarity_scores(text)["compound"]] == []


@pytest.mark.parametrize("path", sorted((ROOT / "data").glob("*.jsonl")), ids=lambda path: path.stem)
def test_vader_sentiment_of_shipped_data_equals_vadersentiment(path):
    texts = {text for line in path.read_text(encoding="utf-8").splitlines() for text in texts_in(json.loads(line))}
    assert [text for text in texts if vader_sentiment(text)[0] != ANALYZER.polarity_scores(text)["compound"]] == []


PHRASES = [*SPECIAL_CASES, *(phrase for phrase in BOOSTER_DICT if " " in phrase)]
RULE_WORDS = [
    *NEGATE,
    *BOOSTER_DICT,
    *[
        "no",
        "or",
        "nor",
        "least",
        "at",
        "very",
        "so",
        "this",
        "never",
        "without",
        "doubt",
        "but",
        "BUT",
        "kind",
        "of",
        "the",
        "to",
        "for",
        "I",
        "A",
    ],
    *PHRASES,
]
words = st.one_of(
    st.sampled_from(RULE_WORDS),
    st.sampled_from([word for word in ANALYZER.lexicon if word.isascii()]),
    st.sampled_from(["good", "bad", "great", "die", "kiss", "stop", "ass", "right", "shit", "kind", "no", "doubt"]),
    st.sampled_from(["it", "service", "Σας", "İ", "K", "日本", "\ud800", "😀", "❤️", "👍🏽", "don't", "x" * 70]),
)
dressed = st.builds(lambda word, form, mark, gap: form(word) + mark + gap, words, st.sampled_from([str, str, str.upper, str.title]),
                    st.sampled_from(["", "", "", "!", "??", "!!!!!", ",", "...", "😀", "))"]), st.sampled_from([" ", " ", "  ", "\n", "", "\u3000"]))  # fmt: skip


@settings(deadline=None, max_examples=600)
@given(st.lists(dressed, max_size=14).map("".join))
def test_vader_sentiment_of_any_text_equals_vadersentiment(text):
    assert vader_sentiment(text)[0] == ANALYZER.polarity_scores(text)["compound"]


def test_vader_sentiment_with_full_vocabulary_starts_afresh_and_equals(monkeypatch):
    monkeypatch.setattr(vader, "KNOWN_WORDS", 3)
    text = "The food was not very good, but the staff was GREAT and so very kind!"
    assert vader_sentiment(text)[0] == ANALYZER.polarity_scores(text)["compound"]


def test_score_tone_vader_comparison_scores_one_less_half_the_difference():
    found = one("I love this!", "I hate this!")
    love, hate = (ANALYZER.polarity_scores(text)["compound"] for text in ("I love this!", "I hate this!"))
    assert (found["response_sentiment"], found["reference_sentiment"]) == (love, hate)
    assert found["score"] == 1 - (love - hate) / 2
    assert np.isnan(found["avg_sentiment"])
    assert np.isnan(found["sentiment_variance"])


def test_score_tone_vader_stability_scores_one_less_the_variance_over_sentences():
    found = one("anything", "I love it. I hate it. And a rest without end", mode="stability")
    love, hate = 0.6369, -0.5719
    assert found["avg_sentiment"] == pytest.approx((love + hate) / 2)
    assert found["sentiment_variance"] == pytest.approx(((love - hate) / 2) ** 2)
    assert found["score"] == pytest.approx(1 - ((love - hate) / 2) ** 2)
    assert found["response_scored_tokens"] == 2.0
    assert np.isnan(found["reference_scored_tokens"])
    assert np.isnan(found["difference"])


@pytest.mark.parametrize("lexicon", ["vader", "afinn"])
def test_score_tone_auto_reads_the_input_where_the_output_is_empty(lexicon):
    found = one("Great! Awful.", "", lexicon=lexicon)
    assert found["sentiment_variance"] > 0.2
    assert np.isnan(found["difference"])


def test_score_tone_comparison_with_empty_output_compares_with_neutral():
    found = one("I love this!", "", mode="comparison")
    assert (found["reference_sentiment"], found["reference_scored_tokens"]) == (0.0, 0.0)
    assert found["difference"] == found["response_sentiment"]


@pytest.mark.parametrize("lexicon", ["vader", "afinn"])
def test_score_tone_stability_of_empty_text_is_one(lexicon):
    found = one("x", "", mode="stability", lexicon=lexicon)
    assert (found["score"], found["avg_sentiment"], found["sentiment_variance"]) == (1.0, 0.0, 0.0)


def test_score_tone_stability_does_not_need_the_input():
    scored = score_tone(pd.DataFrame({"answer": ["Good. Bad."]}), output="answer", mode="stability")
    assert scored["tone_error"].isna().all()


def test_score_tone_reference_compares_every_output_with_it():
    scored = score_tone(pd.DataFrame({"output": ["I hate it.", "", "fine"]}), reference="I love it.")
    assert scored["tone_response_sentiment"].tolist() == [-0.5719, 0.0, 0.2023]
    assert scored["tone_reference_sentiment"].tolist() == [0.6369, 0.6369, 0.6369]
    assert scored["tone_avg_sentiment"].isna().all()
    assert scored["tone_reason"].tolist()[0] == "The output's sentiment is -0.57, the reference's +0.64: they differ by 1.21."


@pytest.mark.parametrize(("scale", "score"), [(10.0, 3.595), (0, 0.0), (1, 0.3595)])
def test_score_tone_scale_multiplies_the_score(scale, score):
    assert one("I love this!", "I hate this!", scale=scale)["score"] == pytest.approx(score)


def test_score_tone_afinn_is_never_negative():
    assert one("great", "awful", lexicon="afinn")["score"] == 0.0


@pytest.mark.parametrize(
    ("a", "b", "options", "which"),
    [
        ("良い製品です。", "It is good.", {}, "input"),
        ("It is good.", "良い製品です。", {}, "output"),
        ("Это хорошо", "", {}, "input"),
        ("x", "Это хорошо ok", {"mode": "stability"}, "output"),
        ("x", "Это хорошо", {"reference": "good"}, "output"),
    ],
)
@pytest.mark.parametrize("lexicon", ["vader", "afinn"])
def test_score_tone_text_of_another_script_is_not_scorable(lexicon, a, b, options, which):
    found = one(a, b, lexicon=lexicon, **options)
    assert np.isnan(found["score"])
    assert (found["error"], found["reason"]) == (
        "not_scorable",
        f"Most letters of the {which} are not Latin; the lexicons are English, so its tone cannot be told.",
    )


@pytest.mark.parametrize("text", ["42!", "😀", "It is good: 良い", ""])
def test_score_tone_text_without_other_letters_in_the_majority_is_scored(text):
    assert pd.isna(one(text, text)["error"])


def test_score_tone_stability_of_the_output_ignores_the_script_of_the_input():
    assert pd.isna(one("良い製品です。", "Good.", mode="stability")["error"])


@pytest.mark.parametrize(
    ("a", "b", "options", "reason"),
    [
        ("I love this!", "I hate this!", {}, "The input's sentiment is +0.67, the output's -0.61: they differ by 1.28."),
        ("The table", "A chair", {}, "No word of the input or the output carries sentiment, so there is none that could differ."),
        (
            "Great! Awful.",
            "",
            {},
            "The output is empty, so this is the stability of the input alone. The sentiment of the input averages +0.10 over its sentences, with a variance of 0.31.",
        ),
        ("", "A chair.", {"mode": "stability"}, "No word of the output carries sentiment, so there is none that could vary."),
    ],
)
def test_score_tone_reason_says_the_fields(a, b, options, reason):
    assert one(a, b, **options)["reason"] == reason


def test_score_tone_scored_tokens_counts_words_with_sentiment():
    found = one("good good table", "chair")
    assert (found["response_scored_tokens"], found["reference_scored_tokens"]) == (2.0, 0.0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"lexicon": "vadar"}, UnknownOptionError, "Did you mean 'vader'"),
        ({"mode": "compare"}, UnknownOptionError, "choose one of 'auto', 'comparison', 'stability'"),
        ({"scale": -1}, OptionRangeError, "0 or more"),
        ({"scale": float("nan")}, OptionRangeError, "finite"),
        ({"scale": "1"}, ArgumentTypeError, "scale must be a number, not str"),
        ({"reference": 5}, ArgumentTypeError, "reference must be one text, not int"),
        ({"reference": "a", "mode": "stability"}, OptionRangeError, "stability reads one text"),
        ({"reference": "良い製品です。"}, OptionRangeError, "Latin"),
    ],
)
def test_score_tone_wrong_option_raises_before_any_row(options, error, message):
    with pytest.raises(error, match=message):
        score_tone(ENGLISH, **options)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", [""]),
        ("Good, bad!", ["good", "bad"]),
        ("a\nb\r\nc", ["a", "b", "c"]),
        ("a\tb", ["a\tb"]),
        ("don't (stop)", ["don't", "stop"]),
        ("\ufeffgood\ufeff", ["good"]),
    ],
)
def test_afinn_tokens_are_those_of_the_npm_package(text, tokens):
    assert afinn_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "sentiment", "scored"),
    [("not good", -1.5, 1), ("not very good", 1.0, 1), ("good not bad", 2.0, 2), ("can't stand", 0.0, 0), ("", 0.0, 0)],
)
def test_afinn_sentiment_negates_the_token_directly_after_a_negator(text, sentiment, scored):
    assert afinn_sentiment(text) == (sentiment, scored)


@pytest.mark.parametrize("lexicon", ["vader", "afinn"])
def test_score_tone_split_frame_changes_no_row(lexicon):
    parts = pd.concat([score_tone(ENGLISH.iloc[:2], lexicon=lexicon), score_tone(ENGLISH.iloc[2:], lexicon=lexicon)])
    pd.testing.assert_frame_equal(parts, score_tone(ENGLISH, lexicon=lexicon))


def test_tone_is_a_scorer():
    check_scorer(TONE, ENGLISH)
