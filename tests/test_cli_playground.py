"""scorekit playground: the notebook that it writes works, overwrites nothing, and Jupyter is opened where it is there."""

import json
import re
import sys
from types import SimpleNamespace

import nbformat
import pytest

from scorekit import cli_playground
from scorekit.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a table."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("question,output\nI love it.,I love it.\nWhy?,Because.\n")
    return tmp_path


def panel_of(path):
    """The panel that the notebook's one cell makes."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    (cell,) = notebook.cells
    names = {}
    exec(cell.source, names)
    return names["panel"]


def opened(monkeypatch, installed):
    """Let modules of those names be installed, and note what is started instead of starting it."""
    commands = []

    class Process:
        def __init__(self, command):
            commands.append(command)
            self.waits = iter([KeyboardInterrupt, 3])

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def wait(self):
            said = next(self.waits)
            if said is KeyboardInterrupt:
                raise said
            return said

    monkeypatch.setattr(cli_playground, "find_spec", lambda name: SimpleNamespace() if name in installed else None)
    monkeypatch.setattr(cli_playground.subprocess, "Popen", Process)
    return commands


def test_playground_no_open_writes_a_notebook_of_relevancy_and_prints_its_path(folder, capsys):
    assert main(["playground", "--no-open"]) == 0
    assert capsys.readouterr().out == "scorekit_playground.ipynb\n"
    panel = panel_of(folder / "scorekit_playground.ipynb")
    assert repr(panel).startswith("Playground of score_relevancy(")


def test_playground_file_columns_and_judge_reach_the_panel(folder):
    arguments = ["playground", "relevancy", "--file", "rows.csv", "--input", "question", "--judge", "local", "--no-open"]
    assert main(arguments) == 0
    panel = panel_of(folder / "scorekit_playground.ipynb")
    panel.row = 1
    assert panel.inputs == {"input": "Why?", "output": "Because."}
    panel.row = 0
    assert panel.run().judge == "local"


def test_playground_overwrites_no_file_and_takes_the_next_free_name(folder, capsys):
    (folder / "scorekit_playground.ipynb").write_text("mine")
    (folder / "scorekit_playground_2.ipynb").mkdir()
    assert main(["playground", "tone", "--no-open"]) == 0
    assert capsys.readouterr().out == "scorekit_playground_3.ipynb\n"
    assert (folder / "scorekit_playground.ipynb").read_text() == "mine"


def test_playground_again_opens_the_notebook_that_is_there_as_it_was_written(folder, capsys):
    for scorer in ("tone", "tone", "relevancy", "tone"):
        main(["playground", scorer, "--no-open"])
    names = ["scorekit_playground.ipynb", "scorekit_playground.ipynb", "scorekit_playground_2.ipynb", "scorekit_playground.ipynb"]
    assert capsys.readouterr().out.splitlines() == names


def test_playground_odd_words_are_quoted_in_the_cell(folder):
    (folder / "it's\".csv").write_text("a 'b',output\nx,y\n")
    assert main(["playground", "text_difference", "--file", "it's\".csv", "--input", "a 'b'", "--no-open"]) == 0
    assert panel_of(folder / "scorekit_playground.ipynb").inputs == {"input": "x", "output": "y"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ton"], "scorer='ton' is not known; choose one of .* Did you mean 'tone'"),
        (
            ["tone", "--file", "rows.csv"],
            "score_tone needs a column 'input'; the frame has 'question', 'output'. Did you mean input='question'",
        ),
        (["tone", "--file", "none.csv"], "Cannot read none.csv: No such file"),
        (["tone", "--file", "rows.txt"], "the ending of rows.txt='.txt' is not known"),
        (["tone", "--file", "rows.csv", "--context", "question"], "no argument 'context'; score_tone reads 'input', 'output'"),
        (["tone", "--input", "question"], "--input names a column of a file: give --file too."),
    ],
)
def test_playground_wrong_use_exits_2_says_what_and_writes_nothing(folder, capsys, arguments, words):
    assert main(["playground", *arguments, "--no-open"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(words, err), err
    assert [path.name for path in folder.iterdir() if path.suffix == ".ipynb"] == []


def test_playground_scorer_without_a_stand_in_can_be_written_before_a_judge_is_there(folder):
    (folder / "rows.csv").write_text("output,context\na,b\n")
    assert main(["playground", "faithfulness", "--file", "rows.csv", "--no-open"]) == 0
    assert panel_of(folder / "scorekit_playground.ipynb").inputs == {"output": "a", "context": "b"}


@pytest.mark.parametrize(("installed", "module"), [(("jupyterlab", "notebook"), "jupyterlab"), (("notebook",), "notebook")])
def test_playground_opens_what_is_installed_and_lets_it_answer_ctrl_c(folder, monkeypatch, capsys, installed, module):
    commands = opened(monkeypatch, installed)
    assert main(["playground", "tone"]) == 3
    assert commands == [[sys.executable, "-m", module, "scorekit_playground.ipynb"]]
    assert "Opening scorekit_playground.ipynb." in capsys.readouterr().err


def test_playground_without_jupyter_exits_2_says_what_to_install_and_writes_nothing(folder, monkeypatch, capsys):
    commands = opened(monkeypatch, ())
    assert main(["playground", "tone"]) == 2
    assert "pip install jupyterlab. Or write the notebook alone, with --no-open." in capsys.readouterr().err
    assert (commands, [path.name for path in folder.iterdir() if path.suffix == ".ipynb"]) == ([], [])


def test_playground_folder_that_cannot_be_written_exits_2(folder, monkeypatch, capsys):
    monkeypatch.setattr(cli_playground, "STEM", "nowhere/scorekit_playground")
    assert main(["playground", "tone", "--no-open"]) == 2
    assert "Cannot write nowhere/scorekit_playground.ipynb: No such file or directory." in capsys.readouterr().err


def test_notebook_cells_have_no_outputs(folder):
    main(["playground", "--no-open"])
    (cell,) = json.loads((folder / "scorekit_playground.ipynb").read_text())["cells"]
    assert (cell["outputs"], cell["execution_count"]) == ([], None)
