"""The columns that scorers add: their names and dtypes, how they are written, and how they are read back."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from scorekit.errors import ArgumentTypeError, ColumnConflictError, MissingColumnError, OptionRangeError, UnknownOptionError, listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

ERROR_CODES: Final = (
    "missing_input",
    "not_text",
    "not_scorable",
    "input_too_long",
    "judge_error",
    "judge_timeout",
    "target_error",
    "scorer_error",
    "reply_refused",
    "reply_truncated",
    "reply_invalid",
    "budget_reached",
    "cancelled",
)
"""Why a row has no score, as found in ``<name>_error``; ``target_error``: the function that should have given the output raised;
``scorer_error``: the scorer itself raised, where it ran in the background (`live`), since anywhere else it raises."""

LOWER_IS_BETTER: Final = frozenset({"toxicity", "bias", "hallucination"})
"""The shipped scores that are worse when higher."""

HIGHER_IS_BETTER: Final = frozenset({"relevancy", "faithfulness", "tone"})
"""The shipped scores that are better when higher."""

BANDS: Final[Mapping[str, tuple[tuple[float, str], ...]]] = {
    "relevancy": (
        (0.0, "unrelated"),
        (0.0, "barely answers"),
        (0.35, "partially answers"),
        (0.65, "mostly answers"),
        (1.0, "fully answers"),
    ),
    "tone": ((-np.inf, "contradictory"), (0.35, "mixed"), (0.55, "mostly consistent"), (0.75, "very consistent")),
    "text_difference": (
        (0.0, "different"),
        (0.0, "major differences"),
        (0.35, "moderate differences"),
        (0.65, "minor differences"),
        (1.0, "identical"),
    ),
}
"""The published interpretation bands: (lower end as a share of the scale, label), worst first.

Two bands that begin at 0.0 mean that the first holds exactly 0; a band that begins at 1.0 holds exactly 1. The published bands leave
gaps (0.4-0.6, 0.7-0.9): a cut lies in the middle of its gap, its lower end closed.
"""

_SCORE = re.compile(r"(?s)(.+)_score\Z")


def require_frame(df: object, who: str) -> pd.DataFrame:
    """Return ``df`` if it is a DataFrame, and raise an `ArgumentTypeError` that says what to do if it is not."""
    if isinstance(df, pd.DataFrame):
        return df
    hint = "Use run_one for a single text." if isinstance(df, str) else "Make one with pd.DataFrame(...)."
    raise ArgumentTypeError.from_value(f"{who}: the first argument", df, "a pandas DataFrame", hint)


def require(df: pd.DataFrame, column: Hashable, who: str, keyword: str | None = None) -> pd.Series[Any]:
    """Return the one column of that name.

    Raises
    ------
    MissingColumnError
        When it is not there; the message names the nearest column.
    ColumnConflictError
        When it is there more than once.
    """
    count = int((df.columns == column).sum())
    if count == 0:
        raise MissingColumnError.from_columns(who, str(column), df.columns, keyword)
    if count > 1:
        raise ColumnConflictError.from_duplicate(who, str(column), count)
    found: pd.Series[Any] = df[column]
    return found


def score_names(df: pd.DataFrame) -> list[str]:
    """Return the names of the scorers that have scored the frame, in column order.

    Every column of numbers whose name ends in ``_score`` counts, so that scorers of the user's own do: ``credit_score`` is taken for one too.

    Examples
    --------
    >>> score_names(pd.DataFrame({"input": ["q"], "tone_score": [0.5]}))
    ['tone']
    """
    numeric = set(df.columns[[pd.api.types.is_numeric_dtype(dtype) for dtype in df.dtypes]])
    return [match[1] for column in df.columns if isinstance(column, str) and column in numeric and (match := _SCORE.match(column))]


def add_result(df: pd.DataFrame, name: str, result: pd.DataFrame, known: Iterable[str]) -> pd.DataFrame:
    """Return a new frame: ``df`` with a scorer's result columns after its own.

    Parameters
    ----------
    df
        The caller's frame; not changed.
    name
        The scorer's name, the prefix of its columns.
    result
        The scorer's columns under their full names, in the frame's row order; its index does not matter.
    known
        Every column that a scorer of this name may have written in an earlier run; those are dropped first.
    """
    kept = df.drop(columns=[column for column in known if column in df.columns]) if _owns(df, name) else df
    refuse_conflicts(kept, name, result.columns)
    return joined(df, kept, [result])


def joined(df: pd.DataFrame, kept: pd.DataFrame, results: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the ``kept`` columns of ``df`` and those of the results, row by row in their order, with the index, attrs and columns' name of ``df``."""
    parts = [kept.copy(deep=False), *(result.set_axis(df.index, axis=0) for result in results)]
    for part in parts:
        part.attrs = {}  # concat compares them, and arrays in them do not compare
    found = pd.concat(parts, axis=1)
    found.attrs = dict(df.attrs)
    found.columns.names = df.columns.names
    return found


def owned_columns(df: pd.DataFrame, name: str) -> list[str]:
    """Return the columns ``<name>_...`` that are a scorer's, not those of another scorer whose name begins alike.

    Examples
    --------
    >>> df = pd.DataFrame(columns=["tone_score", "tone_yes", "tone_b_score", "tone_b_reason", "tone_b_error", "tone_b_yes"])
    >>> owned_columns(df, "tone")
    ['tone_score', 'tone_yes']
    """
    texts = [column for column in df.columns if isinstance(column, str)]
    others = [match[1] for column in texts if (match := _SCORE.match(column)) and len(match[1]) > len(name) and _owns(df, match[1])]
    return [column for column in texts if column.startswith(f"{name}_") and not column.startswith(tuple(f"{other}_" for other in others))]


def refuse_conflicts(df: pd.DataFrame, name: str, columns: Iterable[str], known: Iterable[str] = ()) -> None:
    """Raise a `ColumnConflictError` where a scorer would write over columns that no earlier run of it wrote."""
    replaced = set(known) if _owns(df, name) else set()
    taken = [column for column in columns if column in df.columns and column not in replaced]
    if taken:
        raise ColumnConflictError.from_existing(name, taken)


def _owns(df: pd.DataFrame, name: str) -> bool:
    """Return whether an earlier run of the scorer wrote to the frame."""
    return all(f"{name}_{part}" in df.columns for part in ("score", "reason", "error"))


def to_json(value: object) -> str | None:
    """Return a nested field as JSON text, or None for a missing one; a text with a lone surrogate is written in ASCII."""
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return None
    text = json.dumps(value, ensure_ascii=False, default=_plain)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, default=_plain)
    return text


def _plain(value: object) -> object:
    """Return what JSON can carry for a numpy or pydantic value."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=False)
    if value is pd.NA:
        return None
    msg = f"A field of kind {type(value).__name__} cannot be written as JSON."
    raise TypeError(msg)


def read_steps(df: pd.DataFrame, /, column: str) -> pd.Series[Any]:
    """Return a column of JSON text as Python values.

    Parameters
    ----------
    df
        A scored frame.
    column
        A column of nested step results, such as ``"relevancy_statements"``.

    Returns
    -------
    pandas.Series
        Object dtype, the frame's index: a list or dict per row, None where the row has none.

    Raises
    ------
    MissingColumnError
        When the column is not there.
    ArgumentTypeError
        When a cell is not JSON text.

    Examples
    --------
    >>> df = pd.DataFrame({"relevancy_statements": ['["Water boils."]', None]})
    >>> read_steps(df, "relevancy_statements").tolist()
    [['Water boils.'], None]
    """
    nested = [name for name in map(str, require_frame(df, "read_steps").columns) if name.startswith(f"{column}_")]
    if column not in df.columns and nested:
        lists = [name for name in nested if name.endswith(("_statements", "_results"))] or nested
        msg = f"read_steps needs the name of a column with lists, not of a scorer: {listed(lists)}."
        raise MissingColumnError(msg)
    cells = require(df, column, "read_steps")
    values: list[Any] = []
    for i, cell in enumerate(_with_none(cells)):
        try:
            values.append(None if cell is None else json.loads(cell))
        except (TypeError, ValueError, RecursionError) as error:
            kind = "text that is not JSON" if isinstance(cell, str) else f"a {type(cell).__name__}"
            msg = f"read_steps reads JSON text, but {column!r} has {kind} in row {i} (counted from 0)."
            raise ArgumentTypeError(msg) from error
    return pd.Series(values, index=df.index, name=column, dtype=object)


def _with_none(cells: pd.Series[Any]) -> list[Any]:
    """Return the cells as Python objects, None where one is missing."""
    return cells.astype(object).where(cells.notna(), None).tolist()


def unnest(df: pd.DataFrame, /, name: str) -> pd.DataFrame:
    """Return one row per statement (or claim, or other item) of a scorer's step results.

    Parameters
    ----------
    df
        A scored frame.
    name
        The scorer, such as ``"relevancy"``.

    Returns
    -------
    pandas.DataFrame
        The index of the row that each item came from, repeated; ``<item>_number`` from 1, the item's text, and the fields of its verdict.
        For relevancy: ``statement_number`` (int64), ``statement``, ``result``, ``reason`` (string). Rows without items have no row here; the
        statements of a row that failed before they were judged have no result.

    Raises
    ------
    UnknownOptionError
        When the frame holds no list-valued step results of that scorer.

    Examples
    --------
    >>> df = pd.DataFrame({
    ...     "relevancy_statements": ['["Paris.", "I like tea."]'],
    ...     "relevancy_results": ['[{"statement": 1, "result": "yes", "reason": "r"}, {"statement": 2, "result": "no", "reason": "s"}]'],
    ... }, index=["q1"])
    >>> unnest(df, "relevancy")
        statement_number    statement result reason
    q1                 1       Paris.    yes      r
    q1                 2  I like tea.     no      s
    """
    require_frame(df, "unnest")
    name = name.removesuffix("_score")
    nested = [column for column in owned_columns(df, name) if _may_nest(df, column, name)]
    lists = {column.removeprefix(f"{name}_"): values for column in nested if (values := _lists(df[column])) is not None}
    if not lists:
        others = sorted({str(column).removesuffix("_results") for column in df.columns if str(column).endswith("_results")})
        has = (
            f"the frame has lists of {listed(others)}" if others else "the frame has none; score it first, with score_relevancy for example"
        )
        msg = f"unnest reads the lists that a scorer keeps, such as statements and verdicts, but {name!r} has none here; {has}."
        raise UnknownOptionError(msg)
    records = {field: values for field, values in lists.items() if _holds(field, values, dict)}
    texts = {field: values for field, values in lists.items() if field not in records and _holds(field, values, str)}
    counts = np.array([max(map(len, cells)) for cells in zip(*({**texts, **records} or lists).values(), strict=True)], dtype=np.int64)
    items = {_singular(field): _flat(values, counts) for field, values in texts.items()}
    number = f"{next(iter(items), 'item')}_number"
    columns: dict[str, Any] = {number: np.concatenate([np.arange(1, count + 1) for count in counts] or [np.zeros(0)]).astype(np.int64)}
    columns |= {item: pd.Series(flat, dtype="string") for item, flat in items.items()}
    for field, values in records.items():
        flat = _flat(values, counts)
        keys = dict.fromkeys(key for record in flat for key in record or ())
        for key in keys or dict.fromkeys(("result", "reason")):
            if f"{key}_number" != number:
                columns[key if key not in columns else f"{field}_{key}"] = _typed([(record or {}).get(key) for record in flat])
    return pd.DataFrame(columns).set_axis(df.index.repeat(counts), axis=0)


def _may_nest(df: pd.DataFrame, column: str, name: str) -> bool:
    """Return whether a column of a scorer may hold JSON lists."""
    plain = column in {f"{name}_{part}" for part in ("score", "reason", "error", "judge", "repeats")} or column.endswith("_prompt")
    return not plain and not pd.api.types.is_numeric_dtype(df[column].dtype)


def _lists(cells: pd.Series[Any]) -> list[list[Any]] | None:
    """Return the lists that a column spells in JSON, empty ones for missing cells; None where any cell spells something else."""
    values: list[list[Any]] = []
    for cell in _with_none(cells):
        try:
            value = [] if cell is None else json.loads(cell)
        except (TypeError, ValueError, RecursionError):
            return None
        if not isinstance(value, list):
            return None
        values.append(value)
    return values


def _holds(field: str, values: Iterable[list[Any]], kind: type) -> bool:
    """Return whether a field's lists hold items of one kind; where all are empty, ``results`` hold records and other fields texts."""
    kinds = {type(item) for value in values for item in value}
    return kinds == {kind} if kinds else (field == "results") == (kind is dict)


def _flat(values: Sequence[list[Any]], counts: NDArray[np.int64]) -> list[Any]:
    """Return the items of all lists in one, with None where a list is shorter than its row's count."""
    return [item for value, count in zip(values, counts.tolist(), strict=True) for item in (*value, *[None] * (count - len(value)))]


def _singular(field: str) -> str:
    """Return the name of one item of a field."""
    return field.removesuffix("s") if len(field) > 1 else field


def _typed(values: list[Any]) -> pd.Series[Any]:
    """Return a column of texts, numbers or, failing both, JSON text."""
    filled = [value for value in values if value is not None]
    if all(isinstance(value, str) for value in filled):
        return pd.Series(values, dtype="string")
    if all(isinstance(value, (int, float)) for value in filled):
        return pd.Series(values, dtype="float64")
    return pd.Series([to_json(value) for value in values], dtype="string")


def bands(df: pd.DataFrame, /, name: str, *, scale: float = 1.0, labels: Mapping[float, str] | None = None) -> pd.Series[Any]:
    """Return the published interpretation of each score as an ordered categorical.

    Parameters
    ----------
    df
        A scored frame.
    name
        The scorer, such as ``"relevancy"``; those with published bands are in ``scorekit.columns.BANDS``.
    scale
        What the scores were multiplied by; above 0.
    labels
        Bands of your own: lower end as a share of the scale -> label. The lowest reaches down without end.

    Returns
    -------
    pandas.Series
        Ordered categorical, the frame's index, worst band first; missing where the row has no score.

    Raises
    ------
    MissingColumnError, UnknownOptionError, OptionRangeError
        When the score is not there, has no bands, or ``scale`` is not above 0.

    Examples
    --------
    >>> bands(pd.DataFrame({"relevancy_score": [1.0, 0.5, 0.0, None]}), "relevancy").tolist()
    ['fully answers', 'partially answers', 'unrelated', nan]
    """
    name = name.removesuffix("_score")
    score = require(require_frame(df, "bands"), f"{name}_score", "bands")
    if isinstance(scale, bool) or not isinstance(scale, Real):
        raise ArgumentTypeError.from_value("scale", scale, "a number")
    if not 0 < scale < np.inf:
        raise OptionRangeError.from_value("scale", scale, "above 0, and finite")
    if labels is not None and (not labels or len(set(labels.values())) < len(labels)):
        raise OptionRangeError.from_value("labels", dict(labels), "a mapping from lower ends to labels that differ, one at least")
    if labels is None and name not in BANDS:
        msg = f"{name!r} has no published bands; {listed(BANDS)} have. Pass labels={{0.0: 'low', 0.5: 'high'}} for bands of your own."
        raise UnknownOptionError(msg)
    cuts = sorted(labels.items()) if labels is not None else list(BANDS[name])
    values = score.to_numpy(dtype=np.float64, na_value=np.nan) / scale
    codes = np.full(len(values), -1, dtype=np.int64)
    codes[~np.isnan(values)] = 0
    for code, ((before, _), (lower, _)) in enumerate(pairwise(cuts), start=1):
        codes[values > lower if before == lower else values >= lower] = code
    names = pd.Index([label for _, label in cuts])
    return pd.Series(pd.Categorical.from_codes(codes, categories=names, ordered=True), index=df.index, name=f"{name}_band")
