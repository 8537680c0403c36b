"""``scorekit compare``: the variants in a scored file, compared in pairs, and whether one is shown to be worse."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pandas as pd

from scorekit.errors import ArgumentTypeError, OptionRangeError, UnknownOptionError, shown
from scorekit.files import Table, file_ending, read_table, replacing, require_writable, write_table
from scorekit.terminal import aligned, one_line
from scorekit.texts import without_surrogates

if TYPE_CHECKING:
    import argparse
    from collections.abc import Hashable, Iterable, Sequence

    from scorekit.analysis.comparison import Comparison

SIBLINGS: Final = ("judge", "error", "reason")
"""Text columns of a scorer, in which an empty cell of a CSV is a missing one."""
MOST_LINES: Final = 60
"""So many comparisons are printed; -o holds all."""


class Compared(NamedTuple):
    """What the command found.

    Attributes
    ----------
    text
        For standard output.
    notes
        What was left out of the file, a line each.
    failures
        What ``--fail-on-regression`` objects to, a line each.
    passed
        What to say where it was asked for and objects to nothing; otherwise empty.
    """

    text: str
    notes: tuple[str, ...]
    failures: tuple[str, ...]
    passed: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    several: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument("file", metavar="FILE", help="a scored .csv, .jsonl or .parquet file, one row per item and variant")
    parser.add_argument("--variant", required=True, metavar="COLUMN", help="the column that tells the variants apart")
    parser.add_argument(
        "--item", required=True, metavar="COLUMN", action="append", help="the column that names what all variants answer, such as an id"
    )
    parser.add_argument("--score", metavar="NAME", **several, help="a score, such as relevancy (default: all that the file has)")
    parser.add_argument("--baseline", metavar="V", help="the variant that the others are compared with (default: the first in the file)")
    parser.add_argument("--by", metavar="COLUMN", **several, help="one comparison per value of a column that belongs to the item")
    parser.add_argument("--cluster", metavar="COLUMN", **several, help="a column whose items are alike, such as topic: drawn as a whole")
    parser.add_argument("--lower-is-better", metavar="NAME", **several, help="a score that is worse when higher, beside the shipped ones")
    parser.add_argument("--higher-is-better", metavar="NAME", **several, help="a score that is better when higher, beside the shipped ones")
    parser.add_argument(
        "--fail-on-regression",
        nargs="?",
        const="",
        action="append",
        default=[],
        metavar="NAME",
        help="exit with 1 where a variant is shown to be worse than the baseline, or has no pair, on this score (default: on all with a direction)",
    )
    parser.add_argument("-o", "--out", metavar="OUT", help="write the summary to a .csv, .jsonl or .parquet file")


def compare_file(arguments: argparse.Namespace) -> Compared:
    """Compare the variants of a file, and write the summary where it was asked for."""
    from scorekit.analysis.compare import compare

    ending = file_ending(arguments.out) if arguments.out else ""
    table = read_table(arguments.file)
    labels = [arguments.variant, *arguments.item, *arguments.by, *arguments.cluster]
    frame, notes = _readable(table, labels, [name.removesuffix("_score") for name in arguments.score])
    with ExitStack() as files:
        if ending:
            require_writable(Table(pd.DataFrame()), ending)
            target = files.enter_context(replacing(arguments.out))
        found = compare(
            frame,
            variant=arguments.variant,
            item=arguments.item,
            score=arguments.score or None,
            baseline=_baseline(frame, arguments.variant, arguments.baseline),
            by=arguments.by or None,
            cluster=arguments.cluster or None,
            lower_is_better=arguments.lower_is_better,
            higher_is_better=arguments.higher_is_better,
        )
        gated = _gated(found, arguments.fail_on_regression)
        if ending:
            summary = found.summary
            write_table(Table(summary[[]], records=[{} for _ in range(len(summary))]), summary, set(summary.columns), ending, target)
    return Compared(comparison_text(found), notes, regressions(found, gated), _passed(found, gated))


def _readable(table: Table, labels: Sequence[str], wanted: Sequence[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a file's frame with its scores as numbers, and what is no score after all.

    Of a CSV, empty cells of labels are missing; of a JSONL file, U+FFFD stands for lone surrogates, which neither Arrow nor a terminal takes.

    Raises
    ------
    ArgumentTypeError
        When the scores that are wanted are not all numbers.
    """
    frame, notes = table.frame, []
    text_only = table.records is None and table.arrow is None
    scores = [str(name).removesuffix("_score") for name in frame.columns if str(name).endswith("_score")]
    blank = {*labels, *(f"{name}_{part}" for name in scores for part in SIBLINGS)}
    columns: dict[int, Any] = {}
    for place, name in enumerate(frame.columns):
        columns[place] = column = frame.iloc[:, place]
        if text_only and name in blank:
            columns[place] = column.astype(object).where(column != "", None)
        elif name not in labels and str(name).endswith("_score") and not pd.api.types.is_numeric_dtype(column.dtype):
            columns[place], strange = _numbers(column)
            if strange and (name.removesuffix("_score") in wanted or f"{name.removesuffix('_score')}_error" in frame.columns):
                msg = f"The column {name!r} must hold numbers, and {strange}."
                raise ArgumentTypeError(msg)
            if strange:
                notes.append(f"the column {name!r} is no score, and is not compared: {strange}")
        elif table.records is not None:
            columns[place] = column.map(lambda cell: without_surrogates(cell) if isinstance(cell, str) else cell)
    return pd.DataFrame(columns, index=frame.index).set_axis(frame.columns, axis=1), tuple(notes)


def _numbers(column: pd.Series[Any]) -> tuple[pd.Series[Any], str]:
    """Return a column as floats, or as it is and the first cell that is no number."""
    floats = []
    for row, cell in enumerate(column.tolist()):
        try:
            floats.append(math.nan if cell is None or cell == "" else float(cell))
        except (TypeError, ValueError):
            return column, f"row {row} (counted from 0) holds {shown(cell)!r}"
    return pd.Series(floats, index=column.index, dtype="float64"), ""


def _baseline(frame: pd.DataFrame, variant: str, baseline: str | None) -> object:
    """Return the variant that a text of the command line names: 2 or True where the file has these."""
    if baseline is None or list(frame.columns).count(variant) != 1:
        return baseline
    labels: Iterable[object] = frame[variant].tolist()
    return next((label for label in labels if str(label) == baseline), baseline)


def _gated(found: Comparison, given: Sequence[str]) -> tuple[str, ...]:
    """Return the scores that must not get worse.

    Raises
    ------
    UnknownOptionError, OptionRangeError
        When a score is not compared, or has no direction, so that nothing on it could be worse.
    """
    hint = "name it in --lower-is-better or --higher-is-better"
    named = [name if name in found.scores else name.removesuffix("_score") for name in given if name]
    for name in named:
        if name not in found.scores:
            raise UnknownOptionError.from_value("--fail-on-regression", shown(name), found.scores)
        if not found.better[name]:
            msg = f"--fail-on-regression {name}: it is not known which is better of this score; {hint}."
            raise OptionRangeError(msg)
    if "" not in given:
        return tuple(dict.fromkeys(named))
    known = tuple(name for name in found.scores if found.better[name])
    if not known:
        msg = f"--fail-on-regression: of none of the scores ({', '.join(found.scores)}) it is known which is better; {hint}."
        raise OptionRangeError(msg)
    return known


def regressions(found: Comparison, scores: Sequence[str]) -> tuple[str, ...]:
    """Return a line for each comparison that shows a variant to be worse, and for each variant of which nothing could be compared."""
    summary, told, lines = found.summary, found.conclusions, []
    for name in scores:
        own = summary[summary["score"] == name]
        lines += [f"regression on {name}: {told[place]}" for place in own.index[own["verdict"] == "worse"]]
        pairs = own.groupby("variant", sort=False, observed=True)["n_pairs"].sum()
        lines += [
            f"{name}: {variant} has no pair with a score on both sides, so nothing shows that it is no worse"
            for variant, count in pairs.items()
            if not count
        ]
    return tuple(lines)


def _passed(found: Comparison, scores: Sequence[str]) -> str:
    """Say what a gate that nothing fails has shown."""
    if not scores:
        return ""
    unclear = int(found.summary.loc[found.summary["score"].isin(scores), "verdict"].eq("unclear").sum())
    more = f" ({unclear} unclear: a smaller regression may be there)" if unclear else ""
    return f"no regression shown on {', '.join(scores)}{more}"


def comparison_text(found: Comparison) -> str:
    """Return the sentences of a comparison and its summary as lines for a terminal."""
    summary = found.summary.head(MOST_LINES)
    lines = [one_line(text, 2000) for text in found.conclusions[:MOST_LINES]]
    if left := len(found.summary) - len(summary):
        lines.append(f"{left:,} more comparisons are not shown; -o writes all.")
    lines += [f"- {one_line(text, 2000)}" for text in found.remarks]
    corrected = not found.summary["p_holm"].dropna().equals(found.summary["p"].dropna())
    names = [
        "score",
        "variant",
        *map(str, found.by),
        "pairs",
        "baseline",
        "mean",
        "difference",
        f"{found.confidence * 100:g} % interval",
        "p",
    ]
    names += [*(["p_holm"] if corrected else []), "won", "tied", "lost", "verdict"]
    rows = [_cells(row, found.by, corrected=corrected) for row in summary.to_dict("records")]
    right = {"pairs", "baseline", "mean", "difference", "p", "p_holm", "won", "tied", "lost"} - set(map(str, found.by))
    return "\n".join([*lines, "", aligned(names, rows, right)])


def _cells(row: dict[Hashable, Any], by: Sequence[Hashable], *, corrected: bool) -> list[str]:
    """Return a row of the summary as texts."""
    number = {name: "none" if math.isnan(row[name]) else f"{row[name]:.3f}" for name in ("mean_baseline", "mean_variant", "p", "p_holm")}
    signs = {name: f"{row[name]:+.3f}" for name in ("difference", "ci_low", "ci_high")}
    return [
        *(one_line(row[name], 40) for name in ("score", "variant", *by)),
        f"{row['n_pairs']:,}",
        number["mean_baseline"],
        number["mean_variant"],
        "none" if math.isnan(row["difference"]) else signs["difference"],
        "none" if math.isnan(row["ci_low"]) else f"{signs['ci_low']} to {signs['ci_high']}",
        number["p"],
        *([number["p_holm"]] if corrected else []),
        *(f"{row[name]:,}" for name in ("wins", "ties", "losses")),
        row["verdict"],
    ]
