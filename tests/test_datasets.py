"""The shipped datasets: what they hold, and that the files are those of the index."""

import hashlib
import json
from pathlib import Path

import pytest

from scorekit.columns import read_steps
from scorekit.datasets import list_datasets, load_dataset
from scorekit.errors import ArgumentTypeError, UnknownOptionError
from scorekit.judge.local import split_statements

DATA = Path(__file__).parent.parent / "data"
TEXTS = ["id", "kind", "topic", "language", "input", "variant", "system_prompt", "output", "model", "finish_reason"]


def test_load_dataset_smollm_answers_has_360_rows_of_120_questions():
    df = load_dataset("smollm_answers")
    assert df.shape == (360, 11)
    assert df["id"].nunique() == 120
    assert df["variant"].value_counts(sort=False).to_dict() == {"short": 120, "detailed": 120, "expert": 120}
    assert df.drop_duplicates("id")["language"].value_counts().to_dict() == {
        "en": 105,
        "ja": 10,
        "fr": 1,
        "de": 1,
        "es": 1,
        "it": 1,
        "pt": 1,
    }


def test_load_dataset_dtypes_are_string_and_int64():
    df = load_dataset("smollm_answers")
    assert {column: str(df[column].dtype) for column in df} == dict.fromkeys(TEXTS, "string") | {"seed": "int64"}
    assert df["seed"].tolist() == list(range(1, 361))
    assert not df.isna().any(axis=None)


def test_load_dataset_words_that_look_missing_stay_text(tmp_path, monkeypatch):
    rows = [{"id": "1", "output": word} for word in ("None", "N/A", "null", "nan", "")]
    (tmp_path / "words.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    entry = {"name": "words", "file": "words.jsonl", "rows": 5, "columns": ["id", "output"], "licence": "x", "description": "y"}
    (tmp_path / "datasets.json").write_text(json.dumps([entry]))
    monkeypatch.setattr("scorekit.datasets._folder", lambda: tmp_path)
    assert load_dataset("words")["output"].tolist() == ["None", "N/A", "null", "nan", ""]


def test_load_dataset_line_separators_inside_a_text_stay_in_it(tmp_path, monkeypatch):
    (tmp_path / "words.jsonl").write_text('{"output": "a\u2028b\x85c"}\n', encoding="utf-8")
    entry = {"name": "words", "file": "words.jsonl", "rows": 1, "columns": ["output"], "licence": "x", "description": "y"}
    (tmp_path / "datasets.json").write_text(json.dumps([entry]))
    monkeypatch.setattr("scorekit.datasets._folder", lambda: tmp_path)
    assert load_dataset("words")["output"].tolist() == ["a\u2028b\x85c"]


def test_load_dataset_lists_and_dicts_arrive_as_json_text(tmp_path, monkeypatch):
    (tmp_path / "nested.jsonl").write_text('{"a": ["é", null], "b": {"c": 1}}\n{"a": [], "b": {}}\n', encoding="utf-8")
    entry = {"name": "nested", "file": "nested.jsonl", "rows": 2, "columns": ["a", "b"], "licence": "x", "description": "y"}
    (tmp_path / "datasets.json").write_text(json.dumps([entry]))
    monkeypatch.setattr("scorekit.datasets._folder", lambda: tmp_path)
    df = load_dataset("nested")
    assert df.to_dict("list") == {"a": ['["é", null]', "[]"], "b": ['{"c": 1}', "{}"]}
    assert [str(dtype) for dtype in df.dtypes] == ["string", "string"]


@pytest.fixture(scope="module")
def labels():
    df = load_dataset("smollm_labels")
    return df.assign(**{name: read_steps(df, name) for name in ("statements", "verdicts", "why")})


def test_load_dataset_smollm_labels_has_150_rows_of_50_questions():
    df = load_dataset("smollm_labels")
    assert df.shape == (150, 14)
    assert (df["id"].nunique(), df["variant"].value_counts().to_dict()) == (50, {"short": 50, "detailed": 50, "expert": 50})
    assert set(map(str, df.dtypes)) == {"string"}
    assert not df.isna().any(axis=None)


def test_smollm_labels_are_rows_of_smollm_answers(labels):
    keys = ["id", "variant"]
    shared = [*keys, "kind", "topic", "language", "input", "output"]
    answers = load_dataset("smollm_answers")
    chosen = answers.merge(labels[keys], on=keys)
    assert labels[shared].equals(chosen[shared])


def test_smollm_labels_have_a_verdict_and_a_reason_for_each_statement(labels):
    lengths = labels["statements"].str.len()
    assert lengths.sum() == 784
    assert lengths.equals(labels["verdicts"].str.len())
    assert lengths.equals(labels["why"].str.len())
    assert (labels["why"].explode().str.len() > 0).all()
    assert labels["verdicts"].explode().value_counts().to_dict() == {"yes": 307, "unsure": 248, "no": 229}


def test_smollm_labels_statements_are_those_of_the_splitter(labels):
    assert labels["statements"].tolist() == split_statements(labels)["statements"].tolist()


def test_smollm_labels_rows_fail_with_a_failure_and_pass_without(labels):
    assert labels["label"].value_counts().to_dict() == {"fail": 137, "pass": 11, "unsure": 2}
    assert (labels["failure"] == "").equals(labels["label"] == "pass")
    assert (labels["note"].str.len() > 0).all()


def test_smollm_labels_halves_share_no_question(labels):
    halves = labels.drop_duplicates(["id", "half"])
    assert halves["half"].value_counts().to_dict() == {"fit": 25, "held_out": 25}
    assert halves["id"].is_unique
    kinds = halves.groupby(["kind", "half"]).size().unstack()
    assert (kinds["fit"] - kinds["held_out"]).abs().max() <= 1


def test_local_judge_training_has_no_question_of_the_held_out_half(labels):
    training = DATA.parent / "benchmarks" / "local_judge_training.jsonl"
    asked = {json.loads(line)["question"] for line in training.read_text(encoding="utf-8").splitlines()}
    assert asked & set(labels.loc[labels["half"] == "held_out", "input"]) == set()


def test_load_dataset_twice_gives_two_frames():
    first = load_dataset("smollm_answers")
    first["output"] = "changed"
    assert load_dataset("smollm_answers").loc[0, "output"] != "changed"


def test_load_dataset_unknown_name_raises_with_the_nearest():
    with pytest.raises(UnknownOptionError, match="Did you mean 'smollm_answers'"):
        load_dataset("smollm_answer")


def test_load_dataset_name_not_text_raises():
    with pytest.raises(ArgumentTypeError, match="name must be the name of a dataset, not int"):
        load_dataset(3)


def test_list_datasets_tells_rows_columns_and_licence():
    listing = list_datasets()
    assert list(listing.columns) == ["name", "rows", "columns", "description", "licence"]
    assert listing.loc[0, ["name", "rows", "licence"]].tolist() == ["smollm_answers", 360, "Apache-2.0"]
    assert listing.loc[0, "columns"] == "id, kind, topic, language, input, variant, system_prompt, output, model, seed, finish_reason"


@pytest.mark.parametrize("entry", json.loads((DATA / "datasets.json").read_text(encoding="utf-8")), ids=lambda entry: entry["name"])
def test_index_matches_its_file(entry):
    content = (DATA / entry["file"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == entry["sha256"]
    assert content.count(b"\n") == entry["rows"]


def test_sources_tell_about_every_dataset():
    sources = (DATA / "SOURCES.md").read_text(encoding="utf-8")
    assert [entry["file"] for entry in json.loads((DATA / "datasets.json").read_text()) if f"## {entry['file']}" not in sources] == []
