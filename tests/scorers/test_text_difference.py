"""Text difference: the published numbers, difflib's numbers, the laws."""

import difflib
import json
import os
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scorekit.errors import UnknownOptionError
from scorekit.scorers import matching_pool
from scorekit.scorers.matching import count_matches
from scorekit.scorers.text_difference import TEXT_DIFFERENCE, score_text_difference
from scorekit.testing import check_scorer

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "text_difference.json").read_text(encoding="utf-8"))["rows"]
SENTENCES = pd.DataFrame(
    {
        "input": [
            "Hello world! How are you?",
            "Python is a high-level programming language.",
            "The quick brown fox",
            "",
            "same",
            "日本語の文",
            "😀a",
        ],
        "output": ["Hello there! How is it going?", "JavaScript is used for web development", "", "", "same", "日本の文章", "a😀"],
    }
)
texts = st.text(alphabet=st.sampled_from("ab \n\ufeffé日😀\ud800"), max_size=30)


def one(a, b, **options):
    """Score one pair."""
    row = score_text_difference(pd.DataFrame({"input": [a], "output": [b]}, dtype=object), **options).iloc[0]
    return {name.removeprefix("text_difference_"): row[name] for name in row.index if name.startswith("text_difference_")}


@pytest.mark.parametrize(
    ("a", "b", "ratio", "confidence", "changes", "length_diff"),
    [
        ("The quick brown fox jumps over the lazy dog.", "The quick brown fox jumps over the lazy dog.", 1.0, 1.0, 0.0, 0.0),
        ("Hello world! How are you?", "Hello there! How is it going?", 0.5925925925925926, 0.8620689655172413, 5.0, 0.13793103448275862),
        ("Python is a high-level programming language.", "JavaScript is used for web development", 0.3170731707317073, 0.8636363636363636, 8.0, 0.13636363636363635),
    ],
)  # fmt: skip
def test_score_text_difference_documented_examples_give_documented_values(a, b, ratio, confidence, changes, length_diff):
    found = one(a, b)
    assert found["score"] == pytest.approx(ratio, abs=1e-12)
    assert found["ratio"] == found["score"]
    assert found["confidence"] == pytest.approx(confidence, abs=1e-12)
    assert found["changes"] == changes
    assert found["length_diff"] == pytest.approx(length_diff, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "ratio", "changes"),
    [({}, "ratio_lcs", "spans"), ({"ratio": "difflib", "changes": "words"}, "ratio_difflib", "words")],
)
def test_score_text_difference_golden_rows_give_golden_values(options, ratio, changes):
    scored = score_text_difference(pd.DataFrame(GOLDEN, columns=["input", "output"], dtype=object), **options)
    for column, key in {"ratio": ratio, "changes": changes, "confidence": "confidence", "length_diff": "length_diff"}.items():
        # null: difflib would take hours on huge texts; confidence of astral texts was counted in UTF-16
        wanted = np.array([np.nan if row[key] is None else row[key] for row in GOLDEN], dtype=np.float64)
        there = ~np.isnan(wanted)
        assert (
            there.sum() == {"ratio_lcs": 236, "ratio_difflib": 233, "spans": 233, "words": 236, "confidence": 210, "length_diff": 210}[key]
        )
        np.testing.assert_allclose(scored[f"text_difference_{column}"].to_numpy()[there], wanted[there], rtol=0, atol=1e-12)


def test_score_text_difference_long_text_is_not_scored_with_autojunk():
    assert one("y" + "x" * 199, "x" * 200)["score"] == 0.995
    assert one("y" + "x" * 199, "x" * 200, ratio="difflib")["score"] == 0.995


def test_score_text_difference_counts_code_points():
    assert one("😀", "ab")["length_diff"] == 0.5


def test_score_text_difference_lone_surrogates_are_scored():
    assert one("\ud800a", "a")["score"] == 2 / 3


@pytest.mark.parametrize(
    ("a", "b", "options", "reason"),
    [
        ("Hello world! How are you?", "Hello there! How is it going?", {}, "5 edited spans; the output is 14 % longer; similarity 0.59."),
        ("The quick brown fox", "The quick brown cat", {}, "1 edited span; the lengths are equal; similarity 0.84."),
        ("The quick brown fox", "", {"changes": "words"}, "4 changed words; the output is 100 % shorter; similarity 0.00."),
        ("a b", "b a", {"changes": "words"}, "0 changed words; the lengths are equal; similarity 0.33."),
        ("x" * 999, "x" * 1000, {}, "1 edited span; the output is under 1 % longer; similarity above 0.99."),
        ("same", "same", {}, "The texts are equal."),
        ("", "", {}, "The texts are equal."),
    ],
)
def test_score_text_difference_reason_says_the_fields(a, b, options, reason):
    assert one(a, b, **options)["reason"] == reason


@pytest.mark.parametrize(
    ("a", "b", "count"),
    [
        ("  a b ", "a b", 1),
        ("a b", "a b", 0),
        ("", "a b", 2),
        (" ", "", 1),
        ("a a b", "a b b", 1),
        ("a\ufeffb", "a b", 1),
        ("a b c", "c b a x", 1),
    ],
)
def test_score_text_difference_words_counts_words_without_partner(a, b, count):
    assert one(a, b, changes="words")["changes"] == count


def test_score_text_difference_missing_cell_is_not_scored():
    scored = score_text_difference(pd.DataFrame({"input": ["a", None, "b"], "output": ["a", "b", np.nan]}, dtype=object))
    assert scored["text_difference_score"].isna().tolist() == [False, True, True]
    assert scored["text_difference_changes"].isna().tolist() == [False, True, True]
    assert scored["text_difference_error"].tolist()[1:] == ["missing_input", "missing_input"]


@pytest.mark.parametrize(
    ("option", "value", "hint"), [("ratio", "lsc", "'lcs'"), ("changes", "word", "Did you mean 'words'"), ("changes", [], "choose one of")]
)
def test_score_text_difference_unknown_option_raises_with_the_choices(option, value, hint):
    with pytest.raises(UnknownOptionError, match=hint):
        score_text_difference(SENTENCES, **{option: value})


def test_score_text_difference_name_and_columns_are_mapped():
    frame = pd.DataFrame({"q": ["a"], "a": ["b"]}, index=["row"])
    scored = score_text_difference(frame, input="q", output="a", name="diff")
    assert scored["diff_score"].to_dict() == {"row": 0.0}


def test_text_difference_is_a_scorer():
    check_scorer(TEXT_DIFFERENCE, SENTENCES)


@settings(deadline=None, max_examples=200)
@given(texts, texts)
def test_ratio_lcs_of_any_texts_is_the_longest_common_subsequence(a, b):
    row = [0] * (len(b) + 1)
    for x in a:
        previous = row
        row = [0]
        for j, y in enumerate(b):
            row.append(previous[j] + 1 if x == y else max(row[j], previous[j + 1]))
    assert one(a, b)["score"] == (2 * row[-1] / (len(a) + len(b)) if a or b else 1.0)


@settings(deadline=None, max_examples=50)
@given(texts, texts)
def test_ratio_lcs_of_any_texts_is_symmetric(a, b):
    assert one(a, b)["score"] == one(b, a)["score"]


@settings(deadline=None, max_examples=200)
@given(texts, texts)
def test_count_matches_of_any_texts_equals_difflib(a, b):
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    spans, matched = count_matches([(a, b)])
    assert spans[0] == sum(tag != "equal" for tag, *_ in matcher.get_opcodes())
    assert matched[0] == sum(block.size for block in matcher.get_matching_blocks())


@settings(deadline=None, max_examples=100)
@given(texts, texts)
def test_words_of_any_texts_equal_a_naive_count(a, b):
    x, y = (text.replace("\ufeff", " ").split() for text in (a, b))
    naive = int(a != b) if x == y else max(len(x), len(y)) - sum((Counter(x) & Counter(y)).values())
    assert one(a, b, changes="words")["changes"] == naive


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=8), st.integers(0, 8))
def test_score_text_difference_split_frame_changes_no_row(pairs, cut):
    frame = pd.DataFrame(pairs, columns=["input", "output"], dtype=object)
    parts = pd.concat([score_text_difference(frame.iloc[:cut]), score_text_difference(frame.iloc[cut:])])
    pd.testing.assert_frame_equal(parts, score_text_difference(frame), check_column_type=False)


PAIRS = [(f"{i} the quick brown fox" * 3, f"the brown {i} fox\ud800😀" * 3) for i in range(300)]


@pytest.fixture
def eager_helpers(monkeypatch):
    """Helpers are started for any work left after the first pairs."""
    monkeypatch.setattr(matching_pool, "PROBE_S", 1e-9)
    monkeypatch.setattr(matching_pool, "WORTH_S", 0.0)
    monkeypatch.setattr(matching_pool, "usable_cores", lambda: 3)


def test_count_matches_on_all_cores_with_helpers_equals_one_process(eager_helpers):
    spans, matched = matching_pool.count_matches_on_all_cores(PAIRS)
    assert [spans.tolist(), matched.tolist()] == [counts.tolist() for counts in count_matches(PAIRS)]


@pytest.mark.parametrize("program", ["/nonexistent/python", sys.executable])
def test_count_matches_on_all_cores_where_helpers_fail_does_the_work_here(eager_helpers, monkeypatch, tmp_path, program):
    broken = tmp_path / "matching.py"
    broken.write_text("raise SystemExit(1)")
    monkeypatch.setattr(matching_pool.matching, "__file__", str(broken))
    monkeypatch.setattr(sys, "executable", program)
    spans, _ = matching_pool.count_matches_on_all_cores(PAIRS)
    assert spans.tolist() == count_matches(PAIRS)[0].tolist()


@pytest.mark.parametrize(("executable", "may"), [(sys.executable, True), ("/usr/bin/uwsgi", False), ("", False), (None, False)])
def test_may_start_helpers_only_where_the_executable_is_python(monkeypatch, executable, may):
    monkeypatch.setattr(sys, "executable", executable)
    assert matching_pool.may_start_helpers() is may


SCRIPT = """
    import multiprocessing, sys
    from scorekit.scorers import matching_pool
    from scorekit.scorers.matching import count_matches
    print("started")
    matching_pool.PROBE_S, matching_pool.WORTH_S = 1e-9, 0.0
    pairs = [(f"{i} the quick brown fox" * 3, f"the brown {i} fox" * 3) for i in range(300)]
    def work():
        spans, matched = matching_pool.count_matches_on_all_cores(pairs)
        assert spans.tolist() == count_matches(pairs)[0].tolist()
        print("counted", matching_pool.may_start_helpers(), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the script starts its daemon by fork")
def test_count_matches_on_all_cores_works_in_unguarded_scripts_and_daemons(tmp_path):
    daemon = "child = multiprocessing.get_context('fork').Process(target=work, daemon=True)\n    child.start(); child.join(); sys.exit(child.exitcode)"
    script = tmp_path / "unguarded.py"
    script.write_text(textwrap.dedent(f"{SCRIPT}\n    work()\n    {daemon}\n"), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2], timeout=120,
                          env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.split("\n") == ["started", "counted True", "counted False", ""]


def test_count_matches_on_all_cores_in_piped_program_works():
    program = textwrap.dedent(f"{SCRIPT}\n    work()\n")  # read from standard input: there is no __main__ file, as in a REPL
    done = subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True, check=False, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})  # fmt: skip
    assert (done.stderr, done.stdout) == ("", "started\ncounted True\n")
