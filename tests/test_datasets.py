"""The shipped datasets: what they hold, and that the files are those of the index."""

import hashlib
import json
from pathlib import Path

import pytest

from scorekit.datasets import list_datasets, load_dataset
from scorekit.errors import ArgumentTypeError, UnknownOptionError

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
