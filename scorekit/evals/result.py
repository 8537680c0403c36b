"""EvalResult: what a run of `run_evals` gave."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from scorekit.evals.gates import Verdict


@dataclass(frozen=True, eq=False, repr=False)
class EvalResult:
    """The outputs of an application, their scores, and whether they are good enough.

    Attributes
    ----------
    frame
        A row an item and target: the item's own columns, ``output``, ``error``, ``reason``, ``seconds``, and the columns of the scorers.
    scores
        As `summarize` gives: a row per score (and target) with ``mean``, ``ci_low``, ``ci_high``, ``n``, ``unscored``, ``errors``.
    summary
        A row per target: ``items``, ``failed`` (items without an output), ``errors`` (their codes with counts), ``seconds`` (of a call on average),
        ``verdict``.
    gates
        A row per gate (and target): ``n`` rows with a score, how many ``missed`` the best one, ``failures`` (rows whose target or judge failed), ``passed``.
    thresholds
        A row per threshold (and target): ``mean``, ``min``, ``max``, ``n``, ``failures``, ``passed``.
    verdict
        ``"failed"`` where a gate is missed, ``"scored"`` where a threshold is, else ``"passed"``; None without gates and thresholds.
    """

    frame: pd.DataFrame
    scores: pd.DataFrame
    summary: pd.DataFrame
    gates: pd.DataFrame
    thresholds: pd.DataFrame
    verdict: Verdict | None

    def __repr__(self) -> str:
        """Say the verdict, what it rests on, and each score, in a few lines."""
        lines = [f"EvalResult: {self.verdict or 'no gates or thresholds'}"]
        lines += [f"  {_of(row)}{row['items']} items, {row['failed']} failed" for _, row in self.summary.iterrows()]
        for what, name, table in (("gate", "gate", self.gates), ("threshold", "score", self.thresholds)):
            missed = table[~table["passed"]]
            lines += [f"  {_of(row)}missed the {what} {row[name]}: {_why(row)}" for _, row in missed.iterrows()]
        for _, row in self.scores.iterrows():
            interval = "" if row[["ci_low", "ci_high"]].isna().any() else f", 95 % {row['ci_low']:.2f} to {row['ci_high']:.2f}"
            lines.append(f"  {_of(row)}{row['score']} {row['mean']:.3g} (n={row['n']}, unscored {row['unscored']}{interval})")
        return "\n".join(lines)


def _of(row: pd.Series[Any]) -> str:
    """Return the target of a row, where targets have names."""
    return f"{row['target']}: " if "target" in row.index else ""


def _why(row: pd.Series[Any]) -> str:
    """Say what a gate or a threshold missed."""
    failed = f"; target or judge failed in {row['failures']} rows" if row["failures"] else ""
    if "missed" in row.index:
        return f"{row['missed']} of {row['n']} rows{failed}"
    ends = " ".join(f"{end} {row[end]:g}" for end in ("min", "max") if not math.isnan(row[end]))
    return f"mean {row['mean']:.3g}, {ends}{failed}"
