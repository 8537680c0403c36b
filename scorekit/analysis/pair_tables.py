"""The tables of a comparison: what each slice of the pairs says, what became of the items, and the pairs themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from scorekit.analysis.paired import holm, mcnemar_p
from scorekit.analysis.pairing import FATES, Arrangement, differences, fates
from scorekit.analysis.summary import pick
from scorekit.errors import ColumnConflictError, listed

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from scorekit.analysis.paired import Differences

    Floats = NDArray[np.float64]

FEW: Final = 20
"""With fewer pairs or clusters than this the interval is too narrow, as `scorekit.analysis.paired.describe_differences` tells."""

TOO_FEW: Final = 6
"""With fewer, no sign-flip p can be below 0.05."""

LOPSIDED: Final = 0.05
"""Below this p of McNemar's test it is said that one side lacks scores more often than the other."""

FLOATS: Final = ("mean_baseline", "mean_variant", "difference", "ci_low", "ci_high", "p", "p_holm", "mcnemar_p", "effect")
COUNTS: Final = ("wins", "ties", "losses")
OUTCOMES: Final = ("loss", "tie", "win")
SIDES: Final = ("baseline", "variant")


class Scored(NamedTuple):
    """A score and how it is read: means by item and variant, direction ("higher", "lower" or "" for none), tie margin, judges."""

    name: str
    means: Floats
    better: str
    tie: float
    binary: bool
    judges: tuple[str, ...]

    def outcomes(self, deltas: Floats) -> NDArray[np.int64]:
        """Return 1 for each win, 0 for each tie and -1 for each loss; 0 where there is no difference to speak of or none at all."""
        # 0.3 - 0.2 must not be more than a margin of 0.1.
        beyond = np.abs(deltas) > self.tie * (1 + 1e-9)
        return np.where(beyond, np.sign(deltas) * (-1 if self.better == "lower" else 1), 0).astype(np.int64)


class Slice(NamedTuple):
    """The pairs of one score, compared variant and group: scores of both sides, differences, clusters, and what became of all items."""

    score: Scored
    variant: int
    group: int
    baseline_scores: Floats
    variant_scores: Floats
    deltas: Floats
    clusters: NDArray[np.intp] | None
    alone: int
    counts: dict[str, int]


def slices(score: Scored, table: Arrangement, base: int, variant: int) -> list[Slice]:
    """Return the slices of one score and variant, one per group."""
    items = table.meeting(base, variant)
    rows = table.rows[items][:, [base, variant]]
    first, second = score.means[items, base], score.means[items, variant]
    fate, deltas = fates(rows, first, second), differences(first, second)
    groups, total = table.groups.codes[items], table.groups.total
    counts = np.bincount(groups * len(FATES) + fate, minlength=total * len(FATES)).reshape(total, len(FATES))
    duplicates = np.bincount(groups, np.maximum(rows - 1, 0).sum(axis=1), total).astype(np.int64)
    pairs = np.flatnonzero(fate == 0)
    pairs = pairs[np.argsort(groups[pairs], kind="stable")]
    parts = np.split(pairs, np.cumsum(counts[:, 0])[:-1])
    found = []
    for group, places in enumerate(parts):
        clusters, alone, count = None, 0, len(places)
        if table.clusters is not None:
            clusters = np.unique(table.clusters[items[places]], return_inverse=True)[1]
            alone, count = int(table.alone[items[places]].sum()), int(clusters.max(initial=-1)) + 1
        told = {"items": int(counts[group].sum())} | dict(zip(FATES, counts[group].tolist(), strict=True))
        told |= {"duplicates": int(duplicates[group]), "clusters": count}
        found.append(Slice(score, variant, group, first[places], second[places], deltas[places], clusters, alone, told))
    return found


def summary_table(parts: Sequence[Slice], found: Sequence[Differences], keys: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Return what every slice says, after its keys."""
    rows = [_numbers(part, numbers) for part, numbers in zip(parts, found, strict=True)]
    table = pd.DataFrame(rows, index=keys.index)
    names = np.array([part.score.name for part in parts], dtype=object)
    for name in dict.fromkeys(names):
        table.loc[names == name, "p_holm"] = holm(table.loc[names == name, "p"])
    table["verdict"] = [_verdict(row, part.score.better, 1 - confidence) for row, part in zip(table.to_dict("records"), parts, strict=True)]
    table = table[["n_pairs", *FLOATS, *COUNTS, "verdict", "note"]]
    dtypes = dict.fromkeys(FLOATS, "float64") | dict.fromkeys(("n_pairs", *COUNTS), "int64") | dict.fromkeys(("verdict", "note"), "string")
    return beside(keys, table.astype(dtypes))


def _numbers(part: Slice, found: Differences) -> dict[str, Any]:
    """Return the numbers of one slice."""
    outcomes = part.score.outcomes(part.deltas)
    losses, ties, wins = (int((outcomes == outcome).sum()) for outcome in (-1, 0, 1))
    nan = float("nan")
    testable = part.score.binary and part.clusters is None and found.n > 1
    ups, downs = int((part.deltas > 0).sum()), int((part.deltas < 0).sum())
    return {
        "n_pairs": found.n,
        "mean_baseline": float(part.baseline_scores.mean()) if found.n else nan,
        "mean_variant": float(part.variant_scores.mean()) if found.n else nan,
        "difference": found.mean,
        "ci_low": found.low,
        "ci_high": found.high,
        "p": found.p,
        "p_holm": nan,
        "mcnemar_p": mcnemar_p(downs, ups) if testable else nan,
        "effect": found.effect,
        "wins": wins,
        "ties": ties,
        "losses": losses,
        "note": "; ".join(_notes(part, found)),
    }


def _notes(part: Slice, found: Differences) -> list[str]:
    """Return why a number is missing or not to be trusted."""
    notes = []
    units = "pair" if part.clusters is None else "cluster"
    if not found.n:
        both = sum(part.counts[fate] for fate in ("unscored_baseline", "unscored_variant", "unscored_both"))
        return ["no item has rows of both" if not both else "no item is scored on both sides"]
    if found.clusters == 1:
        notes.append(f"1 {units}: no interval and no test")
    elif np.isnan(found.low):
        notes.append("all differences are equal: no interval" if part.clusters is None else "all clusters differ equally: no interval")
    if 1 < found.clusters < FEW:
        least = f", and no p is below {2.0 ** (1 - found.clusters):.2g}" if found.clusters < TOO_FEW else ""
        notes.append(f"{found.clusters} {units}s: fewer than {FEW}, the interval is too narrow{least}")
    if part.alone:
        notes.append(f"{part.alone:,} items without a cluster count as one each")
    before, after = part.counts["unscored_baseline"], part.counts["unscored_variant"]
    if mcnemar_p(before, after) < LOPSIDED:
        notes.append(f"unscored more often on one side (baseline {before:,} items, variant {after:,}): the pairs left are a choice")
    if part.score.binary and part.clusters is not None:
        notes.append("no McNemar test with clusters")
    if len(part.score.judges) > 1:
        notes.append(f"judges mixed: {', '.join(part.score.judges)}")
    return notes


def _verdict(row: Mapping[Any, Any], better: str, level: float) -> str:
    """Return what a row of the summary shows: better, worse, higher, lower, or unclear."""
    shown = row["p_holm"] < level and (np.isnan(row["ci_low"]) or row["ci_low"] > 0 or row["ci_high"] < 0)
    if not shown:
        return "unclear"
    higher = row["difference"] > 0
    if not better:
        return "higher" if higher else "lower"
    return "better" if higher == (better == "higher") else "worse"


def counts_table(parts: Sequence[Slice], keys: pd.DataFrame) -> pd.DataFrame:
    """Return what became of the items of every slice, after its keys."""
    return beside(keys, pd.DataFrame([part.counts for part in parts], index=keys.index).astype("int64"))


def key_table(df: pd.DataFrame, parts: Sequence[Slice], table: Arrangement) -> pd.DataFrame:
    """Return the score, the variant and the group of every slice.

    Raises
    ------
    ColumnConflictError
        When a column of ``by`` has the name of a column of the result.
    """
    taken = ("score", "variant", "n_pairs", *FLOATS, *COUNTS, "verdict", "note", "items", "duplicates", "clusters", *FATES)
    refuse_clash([label for label in table.by if label in taken], "summary")
    first = table.groups.first[[part.group for part in parts]]
    made: dict[Hashable, Any] = {"score": pd.array([part.score.name for part in parts], dtype="string")}
    made["variant"] = table.labels.iloc[[part.variant for part in parts]].array
    made |= {label: pick(df, label, "compare", "by").iloc[first].array for label in table.by}
    return framed(made)


def row_table(
    df: pd.DataFrame, table: Arrangement, base: int, variants: Sequence[int], scores: Sequence[Scored], texts: Mapping[str, Hashable]
) -> pd.DataFrame:
    """Return one row per item and compared variant; `scorekit.analysis.comparison.Comparison` tells its columns.

    Raises
    ------
    ColumnConflictError
        When two of its columns would have one name.
    """
    meetings = [(variant, table.meeting(base, variant)) for variant in variants]
    items = np.concatenate([places for _, places in meetings])
    compared = np.concatenate([np.full(len(places), variant) for variant, places in meetings])
    sides = {"baseline": np.full(len(items), base), "variant": compared}
    first = {side: table.first[items, places] for side, places in sides.items()}
    somewhere = table.anywhere[items]
    made: list[tuple[Hashable, Any]] = [(label, pick(df, label, "compare", "item").iloc[somewhere].array) for label in table.keys]
    made.append(("variant", table.labels.iloc[compared].array))
    if texts["input"] not in table.keys or texts["input"] != "input":
        either = np.where(first["baseline"] >= 0, first["baseline"], first["variant"])
        made.append(("input", _cells(df, texts["input"], either, "input")))
    made += [(f"output_{side}", _cells(df, texts["output"], first[side], "output")) for side in SIDES]
    for score in scores:
        before, after = (score.means[items, sides[side]] for side in SIDES)
        deltas = differences(before, after)
        outcomes = pd.array(np.array(OUTCOMES, dtype=object)[score.outcomes(deltas) + 1], dtype="string")
        outcomes[np.isnan(deltas)] = pd.NA
        made += [(f"{score.name}_baseline", before), (f"{score.name}_variant", after), (f"{score.name}_delta", deltas)]
        made.append((f"{score.name}_outcome", outcomes))
        for part in ("reason", "error"):
            made += [(f"{score.name}_{part}_{side}", _cells(df, f"{score.name}_{part}", first[side], None)) for side in SIDES]
    made += [(f"rows_{side}", table.rows[items, sides[side]]) for side in SIDES]
    made += [(f"position_{side}", pd.array(first[side], dtype="Int64")) for side in SIDES]
    for column in (made[-2][1], made[-1][1]):
        column[column == -1] = pd.NA
    names = [name for name, _ in made]
    refuse_clash([name for name in dict.fromkeys(names) if names.count(name) > 1], "rows")
    return framed(dict(made))


def _cells(df: pd.DataFrame, label: Hashable, positions: NDArray[np.int64], keyword: str | None) -> Any:
    """Return a column's cells at some positions, missing at -1; all missing where the frame lacks a column that nobody named."""
    if label not in df.columns and (keyword is None or label == keyword):
        return pd.array([pd.NA], dtype="string").repeat(len(positions))
    return pick(df, label, "compare", keyword or str(label)).reset_index(drop=True).reindex(positions).array


def refuse_clash(labels: Sequence[Hashable], table: str) -> None:
    """Raise where columns of the frame have names that a table of the result needs."""
    if labels:
        msg = f"compare: its .{table} has a column of its own named {listed(labels)}. Rename the frame's column first."
        raise ColumnConflictError(msg)


def framed(columns: Mapping[Hashable, Any]) -> pd.DataFrame:
    """Return columns under labels of any kind: through a dict alone, tuples would make levels."""
    # pandas 3 would make its own text of plain objects, which has no lone surrogates.
    kept = (pd.Series(values, dtype=object) if pd.api.types.is_object_dtype(values) else values for values in columns.values())
    found = pd.DataFrame(dict(enumerate(kept)))
    found.columns = pd.Index(list(columns), tupleize_cols=False)
    return found


def beside(keys: pd.DataFrame, numbers: pd.DataFrame) -> pd.DataFrame:
    """Return numbers after their keys."""
    labels = [*keys.columns, *numbers.columns]
    found = pd.concat([keys, numbers], axis=1)
    found.columns = pd.Index(labels, tupleize_cols=False)
    return found
