"""`scorekit compare`: what it reads from each kind of file, prints and writes, when it exits with 1, and wrong use."""

import json
import re

import pandas as pd
import pytest

from scorekit.cli import main

OLD = [0.9] * 8
NEW = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
"""All eight lower: of 256 ways to flip the signs two are as extreme, so that p is 2 / 256."""


def rows_of(name="relevancy", old=OLD, new=NEW, **columns):
    return [
        {"id": f"q{i}", "prompt": prompt, "kind": "short" if i < 4 else "long", "output": prompt, f"{name}_score": score, **columns}
        for prompt, scores in (("old", old), ("new", new))
        for i, score in enumerate(scores)
    ]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, rows, name="s.jsonl"):
    if name.endswith(".jsonl"):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif name.endswith(".csv"):
        pd.DataFrame(rows).to_csv(folder / name, index=False)
    else:
        pd.DataFrame(rows).to_parquet(folder / name)


COMPARE = ["--variant", "prompt", "--item", "id"]


@pytest.mark.parametrize("name", ["s.csv", "s.jsonl", "s.parquet"])
def test_compare_prints_the_sentence_and_the_table(folder, capsys, name):
    write(folder, rows_of(), name)
    assert main(["compare", name, *COMPARE]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].startswith("new is worse than old on relevancy by 0.45 (")
    assert lines[0].endswith(" over 8 pairs: 0 won, 0 tied, 8 lost. Note: 8 pairs: fewer than 20, the interval is too narrow.")
    head, row = (re.split(r" {2,}", line) for line in lines[-2:])
    assert head == ["score", "variant", "pairs", "baseline", "mean", "difference", "95 % interval", "p", "won", "tied", "lost", "verdict"]
    assert row[:6] + row[7:] == ["relevancy", "new", "8", "0.900", "0.450", "-0.450", "0.008", "0", "0", "8", "worse"]
    assert err == ""


@pytest.mark.parametrize(
    "gate", [["--fail-on-regression"], ["--fail-on-regression", "relevancy"], ["--fail-on-regression", "relevancy_score"]]
)
def test_compare_regression_exits_1_and_says_which(folder, capsys, gate):
    write(folder, rows_of())
    assert main(["compare", "s.jsonl", *COMPARE, *gate]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("scorekit: exit code 1: regression on relevancy: new is worse than old on relevancy by 0.45 (")


def test_compare_gain_exits_0_and_says_so(folder, capsys):
    write(folder, rows_of())
    assert main(["compare", "s.jsonl", *COMPARE, "--baseline", "new", "--fail-on-regression"]) == 0
    assert capsys.readouterr().err == "scorekit: no regression shown on relevancy\n"


def test_compare_unclear_difference_exits_0_and_says_that_one_may_be_there(folder, capsys):
    write(folder, rows_of(old=[0.5, 0.6, 0.7], new=[0.4, 0.7, 0.5]))
    assert main(["compare", "s.jsonl", *COMPARE, "--fail-on-regression"]) == 0
    assert capsys.readouterr().err == "scorekit: no regression shown on relevancy (1 unclear: a smaller regression may be there)\n"


def test_compare_variant_without_a_scored_pair_fails_the_gate(folder, capsys):
    write(folder, [*rows_of(), *({"id": f"q{i}", "prompt": "broken", "kind": "long", "relevancy_score": None} for i in range(8))])
    assert main(["compare", "s.jsonl", *COMPARE, "--baseline", "new", "--fail-on-regression"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "scorekit: exit code 1: relevancy: broken has no pair with a score on both sides, so nothing shows that it is no worse"
    ]


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("toxicity", [], 0),
        ("quality", ["--lower-is-better", "quality"], 0),
        ("quality", ["--higher-is-better", "quality"], 1),
        ("toxicity", ["--higher-is-better", "toxicity_score"], 1),
    ],
)
def test_compare_direction_of_a_score_decides(folder, name, options, code):
    write(folder, rows_of(name))
    assert main(["compare", "s.jsonl", *COMPARE, *options, "--fail-on-regression", name]) == code


def test_compare_gate_looks_at_its_scores_alone(folder):
    rows = [{**row, "tone_score": 0.5} for row in rows_of()]
    write(folder, rows)
    assert main(["compare", "s.jsonl", *COMPARE, "--fail-on-regression", "tone"]) == 0
    assert main(["compare", "s.jsonl", *COMPARE, "--score", "tone", "--fail-on-regression"]) == 0
    assert main(["compare", "s.jsonl", *COMPARE, "--fail-on-regression"]) == 1


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_compare_out_holds_the_summary(folder, capsys, ending):
    write(folder, rows_of())
    assert main(["compare", "s.jsonl", *COMPARE, "--by", "kind", "-o", f"o.{ending}"]) == 0
    readers = {"csv": pd.read_csv, "jsonl": lambda path: pd.read_json(path, lines=True), "parquet": pd.read_parquet}
    summary = readers[ending](folder / f"o.{ending}")
    assert summary[["score", "variant", "kind", "n_pairs", "losses", "verdict"]].to_dict("list") == {
        "score": ["relevancy"] * 2,
        "variant": ["new"] * 2,
        "kind": ["short", "long"],
        "n_pairs": [4, 4],
        "losses": [4, 4],
        "verdict": ["unclear"] * 2,
    }
    assert summary["difference"].tolist() == pytest.approx([-0.65, -0.25])
    assert summary["p"].tolist() == [0.125, 0.125]
    out, err = capsys.readouterr()
    assert err == f"The summary is written to o.{ending}\n"
    assert re.split(r" {2,}", out.splitlines()[-3])[:4] == ["score", "variant", "kind", "pairs"]
    assert "p_holm" in out.splitlines()[-3]


def test_compare_clusters_are_drawn_whole(folder, capsys):
    write(folder, rows_of())
    assert main(["compare", "s.jsonl", *COMPARE, "--cluster", "kind", "--fail-on-regression"]) == 0
    assert "8 pairs in 2 clusters" in capsys.readouterr().out


def test_compare_several_columns_name_an_item(folder, capsys):
    write(folder, [{**row, "id": int(row["id"][1:]) % 4} for row in rows_of()])
    assert main(["compare", "s.jsonl", *COMPARE, "--item", "kind"]) == 0
    assert "over 8 pairs: 0 won, 0 tied, 8 lost" in capsys.readouterr().out


def test_compare_csv_empty_cells_are_missing(folder, capsys):
    (folder / "s.csv").write_text(
        "id,prompt,tone_score,tone_judge\n1,a,0.5,j\n2,a,,\n3,a,nan,\n4,a,1,j\n1,b,0.6,j\n2,b,1,j\n3,b,1,j\n4,b,0.5,j\n,b,1,j\n9,,1,j\n"
    )
    assert main(["compare", "s.csv", *COMPARE]) == 0
    out = capsys.readouterr().out
    assert out.startswith("2 pairs cannot tell b from a on tone")
    assert "1 rows without a variant are left out." in out
    assert "1 rows without an item are left out." in out
    assert "tone was judged by j." in out


def test_compare_baseline_is_found_among_numbers(folder, capsys):
    write(folder, [{**row, "prompt": {"old": 1, "new": 2}[row["prompt"]]} for row in rows_of()])
    assert main(["compare", "s.jsonl", *COMPARE, "--baseline", "2"]) == 0
    assert capsys.readouterr().out.startswith("1 is better than 2 on relevancy by 0.45")


def test_compare_column_that_is_no_score_is_told_and_left_out(folder, capsys):
    write(folder, rows_of(credit_score="A+"), "s.csv")
    assert main(["compare", "s.csv", *COMPARE]) == 0
    out, err = capsys.readouterr()
    assert err == "scorekit: note: the column 'credit_score' is no score, and is not compared: row 0 (counted from 0) holds 'A+'\n"
    assert "credit" not in out


def test_compare_control_characters_of_a_file_stay_out_of_the_terminal(folder, capsys):
    write(folder, [{**row, "prompt": row["prompt"] + "\x1b[2J\ud800", "output": "\ud800"} for row in rows_of()])
    assert main(["compare", "s.jsonl", *COMPARE, "--fail-on-regression"]) == 1
    out, err = capsys.readouterr()
    assert [text for text in (out, err) if "\x1b" in text or "\ud800" in text] == []
    assert "new[2J\ufffd is worse than old[2J\ufffd" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope.jsonl", *COMPARE], "Cannot read nope.jsonl: No such file"),
        (
            ["s.jsonl", "--variant", "promt", "--item", "id"],
            "compare needs a column 'promt'; the frame has .*Did you mean variant='prompt'",
        ),
        (["s.jsonl", "--variant", "prompt", "--item", "nr"], "compare needs a column 'nr'"),
        (["s.jsonl", *COMPARE, "--by", "topic"], "compare needs a column 'topic'"),
        (["s.jsonl", *COMPARE, "--cluster", "output"], "cluster='output' must be the same in all rows of an item"),
        (["s.jsonl", *COMPARE, "--score", "relevance"], "needs a column 'relevance_score'; .*Did you mean 'relevancy'"),
        (["s.jsonl", *COMPARE, "--baseline", "olds"], "baseline='olds' is not known; choose one of 'old', 'new'. Did you mean 'old'"),
        (["s.jsonl", "--variant", "kind", "--item", "id"], "compare finds no pair"),
        (
            ["s.jsonl", *COMPARE, "--fail-on-regression", "tone"],
            "--fail-on-regression='tone' is not known; choose one of 'relevancy', 'own'",
        ),
        (["s.jsonl", *COMPARE, "--fail-on-regression", "own"], "--fail-on-regression own: it is not known which is better of this score"),
        (["s.jsonl", *COMPARE, "--score", "own", "--fail-on-regression"], r"of none of the scores \(own\) it is known which is better"),
        (["s.jsonl", *COMPARE, "--lower-is-better", "own", "--higher-is-better", "own"], "'own' cannot be better both"),
        (["s.jsonl", *COMPARE, "-o", "o.xlsx"], "the ending of o.xlsx='.xlsx' is not known"),
        (["s.jsonl", *COMPARE, "-o", "nowhere/o.csv"], "Cannot write nowhere/o.csv: No such file"),
        (["none.jsonl", *COMPARE], "compare needs a column '<name>_score' of numbers"),
        (["text.csv", *COMPARE], "The column 'tone_score' must hold numbers, and row 1 .* holds 'high'"),
        (["credit.csv", *COMPARE, "--score", "credit"], "The column 'credit_score' must hold numbers, and row 0 .* holds 'A'"),
        (["mixed.jsonl", *COMPARE], "the scores of 'relevancy' come from 2 judges"),
    ],
)
def test_compare_wrong_use_exits_2_and_leaves_nothing(folder, capsys, arguments, words):
    write(folder, [{**row, "own_score": i} for i, row in enumerate(rows_of())])
    write(folder, [{"id": 1, "prompt": "a"}, {"id": 1, "prompt": "b"}], "none.jsonl")
    write(folder, [{**row, "relevancy_judge": row["prompt"]} for row in rows_of()], "mixed.jsonl")
    (folder / "text.csv").write_text("id,prompt,tone_score,tone_error\n1,a,0.5,\n1,b,high,\n")
    (folder / "credit.csv").write_text("id,prompt,credit_score\n1,a,A\n1,b,B\n")
    before = sorted(folder.iterdir())
    assert main(["compare", *arguments]) == 2
    err = capsys.readouterr().err
    assert re.search(words, err.splitlines()[-1])
    assert err.count("\n") == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("arguments", [[], ["s.jsonl"], ["s.jsonl", "--variant", "prompt"], [*COMPARE, "--fail-on-regression", "s.jsonl"]])
def test_compare_without_what_it_needs_exits_2(arguments):
    with pytest.raises(SystemExit) as stopped:
        main(["compare", *arguments])
    assert stopped.value.code == 2
