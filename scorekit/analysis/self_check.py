"""self_check: does a judged scorer give the same row the same score twice?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from scorekit.columns import owned_columns, read_steps, require_frame, score_names
from scorekit.errors import ArgumentTypeError, OptionRangeError
from scorekit.run import parameters_of, unwrapped
from scorekit.scorer import Scorer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scorekit.run import ScorerLike
    from scorekit.scorer import JudgeLike


def self_check(
    scorer: ScorerLike,
    df: pd.DataFrame,
    *,
    rows: int = 50,
    repeats: int = 3,
    judge: JudgeLike | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return how far a judged scorer agrees with itself on a sample of rows: its test-retest reliability.

    Parameters
    ----------
    scorer
        A judged scorer: a public function, a partial of one, or a `Scorer`.
    df
        The rows to draw from.
    rows
        How many rows to draw without replacement; all where the frame has fewer.
    repeats
        How often to ask about each, 2 or more. Repeats are asked separately: one never takes another's cached reply.
    judge
        Whom to ask, where the scorer has none bound.
    seed
        Of the draw.

    Returns
    -------
    pandas.DataFrame
        One row per score, index ``score``:

        - ``rows``, ``repeats`` (int64), ``unscored`` (int64): rows with fewer than two scores, which the figures leave out;
        - ``identical`` (float64, 0 to 1): share of rows whose repeats all gave the same score;
        - ``mean_difference`` (float64): mean absolute difference between two repeats of a row, in units of the score;
        - ``noise_sd`` (float64): standard deviation of one score about its row's mean;
        - ``icc`` (float64, at most 1): intraclass correlation ICC(1,1), the share of the variance of scores that lies between rows and not between
          repeats. NaN where all scores are equal. Above 0.9 is usually called excellent, below 0.5 poor.

    Raises
    ------
    OptionRangeError, ArgumentTypeError
        For fewer than two repeats; for a scorer that takes no judge.

    Notes
    -----
    Cost: ``rows * repeats`` times what the scorer costs a row. A difference between two variants that is smaller than ``noise_sd`` over the root of
    the number of rows is not to be told from the judge's own noise.

    References
    ----------
    ICC(1,1): P. E. Shrout and J. L. Fleiss, Intraclass correlations: uses in assessing rater reliability, Psychological Bulletin 86 (1979), here
    with rows of unequal numbers of repeats (k0 in place of k).

    Examples
    --------
    >>> from scorekit import LocalJudge, score_relevancy
    >>> df = pd.DataFrame({"input": ["Why is the sky blue?"] * 2, "output": ["Air scatters blue light.", "Buy our shoes!"]})
    >>> self_check(score_relevancy, df, judge=LocalJudge())["identical"].tolist()
    [1.0]
    """
    require_frame(df, "self_check")
    if not (isinstance(repeats, int) and repeats >= 2):  # noqa: PLR2004  (agreement needs two)
        raise OptionRangeError.from_value("repeats", repeats, "a whole number from 2")
    results = [column for name in score_names(df) for column in owned_columns(df, name)]  # they must not be mistaken for those of now
    sample = df.sample(min(rows, len(df)), random_state=seed).drop(columns=results)
    function, _ = unwrapped(scorer)
    if not (function.prompts if isinstance(function, Scorer) else "repeats" in parameters_of(function)):
        msg = "self_check asks a judge again and again, but this scorer takes no repeats=: it is not a judged one."
        raise ArgumentTypeError(msg)
    settings: dict[str, Any] = {"repeats": repeats} if judge is None else {"repeats": repeats, "judge": judge}
    scored = scorer(sample, **settings)
    found = {}
    for name in [name for name in score_names(scored) if f"{name}_repeats" in scored.columns]:
        lists = [row if row is not None else [None] * repeats for row in read_steps(scored, f"{name}_repeats")]
        scores = np.array(lists, dtype=np.float64).reshape(len(scored), repeats)
        found[name] = {"rows": len(scored), "repeats": repeats, **_reliability(scores)}
    return pd.DataFrame.from_dict(found, orient="index").rename_axis("score").astype({"unscored": "int64"})


def _reliability(scores: NDArray[np.float64]) -> dict[str, float]:
    """Return the figures of reliability of scores, a row per row and a column per repeat; NaN where there is no score."""
    counts = (~np.isnan(scores)).sum(axis=1)
    kept, counts = scores[counts > 1], counts[counts > 1]
    unscored = len(scores) - len(kept)
    if not len(kept):
        return dict.fromkeys(("identical", "mean_difference", "noise_sd", "icc"), float("nan")) | {"unscored": unscored}
    means = np.nanmean(kept, axis=1)
    within = float(np.nansum((kept - means[:, None]) ** 2)) / float((counts - 1).sum())
    pairs = np.abs(kept[:, :, None] - kept[:, None, :])[:, *np.triu_indices(kept.shape[1], 1)]
    icc = float("nan")
    if len(kept) > 1:
        total = float(counts.sum())
        grand = float(np.nansum(kept)) / total
        between = float((counts * (means - grand) ** 2).sum()) / (len(kept) - 1)
        per_row = (total - float((counts**2).sum()) / total) / (len(kept) - 1)
        spread = between + (per_row - 1) * within
        icc = (between - within) / spread if spread > 0 else float("nan")
    return {
        "unscored": unscored,
        "identical": float((np.nanmax(kept, axis=1) == np.nanmin(kept, axis=1)).mean()),
        "mean_difference": float(np.nanmean(np.nanmean(pairs, axis=1))),
        "noise_sd": within**0.5,
        "icc": icc,
    }
