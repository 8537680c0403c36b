"""Is a variant better? Scores of the same items under several variants, compared in pairs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from scorekit.analysis.comparison import Comparison
from scorekit.analysis.pair_tables import Scored, counts_table, key_table, row_table, slices, summary_table
from scorekit.analysis.paired import LEAST_RESAMPLES, describe_samples
from scorekit.analysis.pairing import arrange, find_baseline, is_binary, judges_of, read_margin, refuse_infinite
from scorekit.analysis.statistics import check_confidence, check_whole
from scorekit.analysis.summary import as_names, directions, pick, read_score, select_scores
from scorekit.columns import require_frame
from scorekit.errors import OptionRangeError, shown
from scorekit.pipeline import WRITES_REACH

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from scorekit.analysis.pairing import Arrangement


def compare(
    df: pd.DataFrame,
    /,
    *,
    variant: Hashable,
    item: Hashable | Sequence[Hashable],
    score: str | Sequence[str] | None = None,
    baseline: object = None,
    by: Hashable | Sequence[Hashable] | None = None,
    cluster: Hashable | Sequence[Hashable] | None = None,
    tie: float | Mapping[str, float] = 0.0,
    lower_is_better: Collection[str] = (),
    higher_is_better: Collection[str] = (),
    mixed_judges: bool = False,
    confidence: float = 0.95,
    resamples: int = 5000,
    seed: int = 0,
    input: Hashable = "input",  # noqa: A002
    output: Hashable = "output",
) -> Comparison:
    """Return how the scores of each variant differ from the baseline's on the same items, and what can be concluded from that.

    Parameters
    ----------
    df
        A scored frame in long form, one row per item and variant; not changed.
    variant
        The column that tells the variants apart: texts, numbers or categories. Rows where it is missing are counted and left out.
    item
        The column, or a list of several, that names what all variants answer, such as the question's id. Rows where any is missing are counted and
        left out. Several rows of one item and variant (repeats) count once, with the mean of their scores.
    score
        Names of scorers, such as ``"relevancy"``; by default every scorer that has scored the frame.
    baseline
        The variant that each other one is compared with; by default the first in the frame, or the first category.
    by
        A column, or a list of several, that belongs to the item, such as ``"language"``: one comparison per group, and none over all.
    cluster
        A column, or a list of several, that belongs to the item, such as ``"topic"``: items of one cluster are alike, so that clusters are drawn, and their
        signs flipped, as a whole. An item without one is a cluster of its own.
    tie
        Up to this difference in an item's scores, in their units, it is a tie: one number for all scores, or a mapping by score. The means, the interval and p
        know no ties.
    lower_is_better, higher_is_better
        Names of scores by their direction, beside the shipped ones that are better when higher. Of other scores, and of likenesses such as text_difference,
        it is said which is higher and not which is better; a win is then a higher score.
    mixed_judges
        Whether scores of one scorer may come from several judges.
    confidence
        Of the intervals, above 0 and below 1; p-values below ``1 - confidence`` count as evidence.
    resamples, seed
        Of the bootstrap, 1,000 resamples or more; the seed is that of the sign flips too.
    input, output
        The columns of texts that ``.rows`` shows; where the frame has no "input" or "output" they are missing.

    Returns
    -------
    Comparison
        ``.summary``, ``.counts``, ``.rows``, ``.regressions(n)``, ``.improvements(n)``, ``.items_needed(power=0.8)``; it shows itself with one
        sentence per comparison that says what can be concluded.

    Raises
    ------
    MissingColumnError, ColumnConflictError
        When a column is not there, or twice; when an item has several values of ``by`` or ``cluster``; when scores are of several judges.
    UnknownOptionError, OptionRangeError, ArgumentTypeError
        When an option's value is not known, out of range or of the wrong kind; when there are fewer than two variants, or no item has rows of two.

    Notes
    -----
    Only pairs tell a difference between variants from one between items: the spread of items cancels. An item counts where both sides have a score; what
    becomes of the others is in ``.counts``. Where scores are missing for a reason (one variant's long answers could not be scored), the pairs left
    are a choice, and no statistic mends that: look at ``unscored_baseline`` and ``unscored_variant``.

    ``difference`` is the variant's mean less the baseline's. Its interval is a BCa bootstrap, ``p`` a sign-flip test, ``effect`` Cohen's d_z (the mean over the
    standard deviation of the differences; about 0.2 is called small, 0.5 medium, 0.8 large). `scorekit.analysis.paired.describe_differences` tells how they are
    made, and how much too narrow the interval is for fewer than 20 pairs or clusters, which the note says. ``mcnemar_p`` is exact, for scores of 0 and one
    other number alone, without clusters; it equals ``p``.

    ``p_holm`` is ``p`` corrected for all comparisons of one score: every variant, in every group. It is not corrected for the number of scores: choose the one
    that decides before looking. A difference counts as shown (``verdict``) where ``p_holm`` is below ``1 - confidence`` and the interval excludes 0.

    References
    ----------
    B. Efron, Better bootstrap confidence intervals, JASA 82 (1987). E. Miller, Adding error bars to evals, arXiv:2411.00640 (2024). J. Cohen, Statistical
    power analysis for the behavioral sciences (1988). S. Holm, Scandinavian Journal of Statistics 6 (1979). Q. McNemar, Psychometrika 12 (1947).

    Examples
    --------
    >>> df = pd.DataFrame({
    ...     "id": ["q1", "q2", "q3", "q4"] * 2,
    ...     "prompt": ["short"] * 4 + ["long"] * 4,
    ...     "relevancy_score": [0.5, 0.0, 1.0, None, 1.0, 0.5, 1.0, 0.5],
    ... })
    >>> found = compare(df, variant="prompt", item="id")
    >>> found.summary[["score", "variant", "n_pairs", "difference", "p", "verdict"]].round(2)
           score variant  n_pairs  difference    p  verdict
    0  relevancy    long        3        0.33  0.5  unclear
    >>> found.counts[["pairs", "missing_variant", "unscored_baseline"]]
       pairs  missing_variant  unscored_baseline
    0      3                0                  1
    """
    frame = require_frame(df, "compare")
    share, resamples, seed = (
        check_confidence(confidence),
        check_whole("resamples", resamples, LEAST_RESAMPLES),
        check_whole("seed", seed, 0),
    )
    names = select_scores(frame, _names(score), "compare")
    margins = read_margin("tie", tie, names)
    better = directions(names, as_names("lower_is_better", lower_is_better), as_names("higher_is_better", higher_is_better), "compare")
    table = arrange(frame, variant, item, by, cluster)
    base = find_baseline(table.labels, baseline)
    others = [place for place in range(len(table.labels)) if place != base]
    _refuse_strangers(frame, table, base)
    scores = [_read(frame, name, table, better[name], margins[name], mixed=mixed_judges) for name in names]
    parts = [part for read in scores for other in others for part in slices(read, table, base, other)]
    found = describe_samples([(part.deltas, part.clusters) for part in parts], confidence=share, resamples=resamples, seed=seed)
    keys = key_table(frame, parts, table)
    return Comparison(
        summary=summary_table(parts, found, keys, share),
        counts=counts_table(parts, keys),
        rows=row_table(frame, table, base, others, scores, {"input": input, "output": output}),
        baseline=table.labels.tolist()[base],
        variants=tuple(label for place, label in enumerate(table.labels.tolist()) if place != base),
        scores=tuple(names),
        item=tuple(table.item),
        by=tuple(table.by),
        cluster=tuple(table.cluster),
        better=better,
        tie=margins,
        confidence=share,
        judges={read.name: read.judges for read in scores},
        left_out=pd.Series(table.left_out, name="rows", dtype="int64"),
        spreads=np.array([numbers.spread for numbers in found]),
        frame=frame.copy(deep=WRITES_REACH),
    )


def _names(score: str | Sequence[str] | None) -> list[str] | None:
    """Return the names of the scores, or None for all."""
    if score is None:
        return None
    names = as_names("score", score)
    if not names:
        raise OptionRangeError.from_value("score", score, "at least one name, or None for all")
    return names


def _read(df: pd.DataFrame, name: str, table: Arrangement, better: str, tie: float, *, mixed: bool) -> Scored:
    """Return a score by item and variant."""
    values = read_score(df, name)
    used = (table.cell >= 0) & ~np.isnan(values)
    refuse_infinite(values[used], name)
    judges = judges_of(df, name, used, mixed=mixed)
    means = table.means(values)
    return Scored(name, means, better, tie, is_binary(means), judges)


def _refuse_strangers(df: pd.DataFrame, table: Arrangement, base: int) -> None:
    """Raise where no item has rows of the baseline and of another variant."""
    there = table.rows > 0
    if (there[:, base] & (there.sum(axis=1) > 1)).any():
        return
    label, sides = table.item[0], (there[:, base], ~there[:, base])
    examples = [pick(df, label, "compare", "item").iloc[table.anywhere[side][:2]].tolist() for side in sides]
    some, more = (" and ".join(repr(shown(str(value))) for value in values) or "none" for values in examples)
    msg = (
        f"compare finds no pair: no item has rows of the baseline {shown(str(table.labels.tolist()[base]))!r} and of another variant. Its items begin "
        f"with {some}, those of the others with {more}. item= must name what all variants answer, such as the question's id."
    )
    raise OptionRangeError(msg)
