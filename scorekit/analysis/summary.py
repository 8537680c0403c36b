"""What a scored frame says in total: one row per score and group, with an interval and with what could not be scored."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from scorekit.analysis.statistics import check_confidence, check_real, describe_groups
from scorekit.columns import HIGHER_IS_BETTER, LOWER_IS_BETTER, require, require_frame, score_names
from scorekit.errors import ArgumentTypeError, ColumnConflictError, MissingColumnError, OptionRangeError, listed, nearest
from scorekit.texts import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

OLD_PANDAS: Final = pd.__version__.startswith("2.")
NUMBERS: Final = ("mean", "ci_low", "ci_high", "n", "unscored", "errors", "min", "median", "max", "judges")


def summarize(
    df: pd.DataFrame,
    /,
    *,
    by: Hashable | Sequence[Hashable] | None = None,
    scores: str | Sequence[str] | None = None,
    confidence: float = 0.95,
    scale: float | None = None,
) -> pd.DataFrame:
    """Return one row per score, or per score and group, of a scored frame.

    Parameters
    ----------
    df
        A scored frame; not changed.
    by
        A column, or a list of several, whose values make the groups; an empty list is like None. A tuple is one column where the frame has
        a column of that name, and a list of columns elsewhere. Rows where it is missing are a group of their own, the last. Groups come in the
        order of their first row, those of a categorical column in the order of its categories; categories without rows are left out.
    scores
        Names of scorers, such as ``"relevancy"``; by default every scorer that has scored the frame.
    confidence
        Of the interval around the mean, above 0 and below 1.
    scale
        The highest score there can be: the interval is cut to 0..scale, where the mean must lie. None takes 1 where all scores lie in 0..1, and
        cuts nothing elsewhere.

    Returns
    -------
    pandas.DataFrame
        On a fresh index: ``score`` (string: the scorer's name), the columns of ``by`` with their own dtypes, and

        - ``mean``, ``ci_low``, ``ci_high`` (float64): of the rows that have a score; Student's t interval, see
          `scorekit.analysis.statistics.mean_interval`. The ends are NaN where fewer than two rows have a score or all scores are equal.
        - ``n``, ``unscored`` (int64): rows with and without a score. A row that has neither a score nor an error code, though the score has an error
          column, was never put to the scorer (live scoring samples each by its own rate) and counts as neither.
        - ``errors`` (string): error codes with their counts, most frequent first, ``"judge_timeout: 3, not_scorable: 1"``; empty if none.
        - ``min``, ``median``, ``max`` (float64).
        - ``judges`` (string): who judged these rows. More than one name means that the mean mixes judges. Empty for code scorers.

        A frame without rows gives ``n = 0`` and NaN; grouped, it gives no rows.

    Raises
    ------
    MissingColumnError
        When a column of ``by`` or the score of a named scorer is not there; the message names the nearest.
    ColumnConflictError
        When a column that is read is there twice, or a column of ``by`` has the name of a column of the result.
    ArgumentTypeError
        When a score is not a column of numbers, cells of ``by`` cannot be grouped (lists), or ``confidence`` or ``scale`` is no number.
    OptionRangeError
        When ``confidence`` is not between 0 and 1, ``scale`` is not above 0, or ``scores`` is empty.

    Notes
    -----
    Rows are taken as independent. Where one item has several rows (a question under three prompt variants), summarize ``by="variant"``:
    over all rows together the interval would be too narrow.

    Examples
    --------
    >>> df = pd.DataFrame({"variant": ["a", "a", "b"], "tone_score": [0.5, 1.0, None], "tone_error": [None, None, "not_scorable"]})
    >>> summary = summarize(df, by="variant")
    >>> summary[["score", "variant", "mean", "n", "unscored"]]
      score variant  mean  n  unscored
    0  tone       a  0.75  2         0
    1  tone       b   NaN  0         1
    >>> summary["errors"].tolist()
    ['', 'not_scorable: 1']
    """
    frame = require_frame(df, "summarize")
    top = None if scale is None else check_real("scale", scale)
    if top is not None and not top > 0:
        raise OptionRangeError.from_value("scale", scale, "above 0")
    share = check_confidence(confidence)
    names = select_scores(frame, scores, "summarize")
    keys = column_labels(frame, by)
    if clash := [key for key in keys if isinstance(key, str) and key in ("score", *NUMBERS)]:
        msg = f"summarize cannot group by {listed(clash)}: its result has a column of that name. Rename the column first."
        raise ColumnConflictError(msg)
    columns = [pick(frame, key, "summarize", "by") for key in keys]
    groups = group_rows(columns, len(frame))
    parts = [_describe(frame, name, groups, share, top) for name in names]
    first = np.tile(groups.first, len(names))
    made: dict[Hashable, Any] = {"score": pd.array(np.repeat(np.array(names, dtype=object), groups.total), dtype="string")}
    made |= {key: column.iloc[first].reset_index(drop=True) for key, column in zip(keys, columns, strict=True)}
    made |= {key: np.concatenate([part[key] for part in parts]) for key in NUMBERS}
    # Through a list of labels: a dict of tuples alone would give columns in levels.
    result = pd.DataFrame(dict(enumerate(made.values())))
    result.columns = pd.Index(list(made), tupleize_cols=False)
    return result.astype(dict.fromkeys(("errors", "judges"), "string"))


def select_scores(df: pd.DataFrame, scores: str | Iterable[str] | None, who: str) -> list[str]:
    """Return the names of the scorers to read, checked against the frame, each once.

    Raises
    ------
    MissingColumnError
        When the frame has no scores, or not that of a named scorer.
    ArgumentTypeError
        When a named score is not a column of numbers, or ``scores`` holds no names.
    OptionRangeError
        When ``scores`` is empty.
    """
    present = score_names(df)
    if scores is None:
        if not present:
            has = f"the frame has {listed(df.columns)}" if len(df.columns) else "the frame has no columns"
            msg = f"{who} needs a column '<name>_score' of numbers; {has}. Score it first: df.pipe(sk.score_tone)."
            raise MissingColumnError(msg)
        for name in present:
            require(df, f"{name}_score", who)
        return present
    names = [name if f"{name}_score" in df.columns else name.removesuffix("_score") for name in as_names("scores", scores)]
    if not names:
        raise OptionRangeError.from_value("scores", scores, "at least one name, or None for all")
    for name in names:
        if f"{name}_score" not in df.columns:
            near = nearest(name, present)
            hint = "" if near is None else f" Did you mean {near!r}?"
            msg = f"{who} needs a column '{name}_score'; the frame has scores of {listed(present) or 'no scorer'}.{hint}"
            raise MissingColumnError(msg)
        column = require(df, f"{name}_score", who)
        if not pd.api.types.is_numeric_dtype(column.dtype):
            msg = f"{who}: the column '{name}_score' must hold numbers; its dtype is {column.dtype}. Convert it with pd.to_numeric first."
            raise ArgumentTypeError(msg)
    return list(dict.fromkeys(names))


def directions(names: Sequence[str], lower: Sequence[str], higher: Sequence[str], who: str) -> dict[str, str]:
    """Return the direction of each score, by the shipped lists and the user's, which come first: ``"higher"``, ``"lower"``, or ``""`` for none.

    Raises
    ------
    OptionRangeError
        When a score is said to be better both ways.

    Examples
    --------
    >>> directions(["toxicity", "tone", "length"], ["length"], [], "compare")
    {'toxicity': 'lower', 'tone': 'higher', 'length': 'lower'}
    """
    low, high = ({name.removesuffix("_score") for name in given} for given in (lower, higher))
    if both := sorted(low & high):
        msg = (
            f"{who}: {listed(both)} cannot be better both when lower and when higher; name it in lower_is_better= or in higher_is_better=."
        )
        raise OptionRangeError(msg)
    low |= LOWER_IS_BETTER - high
    return {name: "lower" if name in low else "higher" if name in high | HIGHER_IS_BETTER else "" for name in names}


def as_names(option: str, names: str | Iterable[str]) -> list[str]:
    """Return an option's names as a list, a single one as a list of one, and raise an `ArgumentTypeError` if they are no names."""
    if isinstance(names, str):
        return [names]
    if not isinstance(names, Iterable):
        raise ArgumentTypeError.from_value(option, names, "a name or a list of names")
    found = list(names)
    for name in found:
        if not isinstance(name, str):
            raise ArgumentTypeError.from_value(f"Each name in {option}", name, "a text")
    return found


def worse_when_higher(names: str | Iterable[str]) -> frozenset[str]:
    """Return the names of the scores that are worse when higher: the shipped ones, and those that ``lower_is_better`` names beside them."""
    return LOWER_IS_BETTER.union(as_names("lower_is_better", names))


def column_labels(df: pd.DataFrame, given: object) -> list[Hashable]:
    """Return the labels of the columns that an option names, each once: a list names several, anything else one.

    A tuple is one label where the frame has a column of that name, and names several elsewhere.

    Examples
    --------
    >>> column_labels(pd.DataFrame({("a", 1): [0], "b": [0]}), ("a", 1))
    [('a', 1)]
    """
    if given is None:
        return []
    single = isinstance(given, (str, bytes)) or not isinstance(given, Iterable)
    if single or (isinstance(given, Hashable) and _places(df, given)):
        return [given]
    return list(dict.fromkeys(_hashable(label) for label in given))  # type: ignore[attr-defined]


def _hashable(label: object) -> Hashable:
    """Return a label that a column can have."""
    try:
        hash(label)
    except TypeError as error:
        raise ArgumentTypeError.from_value("The name of a column", label, "a text or another label") from error
    return label


def pick(df: pd.DataFrame, label: Hashable, who: str, keyword: str) -> pd.Series[Any]:
    """Return the one column of that label, which may be anything that pandas takes for one.

    Raises
    ------
    MissingColumnError
        When it is not there; the message names the nearest column.
    ColumnConflictError
        When it is there more than once.
    """
    places = _places(df, label)
    if len(places) == 1:
        return df.iloc[:, places[0]]
    if places:
        raise ColumnConflictError.from_duplicate(who, str(label), len(places))
    labels = {str(column): column for column in df.columns}
    near = nearest(str(label), list(labels))
    if isinstance(label, str) and (near is None or isinstance(labels[near], str)):
        raise MissingColumnError.from_columns(who, label, df.columns, keyword)
    hint = "" if near is None else f" Did you mean {keyword}={labels[near]!r}?"
    msg = f"{who} needs a column {label!r}; the frame has {listed(df.columns) or 'no columns'}.{hint}"
    raise MissingColumnError(msg)


def _places(df: pd.DataFrame, label: Hashable) -> list[int]:
    """Return where the columns of a label stand; the labels of columns in levels are whole tuples."""
    if df.columns.nlevels > 1 and not (isinstance(label, tuple) and len(label) == df.columns.nlevels):
        return []
    try:
        found = df.columns.get_loc(label)
    except (KeyError, TypeError):  # pandas' error for a tuple with a list in it is a TypeError
        return []
    return np.arange(len(df.columns))[found].reshape(-1).tolist()


def read_score(df: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """Return a scorer's scores as floats, NaN where a row has none."""
    return df[f"{name}_score"].to_numpy(dtype=np.float64, na_value=np.nan)


def asked_rows(df: pd.DataFrame, name: str, scores: NDArray[np.float64], who: str) -> NDArray[np.bool_]:
    """Return which rows were put to a scorer: where it has a column of errors, those with a score or an error."""
    column = f"{name}_error"
    if column not in df.columns:
        return np.ones(len(df), dtype=np.bool_)
    return ~np.isnan(scores) | require(df, column, who).notna().to_numpy(dtype=np.bool_)


def judge_counts(df: pd.DataFrame, name: str, scored: NDArray[np.bool_], who: str) -> pd.Series[int]:
    """Return how many of the scored rows each judge gave, by the judges' names in order; empty where the frame does not say."""
    column = f"{name}_judge"
    if column not in df.columns:
        return pd.Series(dtype="int64")
    cells = require(df, column, who)[scored].dropna()
    return cells.map(lambda judge: without_surrogates(str(judge))).value_counts().sort_index()


class Groups(NamedTuple):
    """Which group each row belongs to, by number, and the first row of each group."""

    codes: NDArray[np.intp]
    first: NDArray[np.intp]

    @property
    def total(self) -> int:
        """Return how many groups there are."""
        return len(self.first)


def group_rows(columns: Sequence[pd.Series[Any]], n: int) -> Groups:
    """Return the groups of rows in the order that `summarize` tells; all rows as one group without columns.

    Examples
    --------
    >>> group_rows([pd.Series(["b", None, "a", "b"])], 4).codes.tolist()
    [0, 2, 1, 0]
    """
    if not columns:
        return Groups(np.zeros(n, dtype=np.intp), np.zeros(1, dtype=np.intp))
    codes = np.zeros(n, dtype=np.intp)
    first = codes[:0]
    for column in columns:
        more = _codes(column)
        # Numbering the pairs anew after each column keeps them far below the largest integer.
        _, first, codes = np.unique(codes * (more.max(initial=0) + 1) + more, return_index=True, return_inverse=True)
    return Groups(codes.astype(np.intp), first.astype(np.intp))


def _codes(column: pd.Series[Any]) -> NDArray[np.intp]:
    """Return a number per row: equal values get equal numbers, missing ones the highest."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        # Categories without rows get no number: a product of many would not fit an integer.
        codes = column.cat.remove_unused_categories().cat.codes.to_numpy().astype(np.intp)
    else:
        if OLD_PANDAS and column.dtype == object:  # it takes all texts with a lone surrogate for one
            column = column.map(
                lambda cell: cell.encode("utf-8", "surrogatepass") if isinstance(cell, str) and not cell.isascii() else cell
            )
        try:
            codes = pd.factorize(column)[0]
        except (TypeError, NotImplementedError) as error:
            msg = f"The column {column.name!r} cannot make groups: {error}. Group by a column of texts or numbers."
            raise ArgumentTypeError(msg) from error
    return np.where(codes < 0, codes.max(initial=-1) + 1, codes)


def _describe(df: pd.DataFrame, name: str, groups: Groups, confidence: float, scale: float | None) -> dict[str, NDArray[Any]]:
    """Return the numbers of one score in every group."""
    scores = read_score(df, name)
    found = describe_groups(scores, groups.codes, groups.total, confidence=confidence)
    low, high = _cut(found.low, found.high, scores, scale)
    rows = np.bincount(groups.codes[asked_rows(df, name, scores, "summarize")], minlength=groups.total)
    texts = ("errors", f"{name}_error", "{text}: {n}"), ("judges", f"{name}_judge", "{text}")
    return {
        "mean": found.mean,
        "ci_low": low,
        "ci_high": high,
        "n": found.n,
        "unscored": rows.astype(np.int64) - found.n,
        "min": found.least,
        "median": found.median,
        "max": found.most,
        **{key: _counted(df, column, groups, form) for key, column, form in texts},
    }


def _cut(
    low: NDArray[np.float64], high: NDArray[np.float64], scores: NDArray[np.float64], scale: float | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of intervals within 0..scale, where every score lies there."""
    top = 1.0 if scale is None else scale
    there = scores[~np.isnan(scores)]
    if len(there) and there.min() >= 0 and there.max() <= top:
        return np.maximum(low, 0.0), np.minimum(high, top)
    return low, high


def _counted(df: pd.DataFrame, column: str, groups: Groups, form: str) -> NDArray[Any]:
    """Return, for every group, the different texts of a column, joined; empty ones where the frame has no such column.

    With a count in ``form`` the most frequent text comes first, otherwise they come in their own order.
    """
    joined = np.full(groups.total, "", dtype=object)
    if column not in df.columns:
        return joined
    cells = require(df, column, "summarize")
    there = cells.notna().to_numpy(dtype=bool)
    codes, texts = pd.factorize(
        np.array([without_surrogates(str(cell)) for cell in cells.to_numpy(dtype=object)[there]], dtype=object), sort=True
    )
    pairs, counts = np.unique(groups.codes[there] * max(len(texts), 1) + codes, return_counts=True)
    owners, places = np.divmod(pairs, max(len(texts), 1))
    if "{n}" in form:
        order = np.lexsort((places, -counts, owners))
        owners, places, counts = owners[order], places[order], counts[order]
    items: dict[int, list[str]] = {}
    for owner, place, count in zip(owners.tolist(), places.tolist(), counts.tolist(), strict=True):
        items.setdefault(owner, []).append(form.format(text=texts[place], n=count))
    for owner, parts in items.items():
        joined[owner] = ", ".join(parts)
    return joined
