"""Small frozen datasets that come with the package: outputs of real models to try a scorer on, without a key or a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from scorekit.columns import to_json
from scorekit.errors import ArgumentTypeError, UnknownOptionError

INDEX_FILE = "datasets.json"


def load_dataset(name: str) -> pd.DataFrame:
    """Return one of the shipped datasets as a new frame.

    Parameters
    ----------
    name
        One of the names in `list_datasets`, such as ``"smollm_answers"``.

    Returns
    -------
    pandas.DataFrame
        The rows in file order on a fresh index. Text columns are ``string`` and whole numbers ``int64``; words such as ``None`` and
        ``N/A`` are text like any other. Columns with lists are JSON text, as scorers write them: `read_steps` gives the lists.

    Raises
    ------
    UnknownOptionError
        When there is no dataset of that name; the message names the nearest.

    Examples
    --------
    >>> df = load_dataset("smollm_answers")
    >>> df.loc[0, ["id", "variant", "input"]].tolist()
    ['q001', 'short', 'What is the boiling point of water at sea level in degrees Celsius?']
    >>> df["seed"].dtype
    dtype('int64')
    >>> from scorekit.columns import read_steps
    >>> read_steps(load_dataset("smollm_labels"), "verdicts")[1]
    ['unsure', 'unsure']
    """
    if not isinstance(name, str):
        raise ArgumentTypeError.from_value("name", name, "the name of a dataset")
    index = {entry["name"]: entry for entry in _index()}
    if name not in index:
        raise UnknownOptionError.from_value("name", name, index)
    lines = (_folder() / index[name]["file"]).read_text(encoding="utf-8").split("\n")
    records = [json.loads(line) for line in lines if line]
    return pd.DataFrame({column: _typed([record[column] for record in records]) for column in records[0]})


def list_datasets() -> pd.DataFrame:
    """Return the shipped datasets, one a row.

    Returns
    -------
    pandas.DataFrame
        ``name``, ``rows`` (int64), ``columns`` (their names, joined by commas), ``description`` and ``licence``; texts are ``string``.
        Where each comes from and how it was made is told in ``data/SOURCES.md``.

    Examples
    --------
    >>> list_datasets()[["name", "rows", "licence"]]
                 name  rows     licence
    0  smollm_answers   360  Apache-2.0
    1   smollm_labels   150  Apache-2.0
    """
    entries = _index()
    texts = {key: pd.array([entry[key] for entry in entries], dtype="string") for key in ("name", "description", "licence")}
    return pd.DataFrame(
        {
            "name": texts["name"],
            "rows": pd.array([entry["rows"] for entry in entries], dtype="int64"),
            "columns": pd.array([", ".join(entry["columns"]) for entry in entries], dtype="string"),
            "description": texts["description"],
            "licence": texts["licence"],
        }
    )


def _folder() -> Path:
    """Return where the data lies: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).parent
    installed = package / "data"
    return installed if (installed / INDEX_FILE).is_file() else package.parent / "data"


def _index() -> list[dict[str, Any]]:
    """Return the entries of the index file."""
    entries: list[dict[str, Any]] = json.loads((_folder() / INDEX_FILE).read_text(encoding="utf-8"))
    return entries


def _typed(values: list[Any]) -> pd.Series[Any]:
    """Return whole numbers as int64, numbers as float64 and everything else as string, lists and dicts as JSON text."""
    if all(type(value) is int for value in values):
        return pd.Series(values, dtype="int64")
    if all(type(value) in {int, float} for value in values):
        return pd.Series(values, dtype="float64")
    return pd.Series([to_json(value) if isinstance(value, (list, dict)) else value for value in values], dtype="string")
