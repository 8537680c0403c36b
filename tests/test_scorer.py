"""The Scorer: declaration, rows, errors, columns."""

import pickle
from dataclasses import replace
from typing import Literal

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel, ConfigDict, Field

import scorekit as sk
from scorekit.errors import (
    ArgumentTypeError,
    ColumnConflictError,
    JudgeSetupError,
    MissingColumnError,
    OptionRangeError,
    ScorerDefinitionError,
    StepResultError,
)
from scorekit.judge.replies import Answer
from scorekit.testing import FakeJudge, check_scorer


class Politeness(BaseModel):
    polite: float
    tone: Literal["warm", "cold"]
    words: list[str]
    reason: str


def length(rows):
    return rows["output"].str.len().astype("float64")


def split(rows, *, separator):
    return pd.DataFrame({"parts": rows["output"].str.split(separator), "count": rows["output"].str.count(separator) + 1})


def count_parts(rows, *, scale):
    return rows["parts"].map(len) * scale


LENGTH = sk.Scorer("length", needs=("output",), generate_score=length)
PARTS = sk.Scorer(
    "parts",
    needs=("output",),
    preprocess=split,
    generate_score=count_parts,
    generate_reason=lambda rows: "It has " + rows["count"].astype(int).astype(str) + " parts.",
    fields={"count": int, "parts": list},
    options={"separator": ",", "scale": 2.0},
)
POLITE = sk.Scorer(
    "polite",
    needs=("output",),
    analyze=sk.Prompt("Is this polite?\n{{ output }}", reply=Politeness),
    generate_score=lambda rows: rows["polite"],
)


def reply(polite=1.0):
    return {"polite": polite, "tone": "warm", "words": ["please"], "reason": "It says please."}


def test_scorer_function_steps_give_score_reason_and_fields():
    scored = PARTS(pd.DataFrame({"output": ["a,b", "c"]}))
    assert scored["parts_error"].isna().all()
    assert scored.drop(columns="parts_error").to_dict("list") == {
        "output": ["a,b", "c"],
        "parts_score": [4.0, 2.0],
        "parts_reason": ["It has 2 parts.", "It has 1 parts."],
        "parts_count": [2.0, 1.0],
        "parts_parts": ['["a", "b"]', '["c"]'],
    }


def test_scorer_reply_fields_become_columns_by_declaration():
    scored = POLITE(pd.DataFrame({"output": ["a", None]}), judge=FakeJudge({"analyze": reply()}))
    assert {column: str(dtype) for column, dtype in scored.dtypes.items() if column != "output"} == {
        "polite_score": "float64",
        "polite_reason": "string",
        "polite_error": "string",
        "polite_judge": "string",
        "polite_polite": "float64",
        "polite_tone": "string",
        "polite_words": "string",
    }
    assert scored.loc[0, "polite_reason"] == "It says please."
    assert scored["polite_judge"].tolist() == ["fake", pd.NA]
    assert scored["polite_words"].tolist() == ['["please"]', pd.NA]


def test_scorer_zero_rows_have_the_dtypes_of_all_failed_rows():
    df = pd.DataFrame({"output": ["a"]})
    failed = POLITE(df, judge=FakeJudge({"analyze": "no json"}))
    assert failed["polite_error"].tolist() == ["reply_invalid"]
    assert POLITE(df.iloc[:0], judge=FakeJudge({})).dtypes.equals(failed.dtypes)


def test_scorer_zero_rows_ask_nothing():
    judge = FakeJudge({})
    assert len(POLITE(pd.DataFrame({"output": []}), judge=judge)) == 0
    assert judge.requests == []


@pytest.mark.parametrize(
    "index",
    [[3, 1, 2], ["x", "x", "y"], pd.MultiIndex.from_tuples([("a", 1), ("a", 1), ("b", 2)]), pd.date_range("2026-01-01", periods=3)],
)
def test_scorer_any_index_comes_back_untouched(index):
    df = pd.DataFrame({"output": ["a", None, "ccc"]}, index=index)
    scored = LENGTH(df)
    pd.testing.assert_index_equal(scored.index, df.index)
    assert scored["length_score"].fillna(-1).tolist() == [1.0, -1.0, 3.0]


def test_scorer_filtered_frame_keeps_its_labels():
    df = pd.DataFrame({"output": ["a", "bb", "ccc"], "lang": ["en", "ja", "ja"]})
    scored = LENGTH(df[df["lang"] == "ja"])
    assert scored["length_score"].to_dict() == {1: 2.0, 2: 3.0}


@pytest.mark.parametrize("dtype", ["object", "string[python]", "category"])
def test_scorer_text_dtypes_score_alike_and_keep_their_dtype(dtype):
    df = pd.DataFrame({"output": pd.Series(["a", None, "bb"], dtype=dtype)})
    scored = LENGTH(df)
    assert scored["output"].dtype == df["output"].dtype
    assert scored["length_error"].tolist() == [pd.NA, "missing_input", pd.NA]


def test_scorer_pyarrow_strings_score_alike():
    pa = pytest.importorskip("pyarrow")
    for dtype in ("string[pyarrow]", pd.ArrowDtype(pa.string())):
        scored = LENGTH(pd.DataFrame({"output": pd.Series(["a", None], dtype=dtype)}))
        assert scored["length_error"].tolist() == [pd.NA, "missing_input"]


def test_scorer_numbers_in_cells_are_not_text_and_lose_nothing():
    scored = LENGTH(pd.DataFrame({"output": ["a", 5]}))
    assert scored["length_score"].fillna(-1).tolist() == [1.0, -1.0]
    assert scored["length_error"].tolist() == [pd.NA, "not_text"]
    assert scored["output"].tolist() == ["a", 5]


def test_scorer_all_rows_missing_gives_no_score_and_no_call():
    judge = FakeJudge({})
    scored = POLITE(pd.DataFrame({"output": [None, np.nan]}), judge=judge)
    assert scored["polite_error"].tolist() == ["missing_input", "missing_input"]
    assert judge.requests == []


def test_scorer_column_mapping_reads_another_column():
    assert LENGTH(pd.DataFrame({"answer": ["ab"]}), output="answer")["length_score"].tolist() == [2.0]


def test_scorer_missing_column_raises_before_any_request():
    judge = FakeJudge({})
    with pytest.raises(
        MissingColumnError, match="The scorer 'polite' needs a column 'output'; the frame has 'Output '. Did you mean output='Output '"
    ):
        POLITE(pd.DataFrame({"Output ": ["a"]}), judge=judge)
    assert judge.requests == []


def test_scorer_doubled_column_raises():
    with pytest.raises(ColumnConflictError, match="2 columns of that name"):
        LENGTH(pd.DataFrame([["a", "b"]], columns=["output", "output"]))


def test_scorer_unknown_argument_names_the_nearest():
    with pytest.raises(ArgumentTypeError, match="has no argument 'ouput'.*Did you mean 'output'"):
        LENGTH(pd.DataFrame({"output": ["a"]}), ouput="x")


def test_scorer_series_instead_of_a_frame_raises():
    with pytest.raises(ArgumentTypeError, match="must be a pandas DataFrame, not Series"):
        LENGTH(pd.Series(["a"]))


def test_scorer_foreign_score_column_raises_and_points_to_name():
    with pytest.raises(ColumnConflictError, match="Pass name="):
        LENGTH(pd.DataFrame({"output": ["a"], "length_score": [3.0]}))


def test_scorer_rerun_writes_its_columns_anew():
    df = pd.DataFrame({"output": ["a"]})
    once = LENGTH(df)
    changed = once.assign(output=["abc"])
    assert LENGTH(changed)["length_score"].tolist() == [3.0]
    assert list(LENGTH(changed).columns) == list(once.columns)


def test_scorer_input_frame_is_never_changed():
    df = pd.DataFrame({"output": ["a", None]}, index=[1, 1])
    before = df.copy(deep=True)
    PARTS(df)
    pd.testing.assert_frame_equal(df, before)


def test_scorer_step_that_writes_to_rows_does_not_reach_the_frame():
    def vandal(rows):
        rows["output"] = "changed"
        return rows["output"].str.len().astype(float)

    df = pd.DataFrame({"output": ["a"]})
    sk.Scorer("v", needs=("output",), generate_score=vandal)(df)
    assert df["output"].tolist() == ["a"]


def test_scorer_not_scorable_stops_the_row_with_its_reason():
    scorer = sk.Scorer(
        "even",
        needs=("output",),
        preprocess=lambda rows: pd.DataFrame({"not_scorable": rows["output"].where(rows["output"] == "odd")}),
        generate_score=length,
    )
    scored = scorer(pd.DataFrame({"output": ["ok", "odd"]}))
    assert scored["even_error"].tolist() == [pd.NA, "not_scorable"]
    assert scored["even_reason"].tolist() == [pd.NA, "odd"]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scorer_no_finite_number_is_not_scorable(bad):
    scorer = sk.Scorer("s", needs=("output",), generate_score=lambda rows: pd.Series([1.0, bad]))
    scored = scorer(pd.DataFrame({"output": ["a", "b"]}))
    assert scored["s_score"].fillna(-1).tolist() == [1.0, -1.0]
    assert scored["s_error"].tolist() == [pd.NA, "not_scorable"]


def test_scorer_bug_in_a_step_raises_with_the_step_s_name():
    scorer = sk.Scorer("s", needs=("output",), generate_score=lambda rows: rows["nope"])
    with pytest.raises(KeyError) as caught:
        scorer(pd.DataFrame({"output": ["a"]}))
    assert caught.value.__notes__ == ["(raised in step generate_score of the scorer 's')"]
    assert caught.value.partial["s_error"].tolist() == ["cancelled"]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda rows: pd.Series([1.0, 2.0]), "returned 2 values for 1 rows"),
        (lambda rows: 1.0, "must return one value a row, not float"),
        (lambda rows: pd.Series(["x"]), "must return numbers"),
        (lambda rows: pd.DataFrame({"x": [1.0]}), "must return the score"),
        (lambda rows: pd.Series([1.0], index=[9]), "returned other row labels"),
    ],
)
def test_scorer_step_result_that_does_not_fit_raises(step, message):
    scorer = sk.Scorer("s", needs=("output",), generate_score=step)
    with pytest.raises(StepResultError, match=message):
        scorer(pd.DataFrame({"output": ["a"]}))


def test_scorer_step_that_sorts_its_rows_is_aligned_by_label():
    scorer = sk.Scorer("s", needs=("output",), generate_score=lambda rows: rows["output"].str.len().sort_values().astype(float))
    assert scorer(pd.DataFrame({"output": ["ccc", "a"]}))["s_score"].tolist() == [3.0, 1.0]


def test_scorer_declared_field_that_no_step_gives_raises():
    scorer = sk.Scorer("s", needs=("output",), generate_score=length, fields={"yes": float})
    with pytest.raises(StepResultError, match=r"declares the fields \['yes'\]"):
        scorer(pd.DataFrame({"output": ["a"]}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "has link"}, "must be an identifier"),
        ({"needs": ()}, "must name the columns"),
        ({"needs": ("judge",)}, "the call has an argument of that name"),
        ({"options": {"seperator": ",", "separator": ",", "scale": 1}}, "'seperator' that no step takes. Did you mean 'separator'"),
        ({"options": {"scale": 1}}, "takes 'separator', but options= does not have it"),
        ({"fields": {"score": float}}, "'score' in fields="),
        ({"fields": {"reason": str}}, "'reason' in fields="),
        ({"generate_score": 3}, "must be a function"),
        ({"analyze": sk.Prompt("{{ output }}", reply=Politeness)}, None),
    ],
)
def test_scorer_declaration_that_cannot_work_raises_when_made(changes, message):
    if message is None:
        assert replace(PARTS, **changes).name == "parts"
        return
    with pytest.raises(ScorerDefinitionError, match=message):
        replace(PARTS, **changes)


def test_scorer_template_with_an_unknown_name_raises_when_made():
    with pytest.raises(ScorerDefinitionError, match="reads 'ouput'.*Did you mean 'output'"):
        sk.Scorer("s", needs=("output",), analyze=sk.Prompt("{{ ouput }}", reply=Politeness), generate_score=length)


def test_scorer_reply_with_a_reserved_field_raises_when_made():
    class Score(BaseModel):
        score: float

    with pytest.raises(ScorerDefinitionError, match="'score' in analyze"):
        sk.Scorer("s", needs=("output",), analyze=sk.Prompt("{{ output }}", reply=Score), generate_score=length)


def test_scorer_without_stand_in_and_without_a_judge_says_so():
    with pytest.raises(JudgeSetupError, match="its step analyze has no local stand-in"):
        POLITE(pd.DataFrame({"output": ["a"]}))


def test_scorer_prompt_without_a_known_name_at_run_time_raises_before_asking():
    judge = FakeJudge({})
    scorer = sk.Scorer(
        "s",
        needs=("output",),
        preprocess=lambda rows: pd.DataFrame({"parts": rows["output"].str.split()}),
        analyze=sk.Prompt("{{ prats }}", reply=Politeness),
        generate_score=length,
    )
    with pytest.raises(ScorerDefinitionError, match=r"reads \['prats'\]"):
        scorer(pd.DataFrame({"output": ["a"]}), judge=judge)
    assert judge.requests == []


def test_scorer_when_false_rows_get_otherwise_without_a_call():
    judge = FakeJudge({"analyze": reply()})
    prompt = sk.Prompt(
        "{{ output }}",
        reply=Politeness,
        when=lambda rows: rows["output"] != "",
        otherwise={"polite": 0.0, "tone": "cold", "words": [], "reason": "Nothing said."},
    )
    scored = replace(POLITE, analyze=prompt)(pd.DataFrame({"output": ["", "a"]}), judge=judge)
    assert scored["polite_score"].tolist() == [0.0, 1.0]
    assert scored["polite_reason"].tolist() == ["Nothing said.", "It says please."]
    assert len(judge.requests) == 1


def test_scorer_failed_reason_keeps_the_score():
    judge = FakeJudge({"analyze": reply(), "generate_reason": "not json"})

    class Why(BaseModel):
        reason: str

    scored = replace(POLITE, generate_reason=sk.Prompt("Why {{ score }}?", reply=Why))(pd.DataFrame({"output": ["a"]}), judge=judge)
    assert scored["polite_score"].tolist() == [1.0]
    assert scored["polite_error"].tolist() == [pd.NA]
    assert scored.loc[0, "polite_reason"].startswith("(No explanation: reply_invalid:")


def test_scorer_keep_prompts_adds_what_was_asked():
    scored = POLITE(pd.DataFrame({"output": ["a", None]}), judge=FakeJudge({"analyze": reply()}), keep_prompts=True)
    assert scored["polite_analyze_prompt"].iloc[0].endswith("Is this polite?\n<output>\na\n</output>")
    assert scored["polite_analyze_prompt"].isna().tolist() == [False, True]


def test_scorer_usage_adds_tokens_and_seconds():
    class Counting(FakeJudge):
        def _answer(self, request):
            answer = super()._answer(request)
            return Answer(value=answer.value, input_tokens=7, output_tokens=3, seconds=0.5)

    scored = POLITE(pd.DataFrame({"output": ["a", None]}), judge=Counting({"analyze": reply()}), usage=True)
    assert scored[["polite_input_tokens", "polite_output_tokens", "polite_seconds"]].values.tolist() == [[7.0, 3.0, 0.5], [0.0, 0.0, 0.0]]


def test_scorer_options_reach_templates_and_steps():
    judge = FakeJudge({"analyze": reply()})
    scorer = sk.Scorer(
        "s",
        needs=("output",),
        analyze=sk.Prompt("As {{ role }}: {{ output }}", reply=Politeness),
        generate_score=lambda rows, *, scale: rows["polite"] * scale,
        options={"role": "a teacher", "scale": 10},
    )
    assert scorer(pd.DataFrame({"output": ["a"]}), judge=judge)["s_score"].tolist() == [10.0]
    assert judge.requests[0].messages[1]["content"].startswith("As a teacher: <output>")


def test_scorer_lone_surrogate_in_a_reason_is_replaced():
    scorer = sk.Scorer("s", needs=("output",), generate_score=length, generate_reason=lambda rows: rows["output"])
    assert scorer(pd.DataFrame({"output": ["a\ud800"]}, dtype=object))["s_reason"].tolist() == ["a\ufffd"]


def test_scorer_keeps_its_promises():
    df = pd.DataFrame({"output": ["a,b", None, "", 5, "c"], "other": range(5)}, index=[1, 1, 2, 3, 4])
    check_scorer(LENGTH, df)
    check_scorer(PARTS, df, pickles=False)


def test_scorer_made_of_lambdas_goes_through_cloudpickle():
    scorer = pickle.loads(cloudpickle.dumps(PARTS))
    assert scorer(pd.DataFrame({"output": ["a,b"]}))["parts_score"].tolist() == [4.0]


def test_scorer_result_survives_parquet_exactly(tmp_path):
    pytest.importorskip("pyarrow")
    scored = PARTS(pd.DataFrame({"output": ["a,b", None]}))
    scored.to_parquet(tmp_path / "x.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "x.parquet"), scored)


def test_scorer_many_rows_in_chunks_equal_rows_one_by_one():
    def statements(request):
        return {"statements": request.context["output"].split()}

    def verdicts(request):
        return {
            "results": [
                {"statement": n, "result": "yes" if len(word) > 2 else "no", "reason": "r"}
                for n, word in enumerate(request.context["statements"], 1)
            ]
        }

    judge = FakeJudge({"preprocess": statements, "analyze": verdicts, "generate_reason": {"reason": "why"}})
    df = pd.DataFrame({"input": "q", "output": [f"{'word ' * (n % 5)}no" for n in range(700)]})
    scored = sk.score_relevancy(df, judge=judge)
    assert scored["relevancy_score"].tolist() == [(n % 5) / (n % 5 + 1) for n in range(700)]


def test_scorer_step_s_field_that_json_cannot_hold_names_step_and_field():
    scorer = sk.Scorer(
        "s", needs=("output",), analyze=lambda rows: pd.DataFrame({"tags": [{1}]}), generate_score=length, fields={"tags": list}
    )
    with pytest.raises(StepResultError, match="Step analyze of the scorer 's' gave something in the field 'tags' that JSON cannot hold"):
        scorer(pd.DataFrame({"output": ["a"]}))


def test_scorer_reason_step_that_stops_a_scored_row_raises():
    scorer = sk.Scorer(
        "s", needs=("output",), generate_score=length, generate_reason=lambda rows: pd.DataFrame({"reason": ["r"], "not_scorable": ["x"]})
    )
    with pytest.raises(StepResultError, match="stop rows in an earlier step"):
        scorer(pd.DataFrame({"output": ["a"]}))


@pytest.mark.parametrize("answer", [[None], ["False"], [pd.NA], [1.0]])
def test_scorer_when_that_is_not_true_or_false_raises(answer):
    prompt = sk.Prompt("{{ output }}", reply=Politeness, when=lambda rows: pd.Series(answer), otherwise=reply())
    with pytest.raises(StepResultError, match="must return True or False for every row"):
        replace(POLITE, analyze=prompt)(pd.DataFrame({"output": ["a"]}), judge=FakeJudge({"analyze": reply()}))


@pytest.mark.parametrize("score", [pd.Series(["1.0"]), pd.Series([1 + 2j]), pd.to_datetime(pd.Series(["2026-01-01"]))])
def test_scorer_score_that_is_no_number_raises(score):
    with pytest.raises(StepResultError, match="must return numbers in the score"):
        sk.Scorer("s", needs=("output",), generate_score=lambda rows: score)(pd.DataFrame({"output": ["a"]}))


def test_scorer_step_s_field_named_like_an_input_raises():
    scorer = sk.Scorer("s", needs=("output",), analyze=lambda rows: rows["output"].str.len(), generate_score=length)
    with pytest.raises(StepResultError, match="a field 'output', which is the name of an input"):
        scorer(pd.DataFrame({"output": ["a"]}))


def test_scorer_step_that_writes_into_its_cells_reaches_no_later_step():
    def vandal(rows):
        rows.loc[0, "output"] = "CHANGED"
        return pd.DataFrame({"x": [1.0]})

    scorer = sk.Scorer("s", needs=("output",), preprocess=vandal, generate_score=length, generate_reason=lambda rows: rows["output"])
    assert scorer(pd.DataFrame({"output": ["a"]}))["s_reason"].tolist() == ["a"]


def test_scorer_step_may_be_an_object_that_cannot_be_hashed():
    class Length:
        __hash__ = None

        def __call__(self, rows):
            return length(rows)

    assert sk.Scorer("s", needs=("output",), generate_score=Length())(pd.DataFrame({"output": ["ab"]}))["s_score"].tolist() == [2.0]


def test_scorer_field_without_a_type_raises_when_made():
    with pytest.raises(ScorerDefinitionError, match="must give 'f' a type such as float or str"):
        replace(LENGTH, fields={"f": "float"})


def test_scorer_option_named_like_an_input_raises_when_made():
    with pytest.raises(ScorerDefinitionError, match="which is also a column that it needs"):
        sk.Scorer("s", needs=("output",), generate_score=lambda rows, *, output: rows, options={"output": 1})


def test_scorer_code_scorer_takes_no_repeats():
    with pytest.raises(OptionRangeError, match="gives the same score each time"):
        LENGTH(pd.DataFrame({"output": ["a"]}), repeats=2)


def test_scorer_rerun_keeps_columns_that_it_can_never_have_written():
    scored = LENGTH(pd.DataFrame({"output": ["a"]})).assign(length_judge="human", length_spread=1)
    assert LENGTH(scored)["length_judge"].tolist() == ["human"]


def test_scorer_rerun_drops_the_prompts_of_an_earlier_run():
    judge = FakeJudge(
        {
            "preprocess": {"statements": ["s"]},
            "analyze": {"results": [{"statement": 1, "result": "yes", "reason": "r"}]},
            "generate_reason": {"reason": "r"},
        }
    )
    df = pd.DataFrame({"input": ["q"], "output": ["a"]})
    first = sk.score_relevancy(df, judge=judge, keep_prompts=True)
    second = sk.score_relevancy(first, judge=judge, reason="verdicts")
    assert [column for column in second.columns if column.endswith("_prompt")] == []


def test_scorer_reply_with_aliases_fills_its_fields_by_name():
    class Aliased(BaseModel):
        model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)
        polite: float = Field(alias="Polite")

    scorer = sk.Scorer("s", needs=("output",), analyze=sk.Prompt("{{ output }}", reply=Aliased), generate_score=lambda rows: rows["polite"])
    assert scorer(pd.DataFrame({"output": ["a"]}), judge=FakeJudge({"analyze": {"Polite": 0.5}}))["s_score"].tolist() == [0.5]
