"""``scorekit store``: what is printed, written and removed."""

import json

import pandas as pd
import pytest

import scorekit as sk
from scorekit.cli import main
from scorekit.files import read_table
from scorekit.monitor.writer import spill_path


@pytest.fixture
def path(tmp_path):
    """A store of two runs, a day apart; one row of the second has no score."""
    path = tmp_path / "scores.db"
    store = sk.ScoreStore(path)
    first = pd.DataFrame({"input": ["I love it.", "I hate it."], "output": ["Great!", "Awful."], "topic": ["a", "b"]})
    second = pd.DataFrame({"input": ["I like it.", "So?"], "output": ["Good.", None], "topic": ["a", "b"]})
    store.append(sk.score_tone(first), run="old", entity_id="agent", created_at="2026-01-01")
    store.append(sk.score_tone(second), run="new", entity_id="agent", created_at="2026-01-02T10:30")
    return path


def said(capsys, *words):
    """Run the command; return its exit code, what it printed and what it complained of."""
    code = main(["store", *map(str, words)])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_ls_lists_the_runs(path, capsys):
    code, out, _ = said(capsys, "ls", "--store", path)
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        ["run", "source", "entity", "scorers", "rows", "results", "unscored", "first", "last", "(UTC)"],
        ["old", "TEST", "agent", "tone", "2", "2", "0", "2026-01-01", "00:00:00", "2026-01-01", "00:00:00"],
        ["new", "TEST", "agent", "tone", "2", "2", "1", "2026-01-02", "10:30:00", "2026-01-02", "10:30:00"],
    ]


def test_ls_lists_live_runs_by_function(path, capsys):
    store = sk.ScoreStore(path)

    @sk.live(scorers={"tone": sk.score_tone}, store=store)
    def support(question):
        return "Great!"

    for _ in range(3):
        support("I love it.")
    assert sk.live.flush(60)
    _, out, _ = said(capsys, "ls", "--store", path, "--source", "LIVE")
    assert out.splitlines()[1].split()[:6] == ["3", "runs", "LIVE", "support", "tone", "3"]
    assert len(out.splitlines()) == 2


def test_ls_takes_filters(path, capsys):
    _, out, _ = said(capsys, "ls", "--store", path, "--run", "new")
    assert [line.split()[0] for line in out.splitlines()] == ["run", "new"]


def test_read_prints_scores_and_why_there_is_none(path, capsys):
    code, out, _ = said(capsys, "read", "--store", path, "-n", "2")
    assert code == 0
    assert len(out.splitlines()) == 3
    assert "missing_input" in out.splitlines()[2]
    assert "The output is missing." in out.splitlines()[2]


def test_read_takes_the_store_of_the_environment(path, capsys, monkeypatch):
    monkeypatch.setenv("SCOREKIT_STORE", str(path))
    assert len(said(capsys, "read")[1].splitlines()) == 5


def test_read_that_finds_nothing_says_so(path, capsys):
    code, out, _ = said(capsys, "read", "--store", path, "--scorer", "relevancy")
    assert (code, out.strip()[-19:]) == (0, "holds no such rows.")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_export_writes_the_rows_as_a_scored_table(path, capsys, tmp_path, ending):
    code, out, _ = said(capsys, "export", tmp_path / f"rows.{ending}", "--store", path, "--since", "2026-01-02")
    assert (code, out) == (0, f"2 rows written to {tmp_path}/rows.{ending}\n")
    frame = read_table(tmp_path / f"rows.{ending}").frame
    assert frame["run"].tolist() == ["new", "new"]
    assert frame["topic"].tolist() == ["a", "b"]
    assert frame["created_at"].tolist() == ["2026-01-02T10:30:00+00:00"] * 2
    assert frame["tone_error"].fillna("").tolist() == ["", "missing_input"]


def test_export_keeps_lists_as_json(tmp_path, capsys):
    store = sk.ScoreStore(tmp_path / "scores.db")
    frame = pd.DataFrame(
        {
            "input": ["q"],
            "output": [[{"role": "assistant", "content": "Good."}]],
            "tone_score": [1.0],
            "tone_reason": ["r"],
            "tone_error": [None],
        }
    )
    store.append(frame, run="one")
    said(capsys, "export", tmp_path / "rows.jsonl", "--store", tmp_path / "scores.db")
    (line,) = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert json.loads(line)["output"] == [{"role": "assistant", "content": "Good."}]


def test_prune_removes_what_is_older(path, capsys):
    code, out, _ = said(capsys, "prune", "--older-than", "1", "--store", path, "--run", "old")
    assert (code, out.split()[:2]) == (0, ["2", "results"])
    assert sk.ScoreStore(path).read()["run"].tolist() == ["new", "new"]


def test_prune_dry_run_removes_nothing(path, capsys):
    code, out, _ = said(capsys, "prune", "--older-than", "1", "--dry-run", "--store", path)
    assert (code, out.split()[0]) == (0, "4")
    assert len(sk.ScoreStore(path).read()) == 4


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["ls", "--store", "nowhere.db"], "There is no store"),
        (["ls", "--store", "mysql://host/db"], "is not known; choose one of"),
        (["read", "-n", "0"], "--rows=0 is out of range"),
        (["read", "--source", "PROD"], "is not known; choose one of 'LIVE', 'TEST'"),
        (["read", "--since", "yesterday"], "since"),
        (["prune", "--older-than", "0"], "--older-than=0.0 is out of range"),
        (["prune", "--older-than", "1e9"], "a number of days that the calendar has"),
        (["export", "rows.xlsx"], "the ending of rows.xlsx"),
    ],
)
def test_wrong_use_says_what_is_wrong(path, capsys, monkeypatch, words, why):
    monkeypatch.setenv("SCOREKIT_STORE", str(path))
    code, _, err = said(capsys, *words)
    assert code == 2
    assert why in err


def test_ls_makes_no_file(tmp_path, capsys):
    said(capsys, "ls", "--store", tmp_path / "nowhere.db")
    assert list(tmp_path.iterdir()) == []


def test_send_stores_what_waits_in_the_spill_file(path, capsys, tmp_path):
    kept, later = sk.ScoreStore(path), sk.ScoreStore(tmp_path / "later.db")
    sk.ScoreStore(str(spill_path(later))).insert(kept.first(3), existing="keep")
    assert "3 rows of live scoring wait for it" in said(capsys, "ls", "--store", later.path)[2]
    code, out, _ = said(capsys, "send", "--store", later.path)
    assert (code, out.split()[:3]) == (0, ["3", "rows", "were"])
    assert later.count() == 3
    assert said(capsys, "send", "--store", later.path)[1].split()[:3] == ["0", "rows", "were"]


def test_ls_says_what_waits_in_the_spill_file(path, capsys):
    store = sk.ScoreStore(path)
    sk.ScoreStore(str(spill_path(store))).insert(store.first(3), existing="keep")
    assert said(capsys, "ls", "--store", path)[1].splitlines()[-1].startswith("3 more wait in ")


def test_hostile_texts_cannot_steer_the_terminal(tmp_path, capsys):
    store = sk.ScoreStore(tmp_path / "scores.db")
    frame = pd.DataFrame({"input": ["q"], "output": ["o"], "tone_score": [1.0], "tone_reason": ["\x1b[2J\x07 done"], "tone_error": [None]})
    store.append(frame, run="\x1b]0;title\x07")
    for action in ("ls", "read"):
        _, out, _ = said(capsys, action, "--store", tmp_path / "scores.db")
        assert "\x1b" not in out
        assert "\x07" not in out
