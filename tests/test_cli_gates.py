"""`scorekit score --fail-under --max`: which means miss, what is said of them, and what is wrong use before a row is scored."""

import json
import re

import pytest

import scorekit
from scorekit.cli import main

ROWS = [{"input": "abcd", "output": "abcd"}, {"input": "abcd", "output": "abXY"}, {"input": None, "output": "x"}]
SCORE = ["score", "t.jsonl", "-s", "text_difference", "-s", "tone", "-o", "o.jsonl", "--max-errors", "any"]
"""Scores: text_difference 1.0, 0.5 and none; tone 1.0 where both texts are neutral."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


@pytest.mark.parametrize(
    "bounds",
    [
        ["--fail-under", "text_difference=0.75"],
        ["--max", "text_difference=0.75", "--fail-under", "text_difference_score=0.75"],
        ["--fail-under", "text_difference=-1", "--max", "text_difference=1e3"],
    ],
)
def test_mean_within_its_bounds_exits_0(folder, capsys, bounds):
    assert main([*SCORE, *bounds]) == 0
    assert "exit code 1" not in capsys.readouterr().err


def test_missed_bounds_exit_1_with_a_line_each_and_the_file_written(folder, capsys):
    assert _missed(capsys, ["--fail-under", "text_difference=0.7501", "--max", "tone=0.3", "--fail-under", "tone=0.2"]) == [
        "scorekit: exit code 1: text_difference misses --fail-under: its mean 0.750 is below 0.7501 (n=2, 1 unscored)",
        "scorekit: exit code 1: tone misses --max: its mean 1.000 is above 0.3 (n=2, 1 unscored)",
    ]
    assert len((folder / "o.jsonl").read_text().splitlines()) == 3


def _missed(capsys, bounds):
    assert main([*SCORE, *bounds]) == 1
    return [line for line in capsys.readouterr().err.splitlines() if "exit code 1" in line]


def test_mean_above_its_max_exits_1(folder, capsys):
    assert _missed(capsys, ["--max", "text_difference=0.7"]) == [
        "scorekit: exit code 1: text_difference misses --max: its mean 0.750 is above 0.7 (n=2, 1 unscored)"
    ]


def test_score_of_no_row_misses_each_of_its_bounds(folder, capsys):
    (folder / "t.jsonl").write_text('{"input": null, "output": "x"}\n')
    assert _missed(capsys, ["--max", "text_difference=1", "--fail-under", "text_difference=0"]) == [
        "scorekit: exit code 1: text_difference misses --fail-under: no row has a score (n=0, 1 unscored)",
        "scorekit: exit code 1: text_difference misses --max: no row has a score (n=0, 1 unscored)",
    ]


def test_bounds_and_max_errors_are_told_together(folder, capsys):
    assert main([*SCORE[:-2], "--max", "text_difference=0.5"]) == 1
    err = capsys.readouterr().err
    assert "misses --max: its mean 0.750 is above 0.5" in err
    assert "1 row in error, 0 allowed: exit code 1" in err


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (["--fail-under", "relevancy=0.7"], "--fail-under: the scorer='relevancy' is not known; choose one of 'text_difference', 'tone'"),
        (["--max", "toen=0.7"], "--max: the scorer='toen' is not known; .*Did you mean 'tone'"),
        (["--max", "tone"], "--max 'tone' is not NAME=NUMBER"),
        (["--max", "=1"], "--max '=1' is not NAME=NUMBER"),
        (["--max", "tone=much"], "--max tone='much' is not a finite number"),
        (["--fail-under", "tone=nan"], "--fail-under tone='nan' is not a finite number"),
        (["--max", "tone=1", "--max", "tone_score=2"], "--max is given twice for 'tone'"),
        (["--max", "tone=0.5", "--fail-under", "tone=0.6"], "--fail-under tone=0.6 is above --max tone=0.5"),
    ],
)
def test_wrong_bounds_exit_2_before_any_row_is_scored(folder, capsys, monkeypatch, bounds, words):
    monkeypatch.setattr(scorekit, "score", lambda *_, **__: pytest.fail("scored"))
    assert main([*SCORE, *bounds]) == 2
    err = capsys.readouterr().err
    assert re.search(words, err)
    assert err.count("\n") == 1
    assert not (folder / "o.jsonl").exists()
