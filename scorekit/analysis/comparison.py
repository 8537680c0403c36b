"""What `compare` found: tables, the items that moved, how many items it would take, and sentences."""

from __future__ import annotations

import html
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from scorekit.analysis.conclusions import conclusion, sentences
from scorekit.analysis.pairing import FATES, read_margin
from scorekit.analysis.power import many_pairs_needed
from scorekit.analysis.statistics import check_whole
from scorekit.errors import OptionRangeError, UnknownOptionError
from scorekit.texts import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

MOST_ROWS: Final = 60
MOST_SENTENCES: Final = 20
"""So many comparisons are told in sentences; the tables hold all."""


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """What `compare` found; shows itself in a notebook, escaped.

    Attributes
    ----------
    summary
        One row per score, variant and group, on a fresh index: ``score`` (string), ``variant``, the columns of ``by``, and

        - ``n_pairs`` (int64): items with a score on both sides; the means are over these.
        - ``mean_baseline``, ``mean_variant``, ``difference`` (float64, variant less baseline), ``ci_low``, ``ci_high``: in units of the score.
        - ``p``, ``p_holm``, ``mcnemar_p`` (float64): two-sided. ``mcnemar_p`` is NaN unless all scores are 0 or one other number.
        - ``effect`` (float64): Cohen's d_z, the mean of the differences over their standard deviation.
        - ``wins``, ``ties``, ``losses`` (int64): items in which the variant is better, as good within the margin, or worse.
        - ``verdict`` (string): ``"better"``, ``"worse"``; ``"higher"``, ``"lower"`` for a score without a direction; or ``"unclear"``.
        - ``note`` (string): why a number is missing or not to be trusted; empty elsewhere.
    counts
        What became of the items, in rows as the summary's: ``items`` (those that either side has) is the sum of ``pairs``, ``missing_baseline``,
        ``missing_variant`` (no row on that side), ``unscored_baseline``, ``unscored_variant`` and ``unscored_both``; ``duplicates`` is how many rows went into
        the mean of an item beyond its first, ``clusters`` how many clusters the pairs are in, without clusters each in one (all int64).
    rows
        One row per item and compared variant, items in their order in the frame: the columns of item, by and cluster; ``variant``; ``input``;
        ``output_baseline``, ``output_variant``; per score ``<score>_baseline``, ``<score>_variant``, ``<score>_delta`` (float64), ``<score>_outcome`` (string:
        win, tie, loss, missing without a pair), ``<score>_reason_baseline``, ``_variant``, ``<score>_error_baseline``, ``_variant``; ``rows_baseline``,
        ``rows_variant`` (int64: how many rows the side has, 0 where it is missing); ``position_baseline``, ``position_variant`` (Int64: the first of them in
        the frame, for ``df.iloc``). Texts are those of that first row.
    baseline, variants
        The variant compared with, and those that are compared with it.
    scores
        Names of the scores.
    item, by, cluster
        The columns that were given.
    better
        The direction of each score: ``"higher"``, ``"lower"``, or ``""`` where it has none.
    tie
        The margin of each score.
    confidence
        Of the intervals.
    judges
        Who gave each score, where the frame says so.
    left_out
        Rows without a variant, and rows without an item.
    spreads
        For `items_needed`: the standard deviation of the differences of each row of the summary; with clusters, that of as many independent pairs.
    frame
        What was compared, for views that show a row in full.
    """

    summary: pd.DataFrame
    counts: pd.DataFrame
    rows: pd.DataFrame
    baseline: Any
    variants: tuple[Any, ...]
    scores: tuple[str, ...]
    item: tuple[Hashable, ...]
    by: tuple[Hashable, ...]
    cluster: tuple[Hashable, ...]
    better: dict[str, str]
    tie: dict[str, float]
    confidence: float
    judges: dict[str, tuple[str, ...]]
    left_out: pd.Series[int]
    spreads: NDArray[np.float64]
    frame: pd.DataFrame

    @property
    def conclusions(self) -> tuple[str, ...]:
        """Return one sentence per row of the summary: what can be concluded, or that nothing can and what it would take."""
        return tuple(conclusion(self, place) for place in range(len(self.summary)))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return in sentences what else to know: rows left out, judges mixed, several scores tested."""
        return sentences(self)

    def level(self, score: str) -> float:
        """Return the level at which one comparison of a score is planned: ``1 - confidence`` shared by all that Holm's correction counts.

        Raises
        ------
        UnknownOptionError
            When there is no such score.
        """
        tested = int(self.summary.loc[self.summary["score"] == self._named(score), "p"].notna().sum())
        return (1 - self.confidence) / max(tested, 1)

    def items_needed(self, power: float = 0.8, difference: float | Mapping[str, float] | None = None) -> pd.DataFrame:
        """Return how many items it would take to find a difference.

        Parameters
        ----------
        power
            How often it is to be found where it is there, above the level of the test and below 1.
        difference
            The least difference that matters, in units of the score: one number for all, or a mapping by score. None takes the one that was seen; that
            answers "how many items would confirm this one, if it is as large as it looks", and not "have I enough": a difference seen among few pairs
            is mostly chance.

        Returns
        -------
        pandas.DataFrame
            ``score``, ``variant``, the columns of ``by``, ``difference`` (float64) and ``items`` (Int64): pairs with a score on both sides. Missing where all
            differences seen are equal, so that nothing is known of their spread, and where the difference is 0 or would take over a hundred million.

        Raises
        ------
        ArgumentTypeError, OptionRangeError, UnknownOptionError
            When an option is of the wrong kind or out of range, or names a score that was not compared.

        Notes
        -----
        Of a paired t test, two-sided, with the spread of the differences seen, at a level of ``1 - confidence`` divided by the number of comparisons
        that Holm's correction counts. With clusters, the spread is that of the clusters' means, so that new items are taken to come in clusters alike.
        """
        keys = self.summary[["score", "variant", *self.by]]
        wanted = None if difference is None else read_margin("difference", difference, self.scores)
        if wanted is not None and not any(wanted.values()):
            raise OptionRangeError.from_value("difference", difference, "above 0, in units of the score")
        names = self.summary["score"].to_numpy(dtype=object)
        sizes = self.summary["difference"].abs().to_numpy(dtype=np.float64, copy=True)
        items = np.full(len(names), np.nan)
        for score in self.scores:
            own = names == score
            if wanted is not None:
                sizes[own] = wanted[score]
            effects = np.divide(sizes[own], self.spreads[own], out=np.full(int(own.sum()), np.nan), where=self.spreads[own] > 0)
            items[own] = many_pairs_needed(effects, power=power, alpha=self.level(score))
        return keys.assign(difference=sizes, items=pd.Series(items, index=keys.index).astype("Int64"))

    def regressions(self, n: int = 10, *, score: str | None = None, variant: object = None) -> pd.DataFrame:
        """Return the rows that lose most against the baseline, the worst first.

        Parameters
        ----------
        n
            How many at most.
        score
            By which score; the first by default. Of a score without a direction the largest falls.
        variant
            Of which variant alone; of all by default.

        Returns
        -------
        pandas.DataFrame
            Of ``.rows`` the losses, under the index that they have there, with the columns of the items, the texts and this score.

        Raises
        ------
        ArgumentTypeError, OptionRangeError, UnknownOptionError
            When ``n`` is no whole number or below 1; when there is no such score or variant.
        """
        return self._moved("loss", n, score, variant)

    def improvements(self, n: int = 10, *, score: str | None = None, variant: object = None) -> pd.DataFrame:
        """Return the rows that gain most against the baseline, the best first; otherwise as `regressions`."""
        return self._moved("win", n, score, variant)

    def _named(self, score: str) -> str:
        """Return the name of a score, without the ending of its column."""
        name = score if score in self.scores else str(score).removesuffix("_score")
        if name not in self.scores:
            raise UnknownOptionError.from_value("score", score, self.scores)
        return name

    def _moved(self, outcome: str, n: int, score: str | None, variant: object) -> pd.DataFrame:
        """Return the rows with the largest differences that have one outcome."""
        most = check_whole("n", n, 1)
        name = self._named(self.scores[0] if score is None else score)
        chosen = (self.rows[f"{name}_outcome"] == outcome).to_numpy(dtype=bool, na_value=False)
        if variant is not None:
            if variant not in self.variants:
                raise UnknownOptionError.from_value("variant", variant, self.variants)
            chosen &= (self.rows["variant"] == variant).to_numpy(dtype=bool, na_value=False)
        places = np.flatnonzero(chosen)
        sizes = self.rows[f"{name}_delta"].abs().to_numpy()[places]
        numbers = [f"{name}_{part}" for part in ("baseline", "variant", "delta")]
        reasons = [f"{name}_reason_{side}" for side in ("baseline", "variant")]
        keys = list(dict.fromkeys([*self.item, *self.by, *self.cluster, "variant", *numbers, "input"]))
        return self.rows.iloc[places[np.argsort(-sizes, kind="stable")][:most]][[*keys, "output_baseline", "output_variant", *reasons]]

    def __repr__(self) -> str:
        """Return the sentences and the tables as text."""
        told, more = self._told()
        lines = [*(conclusion(self, place) for place in told), *more, *(f"- {text}" for text in self.remarks)]
        return without_surrogates(
            "\n\n".join(["\n".join(lines), *(table.to_string(index=False, max_rows=MOST_ROWS) for table in self._tables())])
        )

    def _repr_html_(self) -> str:
        told, more = self._told()
        clear = (self.summary["verdict"] != "unclear").tolist()
        lines = [("<li><b>{}</b></li>" if clear[place] else "<li>{}</li>").format(html.escape(conclusion(self, place))) for place in told]
        lines += [f"<li>{html.escape(text)}</li>" for text in more]
        notes = "".join(f"<li>{html.escape(text)}</li>" for text in self.remarks)
        tables = "".join(table.to_html(index=False, max_rows=MOST_ROWS) for table in self._tables())
        return without_surrogates(f"<div><ul>{''.join(lines)}</ul><ul style='color:#5b6470'>{notes}</ul>{tables}</div>")

    def _told(self) -> tuple[list[int], list[str]]:
        """Return which comparisons are told in sentences, and one sentence on those that are not."""
        pairs = self.summary["n_pairs"].tolist()
        able = [place for place, n in enumerate(pairs) if n > 1] if self.by else list(range(len(pairs)))
        more = []
        if few := len(pairs) - len(able):
            more.append(f"{few:,} more comparisons have fewer than two pairs and say nothing.")
        if left := len(able) - MOST_SENTENCES:
            more += [f"{left:,} more comparisons are in .summary."] if left > 0 else []
        return able[:MOST_SENTENCES], more

    def _tables(self) -> list[pd.DataFrame]:
        """Return the tables to show, rounded, without columns that say nothing."""
        summary = self.summary.round(4).dropna(axis=1, how="all")
        if (self.summary["p_holm"].dropna() == self.summary["p"].dropna()).all():
            summary = summary.drop(columns="p_holm", errors="ignore")
        if (self.summary["note"] == "").all():
            summary = summary.drop(columns="note")
        counts = self.counts
        idle = [name for name in (*FATES[1:], "duplicates") if not counts[name].any()]
        return [summary, counts.drop(columns=idle if self.cluster else [*idle, "clusters"])]
