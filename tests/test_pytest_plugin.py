"""The pytest plugin in sample projects: what passes, what fails and how it says so, the table, baselines, JUnit, and the plugin turned off."""

import importlib.metadata
import json
import re
import textwrap
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

import scorekit as sk
from scorekit import pytest_plugin
from scorekit.errors import ArgumentTypeError, MissingColumnError, OptionRangeError, UnknownOptionError
from scorekit.evals.run_evals import run_evals
from scorekit.files import TableFileError
from scorekit.pytest_plugin import assert_evals

pytest_plugins = ["pytester"]

NAMED = "scorekit" in importlib.metadata.entry_points(group="pytest11").names
"""Whether the installed scorekit tells pytest of the plugin; an older installation does not, and it is named then."""
PLUGIN = [] if NAMED else ["-p", "scorekit.pytest_plugin"]
OFF = "no:scorekit" if NAMED else "no:scorekit.pytest_plugin"

APP = """
import pandas as pd

ITEMS = [{"input": "ab", "ground_truth": "AB"}, {"input": "cd", "ground_truth": "CX"}, {"input": "ef", "ground_truth": "EF"}, {"input": "gh", "ground_truth": "GH"}]

def equal(df):
    return df.assign(equal_score=(df["output"] == df["ground_truth"]).astype(float))

def toxicity(df):
    return df.assign(toxicity_score=df["output"].str.count("C") / 10)

def scored(scores, name="relevancy"):
    return pd.DataFrame({"output": [f"answer {i}" for i in range(len(scores))], f"{name}_score": scores})
"""
PREFIX = "from app import *\nfrom scorekit.pytest_plugin import assert_evals\n\n"
INI = "[pytest]\nfilterwarnings = error\naddopts = -p no:nbmake -p no:hypothesispytest -p no:cacheprovider -p no:anyio\n"


@pytest.fixture(scope="module", autouse=True)
def loaded():
    """Load what evaluations load late: pytester forgets modules that a run in this process adds, and NumPy's cannot be loaded twice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pytest_plugin, "_RUNNING", [])
        assert_evals(pd.DataFrame({"a_score": [0.0, 1.0]}), thresholds={"a": 0.5})
    run_evals(["a"], str.upper, [lambda df: df.assign(a_score=[1.0] * len(df))], progress=False)
    sk.summarize(sk.score(pd.DataFrame({"a": [1]}), lambda df: df.assign(a_score=[0.5] * len(df)), progress=False))


@pytest.fixture(autouse=True)
def outside(monkeypatch):
    """What the tests below check is not for the table of the run that they are in."""
    monkeypatch.setattr(pytest_plugin, "_RUNNING", [])


@pytest.fixture
def project(pytester, monkeypatch):
    """Write a test file, run it and return what pytest said; again with other options or another file."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makeini(INI)
    pytester.makepyfile(app=APP)
    pytester.syspathinsert()

    def run(source=None, *options, code=0, apart=False):
        if source is not None:
            pytester.makepyfile(test_app=PREFIX + textwrap.dedent(source))
        start = pytester.runpytest_subprocess if apart else pytester.runpytest_inprocess
        result = start(*PLUGIN, *options)
        assert result.ret == code
        return result

    return run


def table_of(result):
    """The lines of the table, cells apart; none where there is no table."""
    lines = result.outlines
    starts = [place for place, line in enumerate(lines) if "= scorekit evals =" in line]
    if not starts:
        return []
    body = lines[starts[0] + 1 :]
    return [re.split(r" {2,}", line) for line in body[: next(place for place, line in enumerate(body) if line.startswith(("=", "FAILED")))]]


HEAD = ["test", "score", "mean", "95 % interval", "n", "unscored", "outcome"]


# --- runs that pass, fail and regress


def test_passing_run_shows_the_table(project):
    result = project("""
        def test_upper(evals):
            result = evals.run(ITEMS, str.upper, [equal, toxicity])
            evals.check(result, pass_rate={"equal": (1.0, 0.75)}, thresholds={"equal": 0.7})
    """)
    result.assert_outcomes(passed=1)
    assert table_of(result) == [
        HEAD,
        ["test_app.py::test_upper", "equal", "0.750", "0.000 to 1.000", "4", "0", "passed"],
        ["test_app.py::test_upper", "toxicity", "0.025", "0.000 to 0.105", "4", "0", "not checked"],
    ]


def test_failing_run_lists_every_miss_with_its_worst_rows_in_one_message(project):
    result = project(
        """
        def test_upper(evals):
            result = evals.run(ITEMS, str.upper, [equal, toxicity])
            evals.check(result, pass_rate={"equal": (1.0, 0.9)}, thresholds={"toxicity": 0.02, "equal": {"min": 0.8, "max": 1}}, gates=["equal"])
        """,
        code=1,
    )
    result.assert_outcomes(failed=1)
    wanted = [
        "E       AssertionError: assert_evals: 4 misses in test_app.py::test_upper",
        "E         equal: pass rate 0.750 is below 0.9: 3 of 4 scored rows are at or above 1",
        "E         equal: mean 0.750 is below 0.8 (n=4, unscored 0)",
        "E         equal: gate: 1 of 4 rows are not 1.0",
        "E           row 1: 0  CD",
        "E         toxicity: mean 0.025 is above 0.02 (n=4, unscored 0)",
        "E           row 1: 0.1  CD",
    ]
    start = result.outlines.index(wanted[0])
    assert result.outlines[start : start + 7] == wanted
    assert "pytest_checks.py" not in result.stdout.str()
    assert [row[-1] for row in table_of(result)[1:]] == ["missed", "missed"]


REGRESSION = """
    def test_answers(evals):
        evals.check(scored([0.9, 0.7, 0.8]), baseline="evals/base.json", margin=0.05)

    def test_tone(evals):
        evals.check(scored([0.2, 0.3], "toxicity"), baseline="evals/base.json", name="calm é")
"""


def test_regressed_run_fails_against_the_written_baseline(project, pytester):
    written = project(REGRESSION, "--evals-update-baseline")
    assert [row[-1] for row in table_of(written)[1:]] == ["baseline written"] * 2
    content = (pytester.path / "evals" / "base.json").read_bytes()
    assert content.isascii()
    assert json.loads(content) == {
        "test_app.py::test_answers": {"relevancy": {"mean": pytest.approx(0.8), "n": 3}},
        "test_app.py::test_tone / calm é": {"toxicity": {"mean": 0.25, "n": 2}},
    }
    assert [path.name for path in (pytester.path / "evals").iterdir()] == ["base.json"]
    project(REGRESSION).assert_outcomes(passed=2)
    worse = REGRESSION.replace("0.9, 0.7, 0.8", "0.9, 0.6, 0.7").replace("0.2, 0.3", "0.2, 0.31")
    regressed = project(worse, code=1)
    regressed.assert_outcomes(failed=2)
    regressed.stdout.fnmatch_lines(
        [
            "*relevancy: mean 0.733 is worse than the baseline's 0.800 by 0.067, margin 0.05 (n=3, unscored 0; baseline n=3)",
            "E           row 1: 0.6  answer 1",
            "*toxicity: mean 0.255 is worse than the baseline's 0.250 by 0.005, margin 0 (n=2, unscored 0; baseline n=2)",
            "E           row 1: 0.31  answer 1",
        ]
    )
    assert (pytester.path / "evals" / "base.json").read_bytes() == content


def test_regression_within_the_margin_and_gains_pass(project):
    project(REGRESSION, "--evals-update-baseline")
    other = REGRESSION.replace("0.9, 0.7, 0.8", "0.9, 0.6, 0.75").replace("0.2, 0.3", "0.0, 0.1")
    project(other).assert_outcomes(passed=2)


def test_missing_baseline_fails_and_says_how_to_make_one(project, pytester):
    result = project(REGRESSION, code=1)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*no baseline: *base.json is not there. Make one with: pytest --evals-update-baseline"])
    project(REGRESSION, "--evals-update-baseline", "-k", "tone")
    half = project(REGRESSION, code=1)
    half.assert_outcomes(passed=1, failed=1)
    half.stdout.fnmatch_lines(["*base.json has none for 'test_app.py::test_answers'. Make one with: pytest --evals-update-baseline"])


def test_baseline_of_other_scores_fails_both_ways(project):
    project(REGRESSION, "--evals-update-baseline")
    result = project(REGRESSION.replace("0.8])", '0.8], "correctness")'), code=1)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*assert_evals: 2 misses in*",
            "*correctness: the baseline does not have this score*",
            "*relevancy: the baseline has it, and it was not scored*",
        ]
    )


def test_baseline_is_not_written_from_a_run_that_misses_something(project, pytester):
    result = project(
        """
        def test_low(evals):
            evals.check(scored([0.1, None]), baseline="base.json", thresholds={"relevancy": 0.5})
        """,
        "--evals-update-baseline",
        code=1,
    )
    result.stdout.fnmatch_lines(["*assert_evals: 2 misses*", "*1 of 2 rows are unscored*", "*base.json was not written."])
    assert not (pytester.path / "base.json").exists()


def test_two_checks_under_one_baseline_key_are_refused(project):
    result = project(
        """
        def test_twice(evals):
            evals.check(scored([0.1]), baseline="base.json")
            evals.check(scored([0.9]), baseline="base.json")
        """,
        "--evals-update-baseline",
        code=1,
    )
    result.stdout.fnmatch_lines(["*Two checks of 'test_app.py::test_twice' use the baseline base.json: tell them apart with name=."])


def test_baseline_path_begins_at_rootdir(project, pytester, monkeypatch):
    project(REGRESSION, "--evals-update-baseline")
    below = pytester.mkdir("below")
    monkeypatch.chdir(below)
    project(None, "..").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"a": {"relevancy": 0.5}}', '{"a": {"relevancy": {"mean": NaN, "n": 1}}}', '{"a": {"relevancy": {"mean": 1}}}']
)
def test_broken_baseline_file_is_an_error_that_names_it(tmp_path, text):
    (tmp_path / "base.json").write_text(text)
    with pytest.raises(
        TableFileError, match=r"base\.json is no baseline file .*: delete it and make one with: pytest --evals-update-baseline"
    ):
        assert_evals(pd.DataFrame({"relevancy_score": [1.0]}), baseline=tmp_path / "base.json", name=text)


def test_update_with_several_processes_is_refused(project, pytester):
    pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--numprocesses', type=int)")
    result = project(REGRESSION, "--evals-update-baseline", "--numprocesses", "2", code=4)
    result.stderr.fnmatch_lines(["*--evals-update-baseline does not work with several processes*"])
    project(REGRESSION, "--numprocesses", "2", code=1).assert_outcomes(failed=2)


# --- the table, JUnit, and what pytest loads


def test_junit_has_means_counts_and_failures(project, pytester):
    project(
        """
        def test_good(evals):
            evals.check(evals.score(scored([1.0, 0.5, None]), lambda df: df.assign(long_score=1.0)), thresholds={"relevancy": 0.5},
                        most_unscored=0.5, name="first")

        def test_bad(evals):
            evals.check(scored([0.2], "toxicity"), thresholds={"toxicity": 0.1})
        """,
        "--junitxml=out.xml",
        code=1,
    )
    cases = ET.parse(pytester.path / "out.xml").getroot().iter("testcase")
    found = {case.get("name"): case for case in cases}
    properties = {name: {part.get("name"): part.get("value") for part in case.iter("property")} for name, case in found.items()}
    assert properties == {
        "test_good": {
            "scorekit.first.relevancy.mean": "0.75",
            "scorekit.first.relevancy.n": "2",
            "scorekit.first.relevancy.unscored": "1",
            "scorekit.long.mean": "1.0",
            "scorekit.long.n": "3",
            "scorekit.long.unscored": "0",
        },
        "test_bad": {"scorekit.toxicity.mean": "0.2", "scorekit.toxicity.n": "1", "scorekit.toxicity.unscored": "0"},
    }
    assert found["test_good"].find("failure") is None
    assert "toxicity: mean 0.200 is above 0.1 (n=1, unscored 0)" in found["test_bad"].find("failure").get("message")


def test_table_keeps_the_scores_of_a_test_that_breaks_and_of_several_targets(project):
    result = project(
        """
        def test_targets(evals):
            result = evals.run(ITEMS, {"old": str.upper, "new": str.lower}, equal, item="input")
            evals.check(result, thresholds={"equal": 0.5})

        def test_breaks(evals):
            evals.run(["a"], str.upper, lambda df: df.assign(n_score=1))
            raise RuntimeError("later")
        """,
        code=1,
    )
    assert table_of(result) == [
        HEAD,
        ["test_app.py::test_targets", "equal (old)", "0.750", "0.000 to 1.000", "4", "0", "passed"],
        ["test_app.py::test_targets", "equal (new)", "0.000", "none", "4", "0", "missed"],
        ["test_app.py::test_breaks", "n", "1.000", "none", "1", "0", "not checked"],
    ]
    result.stdout.fnmatch_lines(["*assert_evals: 1 miss in*", "*equal (new): mean 0.000 is below 0.5 (n=4, unscored 0)"])


def test_assert_evals_without_the_fixture_is_in_the_table(project):
    result = project("""
        def test_frame():
            assert_evals(scored([1.0, 1.0]).assign(other_score=0.0), gates="relevancy")
    """)
    assert table_of(result) == [HEAD, ["test_app.py::test_frame", "relevancy", "1.000", "none", "2", "0", "passed"]]


def test_result_that_one_check_missed_stays_missed(project):
    result = project("""
        import pytest

        def test_two(evals):
            frame = scored([0.5, 0.5])
            with pytest.raises(AssertionError):
                evals.check(frame, thresholds={"relevancy": 0.6})
            evals.check(frame, thresholds={"relevancy": 0.4})
    """)
    assert table_of(result)[1:] == [["test_app.py::test_two", "relevancy", "0.500", "none", "2", "0", "missed"]]


def test_second_try_of_a_test_counts_alone(project, pytester):
    pytester.makeconftest("""
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            runtestprotocol(item, nextitem=nextitem, log=False)
            item._initrequest()
            runtestprotocol(item, nextitem=nextitem)
            return True
    """)
    result = project(
        "def test_again(evals): evals.check(scored([0.5]), baseline='base.json')", "--evals-update-baseline", "--junitxml=out.xml"
    )
    assert table_of(result)[1:] == [["test_app.py::test_again", "relevancy", "0.500", "none", "1", "0", "baseline written"]]
    assert (pytester.path / "out.xml").read_text().count("scorekit.relevancy.mean") == 1


LIGHT = """
import sys

HEAVY = {"pandas", "numpy", "scipy", "openai", "pydantic", "rapidfuzz", "scorekit.errors"}

def test_before():
    assert sorted(HEAVY & set(sys.modules)) == []

def test_after(evals):
    import pandas

    evals.score(pandas.DataFrame({"output": ["a"]}), lambda df: df.assign(a_score=1.0))
    assert {"pandas", "scorekit.errors"} <= set(sys.modules)
"""


def test_plugin_loads_nothing_heavy_before_a_test_uses_it(project, pytester):
    pytester.makepyfile(test_light=LIGHT)
    assert len(table_of(project(None, apart=True))) == 2
    alone = project(None, "-k", "before", apart=True)
    alone.assert_outcomes(passed=1, deselected=1)
    assert table_of(alone) == []


def test_plugin_off_leaves_nothing(project):
    plain = project("def test_plain(): pass", "-p", OFF)
    assert "scorekit" not in plain.stdout.str().replace(str(sk.__file__), "")
    missing = project("def test_evals(evals): pass", "-p", OFF, code=1)
    missing.stdout.fnmatch_lines(["*fixture 'evals' not found"])
    still = project("def test_frame(): assert_evals(scored([0.5]), thresholds={'relevancy': 0.6})", "-p", OFF, code=1, apart=True)
    still.stdout.fnmatch_lines(["*assert_evals: 1 miss in test_app.py::test_frame"])
    assert table_of(still) == []


# --- what assert_evals counts


def frame(scores, name="relevancy", **columns):
    return pd.DataFrame({"output": [f"o{i}" for i in range(len(scores))], f"{name}_score": scores, **columns})


def message_of(result, **criteria):
    with pytest.raises(AssertionError) as raised:
        assert_evals(result, **criteria)
    return str(raised.value).split("\n")[1:]


@pytest.mark.parametrize(
    ("scores", "pair"),
    [([0.7, 0.9, 0.1], (0.7, 2 / 3)), ([0.1 + 0.2, 1.0], (0.3, 1)), ([0.3 - 1e-12], (0.3, 1.0)), ([5.0, 0.0], (1, 0.5))],
)  # fmt: skip
def test_pass_rate_includes_its_ends(scores, pair):
    assert_evals(frame(scores), pass_rate={"relevancy_score": pair})


def test_pass_rate_of_a_score_that_is_worse_when_higher_counts_rows_at_or_below():
    assert_evals(frame([0.1, 0.0, 0.9], "toxicity"), pass_rate={"toxicity": (0.1, 0.6)})
    assert message_of(frame([0.1, 0.0, 0.9], "toxicity"), pass_rate={"toxicity": (0.1, 0.7)}) == [
        "  toxicity: pass rate 0.667 is below 0.7: 2 of 3 scored rows are at or below 0.1",
        "    row 2: 0.9  o2",
    ]
    assert_evals(frame([0.1, 0.0, 0.9], "latency"), pass_rate={"latency": (0.1, 0.6)}, lower_is_better=["latency"])
    assert_evals(
        frame([0.1, 0.0, 0.9], "toxicity"), pass_rate={"toxicity": (0.1, 0.6)}, lower_is_better=["latency"]
    )  # the shipped names stay


def test_gate_of_a_score_that_is_worse_when_higher_wants_0():
    assert_evals(frame([0.0, 0.0], "bias"), gates=["bias"])
    assert message_of(frame([0.0, 0.01], "bias"), gates=["bias"]) == ["  bias: gate: 1 of 2 rows are not 0.0", "    row 1: 0.01  o1"]


def test_unscored_rows_are_counted_and_none_is_allowed_by_default():
    df = frame([1.0, None, 1.0, None], relevancy_error=[None, "judge_timeout", None, "not_scorable"])
    assert message_of(df, thresholds={"relevancy": 0.5}) == [
        "  relevancy: 2 of 4 rows are unscored (judge_timeout: 1, not_scorable: 1); a share of 0 is allowed",
        "    row 1: unscored judge_timeout  o1",
        "    row 3: unscored not_scorable  o3",
    ]
    assert_evals(df, thresholds={"relevancy": 0.5}, most_unscored=0.5)
    assert message_of(df, thresholds={"relevancy": 0.5}, most_unscored=0.49)[0].startswith("  relevancy: 2 of 4 rows are unscored")


def test_unscored_row_misses_a_gate_whatever_is_allowed():
    assert message_of(frame([1.0, None]), gates=["relevancy"], most_unscored=1.0) == [
        "  relevancy: gate: 1 of 2 rows are not 1.0",
        "    row 1: unscored  o1",
    ]


@pytest.mark.parametrize("scores", [[], [np.nan, np.nan]])
def test_score_of_no_row_misses(scores):
    df = frame(np.array(scores, dtype=float))
    assert message_of(df, thresholds={"relevancy": {"max": 1}}, most_unscored=1.0)[0] == f"  relevancy: no row of {len(scores)} has a score"


def test_worst_rows_are_three_with_80_characters_on_one_line():
    scores = [0.4, 0.1, 0.3, 0.2, 0.9]
    df = frame(scores).assign(output=["a", "long \x1b[2J\n" + "x" * 200, "b", "c", "d"])
    df.index = ["r0", "r1", "r2", "r3", "r4"]
    assert message_of(df, thresholds={"relevancy": 0.5}) == [
        "  relevancy: mean 0.380 is below 0.5 (n=5, unscored 0)",
        "    row r1: 0.1  long [2J " + "x" * 70 + "…",
        "    row r3: 0.2  c",
        "    row r2: 0.3  b",
        "    and 1 more",
    ]


def test_threshold_above_which_a_mean_must_not_be_shows_the_highest_rows():
    assert message_of(frame([0.2, 0.9, 1.0]), thresholds={"relevancy": {"max": 0.5}}) == [
        "  relevancy: mean 0.700 is above 0.5 (n=3, unscored 0)",
        "    row 2: 1  o2",
        "    row 1: 0.9  o1",
    ]


def test_mean_near_its_bound_is_told_with_the_digits_that_tell_them_apart():
    assert message_of(frame([0.69996]), thresholds={"relevancy": 0.7})[0] == "  relevancy: mean 0.69996 is below 0.7 (n=1, unscored 0)"
    assert_evals(frame([0.2, 0.4, 0.6]), thresholds={"relevancy": {"max": 0.4}})


def test_gates_and_thresholds_of_the_run_itself_are_checked():
    def is_upper(df):
        return df.assign(upper_score=df["output"].str.isupper().astype(int))

    def failing(text):
        if text == "b":
            raise ValueError(text)
        return text

    result = run_evals(["A", "b", "c"], failing, gates=[is_upper], thresholds={"upper": 0.9}, progress=False)
    assert message_of(result, most_unscored=0.5) == [
        "  upper: gate of run_evals: 1 of 2 rows; target or judge failed in 1 rows",
        "  upper: threshold of run_evals: mean 0.500, min 0.9 (n=2); target or judge failed in 1 rows",
    ]
    assert message_of(result, most_unscored=0.5, thresholds={"upper": 0.4}, gates="upper") == [
        "  upper: gate: 2 of 3 rows are not 1.0",
        "    row 1: unscored  <NA>",
        "    row 2: 0  c",
    ]


@pytest.mark.parametrize(
    ("criteria", "error", "words"),
    [
        ({}, ArgumentTypeError, "has nothing to check: give pass_rate="),
        ({"pass_rate": {"relevancy": 0.7}}, ArgumentTypeError, r"pass_rate\['relevancy'\] must be two numbers"),
        ({"pass_rate": {"relevancy": (0.7,)}}, OptionRangeError, "must be two numbers"),
        ({"pass_rate": {"relevancy": (0.7, 90)}}, OptionRangeError, "above 0 and at most 1"),
        ({"pass_rate": {"relevancy": (0.7, 0)}}, OptionRangeError, "above 0 and at most 1"),
        ({"pass_rate": [("relevancy", 0.7)]}, ArgumentTypeError, "pass_rate must be a mapping"),
        ({"thresholds": {"relevance": 0.7}}, MissingColumnError, "Did you mean 'relevancy'"),
        ({"thresholds": {"relevancy": {"least": 0.7}}}, UnknownOptionError, "choose one of 'min', 'max'"),
        ({"gates": ["tone"]}, MissingColumnError, "'tone_score'; the frame has scores of 'relevancy'"),
        ({"gates": "relevancy", "most_unscored": 5}, OptionRangeError, "most_unscored=5 is out of range"),
        ({"gates": "relevancy", "margin": -0.1}, OptionRangeError, "margin=-0.1 is out of range"),
        ({"gates": "relevancy", "margin": float("nan")}, OptionRangeError, "margin=nan is out of range"),
    ],
)
def test_wrong_criteria_are_refused(criteria, error, words):
    with pytest.raises(error, match=words):
        assert_evals(frame([1.0]), **criteria)


def test_something_else_than_a_result_is_refused():
    with pytest.raises(ArgumentTypeError, match="assert_evals must be an EvalResult or a scored DataFrame, not dict"):
        assert_evals({"relevancy": 0.5}, gates="relevancy")
