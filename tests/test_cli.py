"""The command line: files in and out unchanged, exit codes, what it says, and what is left after an interrupt."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time

import pandas as pd
import pytest
from loopback import Loopback, Reply

import scorekit
from scorekit.cli import main

CSV = '\ufeffq,a,n\n"hi, there",None,007\nN/A,null,1.50\n"",x,\n"two\nlines",two,1e3\n'
RECORDS = [
    {"id": 1, "input": [{"role": "user", "content": "hello"}], "output": "hello", "tags": {"a": [1, 2.0]}, "big": 12345678901234567890},
    {"id": 2, "input": "日本", "output": "日本語", "extra": True},
    {"id": 3, "input": None, "output": "x"},
]
RESULT = ["score", "reason", "error", "confidence", "ratio", "changes", "length_diff"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a CSV and a JSONL file, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(CSV, encoding="utf-8", newline="")
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in RECORDS), encoding="utf-8")
    return tmp_path


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def test_score_csv_keeps_every_cell_as_text(folder):
    assert main(["score", "t.csv", "-s", "text_difference", "--input", "q", "--output", "a", "-o", "o.csv"]) == 0
    out = pd.read_csv(folder / "o.csv", dtype=str, keep_default_na=False)
    assert out[["q", "a", "n"]].to_dict("list") == {
        "q": ["hi, there", "N/A", "", "two\nlines"],
        "a": ["None", "null", "x", "two"],
        "n": ["007", "1.50", "", "1e3"],
    }
    assert list(out.columns[3:]) == [f"text_difference_{part}" for part in RESULT]
    assert [float(score) for score in out["text_difference_score"]] == pytest.approx([2 / 13, 0, 0, 0.5])
    assert out["text_difference_error"].tolist() == [""] * 4


def test_score_csv_doubled_column_stays_doubled(folder):
    (folder / "d.csv").write_text("input,output,x,x\na,b,1,2\n")
    assert main(["score", "d.csv", "-s", "text_difference", "-o", "o.csv"]) == 0
    assert (folder / "o.csv").read_text().startswith("input,output,x,x,text_difference_score,")


def test_score_csv_of_a_doubled_needed_column_is_wrong_use(folder, capsys):
    (folder / "d.csv").write_text("input,output,output\na,b,c\n")
    assert main(["score", "d.csv", "-s", "text_difference"]) == 2
    assert "2 columns of that name" in capsys.readouterr().err


def test_score_csv_with_a_header_only_gives_a_header(folder):
    (folder / "e.csv").write_text("input,output\n")
    assert main(["score", "e.csv", "-s", "text_difference", "-o", "o.csv"]) == 0
    assert (folder / "o.csv").read_text() == "input,output," + ",".join(f"text_difference_{part}" for part in RESULT) + "\n"


def test_score_jsonl_keeps_every_value_as_it_was(folder):
    assert main(["score", "t.jsonl", "-s", "text_difference", "-o", "o.jsonl", "--max-errors", "1"]) == 0
    out = lines_of(folder / "o.jsonl")
    assert [{key: value for key, value in line.items() if not key.startswith("text_difference")} for line in out] == RECORDS
    assert [line["text_difference_score"] for line in out] == [1.0, 0.8, None]
    assert [line["text_difference_error"] for line in out] == [None, None, "missing_input"]


def test_score_jsonl_again_replaces_the_scores(folder):
    arguments = ["-s", "text_difference", "--max-errors", "any"]
    main(["score", "t.jsonl", *arguments, "-o", "o.jsonl"])
    main(["score", "o.jsonl", *arguments, "-o", "o2.jsonl"])
    assert lines_of(folder / "o2.jsonl") == lines_of(folder / "o.jsonl")


def test_score_jsonl_lone_surrogate_comes_back(folder):
    (folder / "s.jsonl").write_text('{"input": "a\\ud800", "output": "a\\ud800"}\n')
    assert main(["score", "s.jsonl", "-s", "text_difference", "-o", "o.jsonl"]) == 0
    assert lines_of(folder / "o.jsonl")[0]["input"] == "a\ud800"


def test_score_parquet_round_trip_keeps_nested_cells(folder):
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    arguments = ["-s", "text_difference", "--max-errors", "any"]
    main(["score", "t.jsonl", *arguments, "-o", "a.parquet"])
    main(["score", "a.parquet", *arguments, "-o", "b.parquet"])
    first, second = parquet.read_table(folder / "a.parquet"), parquet.read_table(folder / "b.parquet")
    assert first.equals(second)
    assert first["tags"].to_pylist()[0] == {"a": [1.0, 2.0]}
    assert first["text_difference_score"].to_pylist() == [1.0, 0.8, None]


def test_score_parquet_with_messages_scores_them(folder):
    pytest.importorskip("pyarrow")
    messages = [{"role": "assistant", "content": "abc"}]
    pd.DataFrame({"input": ["abc"], "output": [messages]}).to_parquet(folder / "m.parquet")
    assert main(["score", "m.parquet", "-s", "text_difference", "-o", "o.jsonl"]) == 0
    (line,) = lines_of(folder / "o.jsonl")
    assert line["output"] == messages
    assert line["text_difference_score"] == 1.0


def test_score_without_out_writes_the_files_kind_to_stdout_and_talk_to_stderr(folder, capsys):
    assert main(["score", "t.jsonl", "-s", "text_difference"]) == 1
    out, err = capsys.readouterr()
    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 2, 3]
    assert "text_difference  0.900" in err
    assert "missing_input: 1" in err
    main(["score", "t.csv", "-s", "text_difference", "--input", "q", "--output", "a"])
    assert capsys.readouterr().out.startswith("q,a,n,text_difference_score,")


@pytest.mark.parametrize(("limit", "code"), [([], 1), (["--max-errors", "0"], 1), (["--max-errors", "1"], 0), (["--max-errors", "any"], 0)])
def test_score_exit_code_1_above_max_errors_and_file_written(folder, limit, code):
    assert main(["score", "t.jsonl", "-s", "text_difference", "-o", "o.jsonl", *limit]) == code
    assert len(lines_of(folder / "o.jsonl")) == 3


def test_score_options_reach_the_scorers_that_have_them(folder):
    arguments = ["score", "t.jsonl", "-s", "text_difference", "-s", "tone", "--max-errors", "any", "-o", "o.jsonl"]
    assert main([*arguments, "--option", "ratio=difflib", "--option", "tone.scale=10"]) == 0
    line = lines_of(folder / "o.jsonl")[0]
    assert (line["text_difference_score"], line["tone_score"]) == (1.0, 10.0)


def test_score_text_options_and_columns_stay_text(folder):
    (folder / "digits.csv").write_text("1,true\nI love it,I love it\n")
    arguments = ["score", "digits.csv", "-o", "o.jsonl", "--input", "1", "--option", "output=true"]
    assert main([*arguments, "-s", "tone", "--option", "reference=2024"]) == 0
    assert main([*arguments, "-s", "tone", "-s", "relevancy", "--option", "language=5", "--judge", "local"]) == 0
    line = lines_of(folder / "o.jsonl")[0]
    assert (line["1"], line["tone_score"], line["relevancy_judge"]) == ("I love it", 1.0, "local")


def failing_scorer(df, /, *, output="output", strength: float = 1.0, always: str = "", name="tone"):
    if strength == 7 or always:
        msg = "cannot multiply"
        raise TypeError(msg)
    return df.assign(tone_score=1.0, tone_reason=None, tone_error=None)


def test_score_error_of_an_option_names_it(folder, monkeypatch, capsys):
    monkeypatch.setattr(scorekit, "score_tone", failing_scorer)
    assert main(["score", "t.jsonl", "-s", "tone", "--option", "strength=7"]) == 2
    assert capsys.readouterr().err == "scorekit: error: --option strength=7 does not work: cannot multiply\n"


@pytest.mark.parametrize("options", [[], ["--option", "strength=7"]])
def test_score_bug_of_a_scorer_is_raised_as_it_is(folder, monkeypatch, options):
    def score_tone(df, /, *, strength: float = 1.0, name="tone"):
        return failing_scorer(df, always="yes")

    monkeypatch.setattr(scorekit, "score_tone", score_tone)
    with pytest.raises(TypeError, match="^cannot multiply$"):
        main(["score", "t.jsonl", "-s", "tone", *options])


@pytest.mark.parametrize("judge", ["local", " LOCAL "])
def test_score_judge_local_is_the_local_one_without_a_note(folder, capsys, judge):
    assert main(["score", "t.csv", "-s", "relevancy", "--input", "q", "--output", "a", "--judge", judge]) == 0
    out, err = capsys.readouterr()
    assert ",local," in out
    assert "stand-in" not in err


def test_score_column_of_the_file_named_like_a_result_stays_the_files(folder):
    own = {"text_difference_mine": [1, {"a": None}], "text_difference_n": 2**60 + 1, "text_difference_unknown": "x"}
    records = [{"input": "a", "output": "a", **own}, {"input": "a", "output": "b", **dict.fromkeys(own)}]
    (folder / "n.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    arguments = ["-s", "text_difference"]
    assert main(["score", "n.jsonl", *arguments, "-o", "o.jsonl"]) == 0
    assert main(["score", "o.jsonl", *arguments, "-o", "again.jsonl"]) == 0
    for path in ("o.jsonl", "again.jsonl"):
        lines = lines_of(folder / path)
        assert [{key: line[key] for key in record} for line, record in zip(lines, records, strict=True)] == records
        assert list(lines[0]) == [*records[0], *(f"text_difference_{part}" for part in RESULT)]


def test_score_parquet_column_named_like_a_result_keeps_its_type(folder):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    number = pa.array([2**60 + 1, None], type=pa.int64())
    parquet.write_table(pa.table({"input": ["a", "b"], "output": ["a", "c"], "text_difference_n": number}), folder / "n.parquet")
    for source in ("n.parquet", "o.parquet"):
        assert main(["score", source, "-s", "text_difference", "-o", "o.parquet"]) == 0
        out = parquet.read_table(folder / "o.parquet")
        assert out["text_difference_n"].equals(pa.chunked_array([number]))
        assert str(out.schema.field("text_difference_error").type) == "string"


def test_score_result_columns_of_an_earlier_run_that_this_one_does_not_write_go(folder):
    old = {"tone_score": 0.1, "tone_reason": "old", "tone_error": None, "tone_difference": 9.0}
    (folder / "n.jsonl").write_text(json.dumps({"input": "I love it", "output": "I love it", **old, "tone_mine": [1]}) + "\n")
    assert main(["score", "n.jsonl", "-s", "tone", "-o", "o.jsonl"]) == 0
    line = lines_of(folder / "o.jsonl")[0]
    assert (line["tone_score"], line["tone_difference"], line["tone_mine"]) == (1.0, 0.0, [1])
    assert line["tone_reason"] != "old"


def test_score_one_column_csv_keeps_rows_with_an_empty_cell(folder):
    (folder / "one.csv").write_text("output\nGood.\n\nfine\n")
    assert main(["score", "one.csv", "-s", "tone", "--option", "reference=fine", "-o", "o.jsonl"]) == 0
    assert [line["output"] for line in lines_of(folder / "o.jsonl")] == ["Good.", "", "fine"]


def test_score_csv_cell_with_a_carriage_return_comes_back(folder):
    (folder / "r.csv").write_bytes(b'input,output\n"a\rb","a\rb"\n')
    assert main(["score", "r.csv", "-s", "text_difference", "-o", "r2.csv"]) == 0
    assert main(["score", "r2.csv", "-s", "text_difference", "-o", "o.jsonl"]) == 0
    assert [(line["input"], line["text_difference_score"]) for line in lines_of(folder / "o.jsonl")] == [("a\rb", 1.0)]


def test_score_lone_surrogate_is_replaced_in_csv(folder):
    (folder / "s.jsonl").write_text('{"input": "a\\ud800", "output": "a\\ud800", "k\\ud801": ["\\ud802"]}\n')
    assert main(["score", "s.jsonl", "-s", "text_difference", "-o", "o.csv"]) == 0
    out = pd.read_csv(folder / "o.csv")
    assert out.iloc[0, :4].tolist() == ["a\ufffd", "a\ufffd", '["\ufffd"]', 1.0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["t.csv", "-s", "relevance"], "scorer='relevance' is not known; choose one of .*Did you mean 'relevancy'"),
        (["t.csv", "-s", "tone"], "needs a column 'input'; the frame has 'q', 'a', 'n'"),
        (["nope.csv", "-s", "tone"], "Cannot read nope.csv: No such file"),
        (["t.txt", "-s", "tone"], "'.csv', '.jsonl', '.parquet'"),
        (["t.jsonl", "-s", "tone", "-o", "o.xlsx"], "the ending of o.xlsx='.xlsx' is not known"),
        (["t.jsonl", "-s", "tone", "-o", "nowhere/o.csv"], "Cannot write nowhere/o.csv: No such file"),
        (["t.jsonl", "-s", "tone", "-o", "folder.csv"], "it is a folder"),
        (["t.jsonl", "-s", "tone", "--option", "lexikon=afinn"], "option='lexikon' is not known; .*Did you mean 'lexicon'"),
        (["t.jsonl", "-s", "tone", "--option", "lexicon=afin"], "lexicon='afin' is not known"),
        (["t.jsonl", "-s", "tone", "--option", "lexicon"], "is not KEY=VALUE"),
        (["t.jsonl", "-s", "tone", "--option", "scale=abc"], "--option scale='abc' is not a finite number"),
        (["t.jsonl", "-s", "tone", "--option", "tone.scale=nan"], "--option tone.scale='nan' is not a finite number"),
        (["t.jsonl", "-s", "tone", "--option", "scale=-1"], "scale=-1 is out of range"),
        (["t.jsonl", "-s", "relevancy", "--option", "scale=abc"], "--option scale='abc' is not a finite number"),
        (["t.jsonl", "-s", "relevancy", "--option", "scale=" + "9" * 400], "--option scale='9+…' is not a finite number"),
        (["t.jsonl", "-s", "relevancy", "--option", "repeats=1.5"], "--option repeats='1.5' is not a whole number"),
        (["t.jsonl", "-s", "relevancy", "--option", 'prompts={"analyze": "x"}'], "option='prompts' is not known; choose one of"),
        (["t.jsonl", "-s", "relevancy", "--option", "progress=false"], "option='progress' is not known; choose one of"),
        (["t.jsonl", "-s", "tone", "--input", "1"], "needs a column '1'; the frame has"),
        (["deep.jsonl", "-s", "tone"], "line 1 is nested too deeply"),
        (["twice.csv", "-s", "tone", "-o", "o.jsonl"], r"two columns of one name \('x'\), which .jsonl cannot hold"),
        (["twice.csv", "-s", "tone", "-o", "o.parquet"], r"two columns of one name \('x'\), which .parquet cannot hold"),
        (["bad.jsonl", "-s", "tone"], "line 2 is not JSON"),
        (["list.jsonl", "-s", "tone"], "line 1 holds a list"),
        (["latin.csv", "-s", "tone"], "byte 14 is not UTF-8"),
        (["ragged.csv", "-s", "tone"], "Expected 2 fields in line 2, saw 3"),
        (["empty.csv", "-s", "tone"], "it is empty"),
        (["broken.parquet", "-s", "tone"], "Cannot read broken.parquet as Parquet"),
    ],
)
def test_score_wrong_use_exits_2_and_says_what(folder, capsys, arguments, words):
    (folder / "folder.csv").mkdir()
    (folder / "deep.jsonl").write_text('{"input": ' + "[" * 100_000 + "]" * 100_000 + "}")
    (folder / "twice.csv").write_text("input,output,x,x\na,b,1,2\n")
    (folder / "bad.jsonl").write_text('{"input": "a"}\n{"input": \n')
    (folder / "list.jsonl").write_text("[1]\n")
    (folder / "latin.csv").write_bytes("input,output\nà,b\n".encode("latin-1").replace(b"\xe0,", b"a\xe0,"))
    (folder / "ragged.csv").write_text("input,output\na,b,c\n")
    (folder / "empty.csv").write_text("")
    (folder / "broken.parquet").write_text("not parquet")
    before = sorted(folder.iterdir())
    assert main(["score", *arguments]) == 2
    err = capsys.readouterr().err
    assert re.search(words, err)
    assert err.count("\n") == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "arguments", [[], ["score"], ["score", "t.csv"], ["score", "t.csv", "-s", "tone", "--max-errors", "many"], ["scores"]]
)
def test_wrong_words_exit_2(arguments):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2


def test_score_out_may_be_the_file_itself_and_keeps_its_links(folder):
    (folder / "link.jsonl").symlink_to("t.jsonl")
    assert main(["score", "link.jsonl", "-s", "text_difference", "-o", "link.jsonl", "--max-errors", "any"]) == 0
    assert (folder / "link.jsonl").is_symlink()
    assert lines_of(folder / "t.jsonl")[0]["text_difference_score"] == 1.0


def test_score_new_file_has_the_usual_mode(folder):
    main(["score", "t.jsonl", "-s", "text_difference", "-o", "o.jsonl"])
    (folder / "plain").touch()
    assert stat.S_IMODE((folder / "o.jsonl").stat().st_mode) == stat.S_IMODE((folder / "plain").stat().st_mode)


def test_score_closed_pipe_shows_no_traceback(folder):
    record = json.dumps({"input": "a" * 100, "output": "b" * 100})
    (folder / "big.jsonl").write_text((record + "\n") * 5000)
    command = [sys.executable, "-m", "scorekit", "score", "big.jsonl", "-s", "text_difference"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.read(10)
        process.stdout.close()
        err = process.stderr.read()
    assert process.returncode == 141
    assert "Traceback" not in err
    assert "BrokenPipe" not in err


def test_score_interrupted_leaves_what_was_finished_beside_out(folder):
    (folder / "r.jsonl").write_text("".join(json.dumps({"input": f"q{i}", "output": f"a{i}"}) + "\n" for i in range(3)))
    with Loopback() as server:
        server.when("", Reply(hang=True))
        command = [
            sys.executable,
            "-m",
            "scorekit",
            "score",
            "r.jsonl",
            "-s",
            "relevancy",
            "-s",
            "text_difference",
            "--judge",
            "m",
            "-o",
            "o.jsonl",
        ]
        environment = {**os.environ, "OPENAI_BASE_URL": server.url}
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
            for _ in range(1200):
                if server.calls or process.poll() is not None:
                    break
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            err = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "what was finished is in o.jsonl.partial (jsonl)" in err
    assert "Traceback" not in err
    lines = lines_of(folder / "o.jsonl.partial")
    assert [line["text_difference_score"] for line in lines] == [0.5, 0.5, 0.5]
    assert [line.get("relevancy_error") for line in lines] == ["cancelled"] * 3
    assert [path.name for path in sorted(folder.iterdir()) if not path.name.startswith("replies")] == [
        "o.jsonl.partial",
        "r.jsonl",
        "t.csv",
        "t.jsonl",
    ]


OFFLINE = """
import socket, sys
class NoExtras:
    def find_spec(self, name, path=None, target=None):
        if name in ("pyarrow", "genai_prices", "psycopg"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoExtras())
def refuse(*_, **__):
    raise AssertionError("the demo used the network")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from scorekit.cli import main
sys.exit(main(["demo", "-o", "page.html"]))
"""


def test_demo_without_network_and_extras_prints_means_and_worst_rows_and_writes_the_page(tmp_path):
    command = [sys.executable, "-c", OFFLINE]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert "360 answers of SmolLM2-135M-Instruct to 120 questions under 3 prompt variants." in done.stdout
    table = [line.split()[:2] for line in done.stdout.splitlines() if line.split()[1:2] in (["short"], ["detailed"], ["expert"])]
    assert table[:9] == [
        [score, variant] for score in ("relevancy", "tone", "text_difference") for variant in ("short", "detailed", "expert")
    ]
    assert done.stdout.count("   relevancy  0.") == 5
    assert str(tmp_path / "page.html") in done.stdout
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("plotly.js v") == 1
    assert "Means by prompt variant" in page


def test_demo_unwritable_page_is_wrong_use(tmp_path, capsys):
    assert main(["demo", "-o", str(tmp_path / "nowhere" / "page.html")]) == 2
    assert "its folder is not there" in capsys.readouterr().err


def test_version_prints_it(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == "scorekit 0.1.0\n"
