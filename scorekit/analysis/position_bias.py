"""position_bias: how often the place where an output was shown decided which of two a judge preferred."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scorekit.analysis.rates import wilson_interval
from scorekit.analysis.statistics import check_confidence
from scorekit.columns import require, require_frame
from scorekit.errors import ArgumentTypeError

if TYPE_CHECKING:
    import pandas as pd


class PositionBias(NamedTuple):
    """How often the place decided.

    Attributes
    ----------
    first
        Share of the rows in which the output shown first won in both orders; NaN without rows.
    ci_low, ci_high
        The ends of Wilson's interval of ``first``.
    last
        Share of the rows in which the output shown last won in both orders.
    agreed
        Share of the rows in which both orders gave the same verdict.
    n
        Rows with a verdict in both orders.
    """

    first: float
    ci_low: float
    ci_high: float
    last: float
    agreed: float
    n: int


def position_bias(df: pd.DataFrame, /, name: str = "preference", *, confidence: float = 0.95) -> PositionBias:
    """Return how often the place where an output was shown decided, in a frame that `score_preference` has scored.

    A judge without such a bias gives ``first`` and ``last`` alike; both are small where it is steady. Where ``first`` is large,
    preferences of one order alone would be those of the place; asked in both orders they became ties.

    Parameters
    ----------
    df
        A scored frame; not changed.
    name
        The scorer's name.
    confidence
        Of the interval, above 0 and below 1.

    Returns
    -------
    PositionBias
        Rows whose outputs are equal, or that have no score, do not count; a row that was asked ``repeats=`` times counts once.

    Raises
    ------
    MissingColumnError
        When the frame has no such verdicts.
    ArgumentTypeError, OptionRangeError
        When ``name`` is no text; when ``confidence`` is not between 0 and 1.

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame({"preference_first_order": ["a", "a", "b", "tie"], "preference_second_order": ["b", "a", "b", "tie"]})
    >>> bias = position_bias(df)
    >>> bias.first, bias.last, bias.agreed, bias.n
    (0.25, 0.0, 0.75, 4)
    """
    require_frame(df, "position_bias")
    check_confidence(confidence)
    if not isinstance(name, str):
        raise ArgumentTypeError.from_value("name", name, "a scorer's name")
    name = name.removesuffix("_score")
    first, second = (require(df, f"{name}_{order}_order", "position_bias") for order in ("first", "second"))
    there = first.notna() & second.notna()
    first, second = first[there].astype(object), second[there].astype(object)
    n = len(first)
    counts = [int(hits.sum()) for hits in ((first == "a") & (second == "b"), (first == "b") & (second == "a"), first == second)]
    first_share, last_share, agreed = (count / n if n else float("nan") for count in counts)
    low, high = wilson_interval(first_share, n, confidence=confidence)
    return PositionBias(first_share, float(low), float(high), last_share, agreed, n)
