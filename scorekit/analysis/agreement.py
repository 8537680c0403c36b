"""How far a score agrees with people's labels, and what share of all rows passes by both together."""

from __future__ import annotations

import html
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd

from scorekit.analysis.labels import BINARY, MISSING, UNSURE, match_classes, read_labels, read_meanings, settle_unsure, spelled
from scorekit.analysis.rates import more_labels
from scorekit.analysis.remarks import sentences
from scorekit.analysis.statistics import check_confidence, check_whole
from scorekit.analysis.summary import column_labels, pick, worse_when_higher
from scorekit.analysis.verdicts import (
    METHODS,
    Bootstrap,
    cross,
    curve_table,
    judges_of,
    majority,
    pair_row,
    pass_rate_table,
    rate_table,
    read_verdicts,
    unlabelled_counts,
)
from scorekit.columns import require_frame
from scorekit.errors import ColumnConflictError, OptionRangeError, UnknownOptionError, listed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from scorekit.analysis.labels import Classes, Labels, Meanings
    from scorekit.analysis.verdicts import Verdicts

Unsure = Literal["exclude", "fail", "pass", "class"]
Reference = Literal["first", "majority"]
UNSURE_RULES: Final = ("exclude", "fail", "pass", "class")
REFERENCES: Final = ("first", "majority")
LEAST_RESAMPLES: Final = 100


@dataclass(frozen=True, repr=False, eq=False)
class Agreement:
    """What `agreement` found; shows itself in a notebook, escaped.

    Attributes
    ----------
    matrix
        Counts of the compared rows: a row per human label, a column per label of the score.
    table
        ``metric`` (accuracy, tpr, tnr, precision, kappa), ``value``, ``ci_low``, ``ci_high`` (float64, NaN where they cannot be known), ``n``
        (int64: of how many rows), ``note`` (string: why a number is missing; empty elsewhere).
    pass_rate
        The share of rows that are good, by ``method``: ``"labels only"``, ``"PPI++"``, ``"Rogan-Gladen"``; ``estimate``, ``ci_low``, ``ci_high``
        (float64, 0 to 1), ``n_labelled``, ``n_scored`` (int64), ``note``. No rows where the labels are not pass and fail.
    curve
        ``threshold``, ``tpr``, ``tnr``, ``j`` (float64) at every score of a compared row and at the threshold used. No rows where the score is a
        label.
    threshold, best_threshold
        The one used, and the one of the highest Youden's J = TPR + TNR - 1 on these rows, of several the nearest to the one used. NaN where there
        is none.
    kappas
        Every two raters, the score among them: ``rater_a``, ``rater_b``, ``kappa``, ``ci_low``, ``ci_high``, ``agreed`` (share of equal labels),
        ``n``, ``note``.
    counts
        Rows by what became of them: ``compared``, ``unlabelled`` (scored, no human label), ``unsure`` (left out for it), ``unscored``.
    classes
        The labels, in the order of the matrix.
    score, human
        Names of the score's column and of the reference.
    lower_is_better
        Whether a score at or below the threshold passes.
    confidence
        Of all intervals.
    judges
        Who gave the scores, where the frame says so.
    codes
        The class of every row of the frame by the reference and by the score, as its place in ``classes``; below 0 where there is none.
    """

    matrix: pd.DataFrame
    table: pd.DataFrame
    pass_rate: pd.DataFrame
    curve: pd.DataFrame
    threshold: float
    best_threshold: float
    kappas: pd.DataFrame
    counts: pd.Series[int]
    classes: tuple[str, ...]
    score: str
    human: str
    lower_is_better: bool
    confidence: float
    judges: tuple[str, ...]
    codes: tuple[NDArray[np.int64], NDArray[np.int64]]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return in sentences what can be concluded, then what cannot, and why."""
        return sentences(self)

    def rows(self, human: object = None, score: object = None) -> NDArray[np.bool_]:
        """Return which rows of the frame are in a cell of the matrix, as a mask by position: ``df[result.rows("fail", "pass")]``.

        Parameters
        ----------
        human, score
            Labels by the reference and by the score; ``"missing"`` and ``"unsure"`` are those without one. None takes any.

        Raises
        ------
        UnknownOptionError
            When there is no such label.
        """
        mask = np.ones(len(self.codes[0]), dtype=bool)
        places = {name: place for place, name in enumerate(self.classes)}
        places = {"missing": MISSING, "unsure": UNSURE} | places
        for option, wanted, codes in (("human", human, self.codes[0]), ("score", score, self.codes[1])):
            if wanted is not None:
                if spelled(wanted) not in places:
                    raise UnknownOptionError.from_value(option, wanted, places)
                mask &= codes == places[spelled(wanted)]
        return mask

    def labels_needed(self, width: float) -> pd.Series[int]:
        """Return how many more labels make an interval of the pass rate so narrow.

        Parameters
        ----------
        width
            From the low to the high end, above 0 and below 1: 0.1 is plus and minus 5 points.

        Returns
        -------
        pandas.Series
            ``"labels only"`` and ``"PPI++"`` (int64). 0 where it is narrow enough already; more than ``counts["unlabelled"]`` where new rows have
            to be scored and labelled.

        Raises
        ------
        ArgumentTypeError, OptionRangeError
            When ``width`` is no number or not between 0 and 1; when the labels are not pass and fail.
        """
        if self.classes != BINARY:
            msg = f"labels_needed: a pass rate needs labels of pass and fail, and these are {listed(self.classes)}. Map them with labels= first."
            raise OptionRangeError(msg)
        needed = more_labels(self.matrix.to_numpy(), *unlabelled_counts(self.codes), width, confidence=self.confidence)
        return pd.Series(needed, index=list(METHODS[:2]), name="more_labels", dtype="int64")

    @property
    def rule(self) -> str:
        """Return when the score passes, such as ``"relevancy_score >= 0.5"``; the score's name alone where it is a label."""
        return self.score if np.isnan(self.threshold) else f"{self.score} {'<=' if self.lower_is_better else '>='} {self.threshold:g}"

    def __repr__(self) -> str:
        """Return the sentences and the tables as text."""
        first, *others = self.remarks
        tables = [self.matrix.to_string(), *(table.to_string(index=False) for table in self._tables())]
        return "\n\n".join(["\n".join([first, self._counted(), *(f"- {text}" for text in others)]), *tables])

    def _repr_html_(self) -> str:
        first, *others = self.remarks
        items = "".join(f"<li>{html.escape(text)}</li>" for text in others)
        tables = "".join([self.matrix.to_html(), *(table.to_html(index=False) for table in self._tables())])
        return f"<div><p><b>{html.escape(first)}</b></p><p>{html.escape(self._counted())}</p><ul>{items}</ul>{tables}</div>"

    def _counted(self) -> str:
        """Return what passes and what became of the rows."""
        rows = ", ".join(f"{count:,} {name}" for name, count in self.counts.items() if count or name == "compared")
        verdict = "" if np.isnan(self.threshold) else f"{self.rule} passes. "
        return f"{verdict}Rows: {rows}."

    def _tables(self) -> list[pd.DataFrame]:
        """Return the tables to show, rounded, without those that say nothing."""
        wanted = [self.table, self.pass_rate, self.kappas if len(self.kappas) > 1 else self.kappas.iloc[:0]]
        return [table.round(3) if (table["note"] != "").any() else table.round(3).drop(columns="note") for table in wanted if len(table)]


def agreement(
    df: pd.DataFrame,
    /,
    *,
    score: Hashable,
    human: Hashable | Sequence[Hashable],
    threshold: float | None = None,
    labels: Mapping[Any, str | None] | None = None,
    unsure: Unsure = "exclude",
    reference: Reference = "first",
    lower_is_better: Collection[str] = (),
    mixed_judges: bool = False,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Agreement:
    """Return how far a score agrees with people's labels, and the share of all rows that passes by both together.

    Parameters
    ----------
    df
        A scored frame in which some rows have a label; not changed. Rows without one are wanted: the pass rate is estimated for them too.
    score
        A column of numbers, such as ``"relevancy_score"``, or a scorer's name, ``"relevancy"``; or a column of labels (verdicts, another rater).
    human
        The column of labels, or a list of several raters' columns. They are read without regard to type and case: pass, yes, true, 1, good,
        correct ... and fail, no, false, 0, bad, wrong ...; 1, 1.0, "1" and True are one label. A label says whether the row is good: where 1 stands
        for toxic, pass ``labels={1: "fail", 0: "pass"}``. NA, empty cells and "nan" are missing labels.
    threshold
        A score at or above it passes; of a score that is better when lower, one at or below it. None takes 0.5 where all scores lie in 0 to 1,
        and is an error elsewhere. A column of labels has none.
    labels
        What your own words mean: ``{"ok": "pass", "meh": "unsure", "skipped": None}``; None is a missing label.
    unsure
        What becomes of the labels "unsure", "maybe", "?" and the like: ``"exclude"`` counts their rows and leaves them out of everything else;
        ``"fail"`` and ``"pass"`` take them for that; ``"class"`` makes them a class of their own, where the score is a column of labels.
    reference
        Of several raters: ``"first"`` compares the score with the first one, ``"majority"`` with the label that most of them gave (a tie is unsure).
    lower_is_better
        Names of scores that are worse when higher, beside the shipped ones.
    mixed_judges
        Whether scores of several judges may be taken together. They err differently, so that one TPR and TNR describe none of them.
    confidence
        Of every interval, above 0 and below 1.
    resamples, seed
        Of kappa's bootstrap; 100 resamples or more.

    Returns
    -------
    Agreement
        ``.matrix``, ``.table`` (accuracy, TPR, TNR, precision, kappa), ``.pass_rate``, ``.curve`` and ``.best_threshold`` (Youden's J), ``.kappas``,
        ``.counts``, ``.rows("fail", "pass")``, ``.labels_needed(0.1)``. TPR is the share of good rows that pass, TNR that of bad ones that fail.
        Where the labels are others than pass and fail, there are the matrix, the accuracy and the kappas alone.

    Raises
    ------
    MissingColumnError, ColumnConflictError
        When a column is not there, or twice; when the scores are of several judges.
    UnknownOptionError
        When a label is not known to mean pass or fail, or the score's labels have none in common with a rater's.
    ArgumentTypeError, OptionRangeError
        When an option is of the wrong kind or out of range; when no row has both a score and a label.

    Notes
    -----
    The labelled rows must be a random choice of all rows: of picked ones ("the doubtful ones") neither the labels alone nor PPI++ give the pass rate
    of all. A sentence says so where the score passes labelled rows more or less often than the others.

    Shares have Wilson's intervals. Kappa has that of a percentile bootstrap, and is NaN where a rater gave one label only. PPI++ predicts a label by
    the score's verdict (0 or 1) and not by the score itself: so it speaks of the same threshold as the matrix, and needs no scale. Its unlabelled rows
    are those without a label, as in ppi-python. `scorekit.analysis.rates` tells how its interval is made, and Rogan and Gladen's.

    A threshold chosen on these rows looks better on them than it is: choose it on some labels, and report TPR and TNR on others.

    References
    ----------
    A. N. Angelopoulos, J. C. Duchi and T. Zrnic, PPI++: efficient prediction-powered inference, arXiv:2311.01453 (2023). W. J. Rogan and B. Gladen,
    American Journal of Epidemiology 107 (1978). J. Cohen, Educational and Psychological Measurement 20 (1960). W. J. Youden, Index for rating
    diagnostic tests, Cancer 3 (1950).

    Examples
    --------
    >>> df = pd.DataFrame({"relevancy_score": [0.9, 0.8, 0.7, 0.2, 0.1, 0.9], "label": ["yes", "yes", "no", "no", "no", None]})
    >>> found = agreement(df, score="relevancy", human="label", threshold=0.5)
    >>> found.matrix
    relevancy_score  pass  fail
    label
    pass                2     0
    fail                1     2
    >>> found.best_threshold
    0.8
    >>> df.index[found.rows("fail", "pass")].tolist()
    [2]
    """
    frame = require_frame(df, "agreement")
    share = check_confidence(confidence)
    draws = Bootstrap(share, check_whole("resamples", resamples, LEAST_RESAMPLES), check_whole("seed", seed, 0))
    for option, value, choices in (("unsure", unsure, UNSURE_RULES), ("reference", reference, REFERENCES)):
        if value not in choices:
            raise UnknownOptionError.from_value(option, value, choices)
    raters = column_labels(frame, human)
    if not raters:
        raise OptionRangeError.from_value("human", human, "the name of a column of labels, or a list of such names")
    columns = [pick(frame, rater, "agreement", "human") for rater in raters]
    verdicts = read_verdicts(frame, score, threshold, worse_when_higher(lower_is_better))
    if verdicts.label in raters:
        msg = f"agreement: {verdicts.column!r} is given as the score and as a human label; name two columns."
        raise ColumnConflictError(msg)
    judges = judges_of(frame, verdicts, mixed=mixed_judges)
    classes = _classes(columns, verdicts, read_meanings(labels), unsure)
    *given, scored = [settle_unsure(codes, unsure, classes.names) for codes in classes.codes]
    names = [*map(str, raters), verdicts.column]
    reference_name, codes = names[0], (given[0], scored)
    if reference == "majority" and len(given) > 1:
        voted = settle_unsure(majority(classes.codes[:-1], len(classes.names)), unsure, classes.names)
        reference_name, codes = f"majority of {len(given)}", (voted, scored)
    counts = _count(codes, reference_name, verdicts.column)
    matrix = cross(codes, len(classes.names))
    pairs = [pair_row(*pair, classes.names, draws) for pair in combinations(zip(names, [*given, scored], strict=True), 2)]
    main = pair_row((reference_name, codes[0]), (verdicts.column, scored), classes.names, draws)
    curve, best = curve_table(verdicts, codes)
    return Agreement(
        matrix=pd.DataFrame(
            matrix, index=pd.Index(classes.names, name=reference_name), columns=pd.Index(classes.names, name=verdicts.column)
        ),
        table=rate_table(matrix, main, classes.names, share),
        pass_rate=pass_rate_table(matrix, codes, classes.names, share),
        curve=curve,
        threshold=verdicts.threshold,
        best_threshold=best,
        kappas=pd.DataFrame(pairs).astype({"rater_a": "string", "rater_b": "string", "note": "string"}),
        counts=counts,
        classes=classes.names,
        score=verdicts.column,
        human=reference_name,
        lower_is_better=verdicts.lower,
        confidence=share,
        judges=judges,
        codes=codes,
    )


def _classes(columns: Sequence[pd.Series[Any]], verdicts: Verdicts, meanings: Meanings, unsure: str) -> Classes:
    """Return the raters' labels and the score's verdicts as the same classes, the score last."""
    read = [read_labels(column, meanings, "agreement") for column in columns]
    if verdicts.numbers is not None:
        if unsure == "class":
            msg = f"unsure='class' needs a score that can say unsure, and {verdicts.column!r} holds numbers. Choose 'exclude', 'fail' or 'pass'."
            raise OptionRangeError(msg)
        classes = match_classes(read, "agreement", binary=True)
        return classes._replace(codes=[*classes.codes, verdicts.codes()])
    judged = read_labels(verdicts.cells, meanings, "agreement")
    classes = match_classes([*read, judged], "agreement", unsure=unsure == "class")
    _refuse_strangers(read, judged, classes)
    return classes


def _refuse_strangers(read: Sequence[Labels], judged: Labels, classes: Classes) -> None:
    """Raise where a rater and the score have no class in common."""
    used = set(classes.codes[-1].tolist()) - {MISSING, UNSURE}
    for rater, codes in zip(read, classes.codes, strict=False):
        known = set(codes.tolist()) - {MISSING, UNSURE}
        if classes.names != BINARY and known and used and not known & used:
            first, second = ([classes.names[place] for place in sorted(places)] for places in (known, used))
            msg = (
                f"agreement: the labels of {rater.column!r} ({listed(first)}) and {judged.column!r} ({listed(second)}) have none in common. "
                f"Say which mean the same with labels={{{second[0]!r}: {first[0]!r}}}."
            )
            raise UnknownOptionError(msg)


def _count(codes: tuple[NDArray[np.int64], NDArray[np.int64]], human: str, score: str) -> pd.Series[int]:
    """Return how many rows are compared and how many are left out for what, each row once; raise where none is compared."""
    label, verdict = codes
    scored = verdict != MISSING
    unsure = scored & ((label == UNSURE) | (verdict == UNSURE))
    unlabelled = scored & ~unsure & (label == MISSING)
    compared = scored & ~unsure & ~unlabelled
    counts = {"compared": compared, "unlabelled": unlabelled, "unsure": unsure, "unscored": ~scored}
    found = pd.Series({name: int(rows.sum()) for name, rows in counts.items()}, name="rows", dtype="int64")
    if not found["compared"]:
        left = f" ({found['unsure']:,} are left out as unsure)" if found["unsure"] else ""
        msg = (
            f"agreement has no row to compare: of {len(label):,} rows {int(scored.sum()):,} have a value in {score!r}, "
            f"{int((label != MISSING).sum()):,} have a label in {human!r}, none has both"
            f"{left}. Label some of the scored rows first."
        )
        raise OptionRangeError(msg)
    return found
