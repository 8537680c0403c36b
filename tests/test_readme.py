"""The README's examples run and print what it says they print."""

import re
from pathlib import Path

import pandas as pd
import pytest

import scorekit as sk
from scorekit.testing import FakeJudge

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)


def block_with(text):
    return next(code for kind, code in BLOCKS if kind == "python" and text in code)


@pytest.mark.filterwarnings("ignore::scorekit.LocalJudgeWarning")
def test_readme_first_score_prints_what_it_says(capsys):
    code = block_with("Why is the sky blue?")
    said = BLOCKS[BLOCKS.index(("python", code)) + 1][1]
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == said


def test_readme_scorers_of_your_own_run():
    space = {"sk": sk, "df": pd.DataFrame({"input": ["q"], "output": ["See http://x.org"]})}
    fake = FakeJudge({"analyze": {"degree": 0.5, "reason": "Plain."}})
    code = block_with("has_link").replace('sk.Judge("openai/gpt-5-mini")', "fake")
    exec(compile(code, "README.md", "exec"), {"fake": fake} | space, space)
    assert space["scored"][["has_link_score", "polite_score"]].values.tolist() == [[1.0, 0.5]]
    assert space["scored"]["has_link_reason"].tolist() == ["Has a link."]


def test_readme_commands_are_the_two_that_ci_runs():
    commands = [code.strip() for kind, code in BLOCKS if kind == "bash"]
    assert commands[:2] == ["pip install . && scorekit demo", "pip install '.[test]' && pytest"]


def test_readme_files_it_points_to_exist():
    root = Path(__file__).parent.parent
    named = re.findall(r"\]\((?!http)([^)]+)\)", README) + re.findall(r"`((?:notebooks|data|tests|benchmarks)/[\w./]*)`", README)
    assert [name for name in named if not (root / name).exists()] == []


def test_readme_live_scoring_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(block_with("@sk.live("), "README.md", "exec"), {"sk": sk})
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [(line[1], line[-1]) for line in lines[1:] if line[1] == "change"] == [("change", "100")]
    assert 30 < next(int(line[-1]) for line in lines[1:] if line[1] == "tone") < 70
