"""What ``scorekit playground`` does: it writes a notebook with a playground in its one cell, and opens JupyterLab on it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scorekit.errors import ScorekitError
from scorekit.files import TableFileError, read_table
from scorekit.widgets.scorer_form import ScorerForm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scorekit.run import ScorerLike

STEM: Final = "scorekit_playground"
SERVERS: Final = ("jupyterlab", "notebook")
"""What can open a notebook, by preference: modules that run with ``python -m``."""


class JupyterMissingError(ScorekitError, RuntimeError):
    """Nothing that opens notebooks is installed."""


def write_notebook(
    scorer: ScorerLike, *, file: str | None = None, judge: str | None = None, columns: Mapping[str, str] | None = None
) -> Path:
    """Write the notebook into the current folder and return its path.

    Parameters
    ----------
    scorer
        A public function of scorekit.
    file
        A table to pick rows from, as ``scorekit score`` reads it; it is read once here, so that what is wrong with it shows now.
    judge
        A model's name or ``"local"``.
    columns
        Which column of the file stands for a needed one.

    Returns
    -------
    pathlib.Path
        ``scorekit_playground.ipynb``, or ``scorekit_playground_2.ipynb`` and so on where that is taken by anything else than such a notebook
        as it was written. No file is ever overwritten.

    Raises
    ------
    TableFileError
        When the file cannot be read, or the notebook cannot be written.
    MissingColumnError, ColumnConflictError
        When the file lacks a column that the scorer reads, or has it twice.
    """
    columns = columns or {}
    if file is not None:
        form = ScorerForm.of(scorer)
        inputs, _ = form.split(columns)
        form.check_columns(read_table(file).frame, inputs)
    text = json.dumps(notebook(cell_source(scorer, file=file, judge=judge, columns=columns)), indent=1, ensure_ascii=False) + "\n"
    for number in count(1):
        path = Path(f"{STEM}.ipynb" if number == 1 else f"{STEM}_{number}.ipynb")
        try:
            with path.open("x", encoding="utf-8") as target:
                target.write(text)
        except FileExistsError:
            if _holds(path, text):
                return path
        except OSError as error:
            msg = f"Cannot write {path}: {error.strerror or error}. Go to a folder in which you may write."
            raise TableFileError(msg) from error
        else:
            return path
    raise AssertionError  # count never ends


def cell_source(scorer: ScorerLike, *, file: str | None, judge: str | None, columns: Mapping[str, str]) -> str:
    """Return the code of the notebook's cell.

    Examples
    --------
    >>> from scorekit import score_tone
    >>> print(cell_source(score_tone, file="rows.csv", judge=None, columns={"input": "question"}))
    import scorekit as sk
    from scorekit.files import read_table
    <BLANKLINE>
    df = read_table('rows.csv').frame
    panel = sk.playground(sk.score_tone, df, input='question')
    panel
    """
    settings = {**({"judge": judge} if judge is not None else {}), **columns}
    words = [f"sk.{scorer.__name__}", *(["df"] if file is not None else []), *(f"{key}={value!r}" for key, value in settings.items())]
    lines = ["import scorekit as sk"]
    if file is not None:
        lines += ["from scorekit.files import read_table", "", f"df = read_table({file!r}).frame"]
    return "\n".join([*lines, f"panel = sk.playground({', '.join(words)})", "panel"])


def notebook(source: str) -> dict[str, Any]:
    """Return a notebook with one code cell, as nbformat 4.5 has it."""
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "id": "playground",
        "metadata": {},
        "outputs": [],
        "source": source,
    }
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": [cell], "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}


def require_server() -> str:
    """Return the installed module that opens notebooks.

    Raises
    ------
    JupyterMissingError
        When there is none.
    """
    found = next((module for module in SERVERS if find_spec(module) is not None), None)
    if found is None:
        msg = (
            f"JupyterLab is not installed for {sys.executable}, so there is nothing to open a playground with. "
            f"Install it: pip install jupyterlab. Or write the notebook alone, with --no-open."
        )
        raise JupyterMissingError(msg)
    return found


def open_notebook(server: str, path: Path) -> int:
    """Run Jupyter on the notebook until it ends; return its exit code."""
    with subprocess.Popen([sys.executable, "-m", server, str(path)]) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # Jupyter gets it too, and asks whether to stop
                continue


def _holds(path: Path, text: str) -> bool:
    """Return whether a file holds exactly that text."""
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False
