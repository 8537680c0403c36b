"""Sentences about a comparison: what can be concluded, what cannot, and what it would take."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from scorekit.analysis.power import detectable_effect, pairs_needed
from scorekit.errors import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scorekit.analysis.comparison import Comparison

POWER: Final = 0.8
MOST_DIGITS: Final = 6
MOST_TOLD: Final = 1_000_000
"""More pairs than this are not worth naming."""


def conclusion(found: Comparison, place: int) -> str:
    """Return what a row of the summary lets one conclude, or that it lets one conclude nothing and what that would take."""
    row = found.summary.iloc[place].to_dict()
    score, pairs = str(row["score"]), _pairs(found, place)
    variant, baseline = shown(str(row["variant"])), shown(str(found.baseline))
    where = ", ".join(f"{label} {shown(str(row[label]))}" for label in found.by)
    on = f"{score} for {where}" if where else score
    if not row["n_pairs"]:
        return f"Nothing can be said of {variant} and {baseline} on {on}: {row['note']}."
    if row["verdict"] != "unclear":
        claim = f"{variant} is {row['verdict']} than {baseline} on {on}"
        return f"{_shown(found, row, pairs, claim)}: {tally(row, found.better[score])}.{_noted(row)}"
    cannot = f"{pairs} cannot tell {variant} from {baseline} on {on}"
    if row["n_pairs"] == 1:
        return f"{cannot}: the difference is {_plain(row['difference'])}."
    if row["wins"] + row["losses"] == 0 and row["difference"] == 0 and math.isnan(row["ci_low"]):
        share = 1 - (1 - found.confidence) ** (1 / row["n_pairs"])
        text = f"{variant} and {baseline} have the same {on} on all {pairs}"
        elsewhere = f"; elsewhere up to {share * 100:.2g} % of items may differ ({found.confidence * 100:g} % confidence)"
        return f"{text}{'' if found.cluster else elsewhere}."
    if math.isnan(row["ci_low"]):
        return f"{cannot}: the difference is {_plain(row['difference'])}, which shows no spread.{_noted(row)}"
    margin = found.tie[score]
    if margin and max(abs(row["ci_low"]), abs(row["ci_high"])) <= margin:
        text = f"{variant} and {baseline} differ on {on} by no more than the tie margin of {margin:g}: {between(row)} over {pairs}"
        return f"{text}: {tally(row, found.better[score])}.{_noted(row)}"
    return f"{cannot}: the difference is {between(row)}{_why(found, row)}.{_needed(found, row, score, float(found.spreads[place]))}{_noted(row)}"


def sentences(found: Comparison) -> tuple[str, ...]:
    """Return what else to know about a comparison."""
    level = f"{found.confidence * 100:g} % interval"
    texts = [
        f"A difference is the variant's mean less that of {shown(str(found.baseline))}, over items scored on both sides, with its {level}."
    ]
    if len(found.variants) > 1 or found.by:
        texts.append("p_holm is corrected for all comparisons of a score; the intervals are not.")
    if len(found.scores) > 1:
        texts.append(f"{len(found.scores)} scores were looked at, and p is not corrected for that: name the one that decides beforehand.")
    texts += [
        f"{score} has no known direction, so that a win is a higher score; lower_is_better= or higher_is_better= gives it one."
        for score in found.scores
        if not found.better[score]
    ]
    texts += [f"{count:,} rows {what} are left out." for what, count in found.left_out.items() if count]
    lost = int(found.counts[["missing_baseline", "missing_variant"]].to_numpy().sum(axis=1).max())
    blank = int(found.counts[["unscored_baseline", "unscored_variant", "unscored_both"]].to_numpy().sum(axis=1).max())
    told = [
        f"up to {count:,} items {text}" for count, text in ((lost, "without a partner"), (blank, "unscored on one side or both")) if count
    ]
    if told:
        texts.append(
            f"A comparison leaves out {' and '.join(told)}. Where they are missing for a reason, the pairs left are a choice; see .counts."
        )
    if found.counts["duplicates"].any():
        texts.append("Several rows of one item and variant count once, with the mean of their scores.")
    texts += [f"{score} was judged by {', '.join(map(shown, names))}." for score, names in found.judges.items() if names]
    return tuple(texts)


def _shown(found: Comparison, row: Mapping[Any, Any], pairs: str, claim: str) -> str:
    """Return the sentence of a difference that is shown."""
    size, word = abs(row["difference"]), "higher" if row["difference"] > 0 else "lower"
    if math.isnan(row["ci_low"]):
        by = f"{_plain(size)} {'over' if found.cluster else 'on every one of'} {pairs}"
    else:
        ends = sorted((abs(row["ci_low"]), abs(row["ci_high"])))
        by = f"{between({'difference': size, 'ci_low': ends[0], 'ci_high': ends[1]})} over {pairs}"
    direction = found.better[str(row["score"])]
    turned = f" ({word} is {'better' if row['verdict'] == 'better' else 'worse'})" if direction == "lower" else ""
    aimless = "" if direction else "; neither is known to be better"
    margin = found.tie[str(row["score"])]
    within = f", within the tie margin of {margin:g}" if max(size, abs(row["ci_low"]), abs(row["ci_high"])) <= margin else ""
    return f"{claim} by {by}{turned}{within}{aimless}"


def tally(row: Mapping[Any, Any], better: str) -> str:
    """Return how many items are won, tied and lost, or of a score without a direction higher and lower.

    Examples
    --------
    >>> tally({"wins": 5, "ties": 0, "losses": 2}, "higher")
    '5 won, 0 tied, 2 lost'
    """
    win, loss = ("won", "lost") if better else ("higher", "lower")
    return f"{row['wins']:,} {win}, {row['ties']:,} tied, {row['losses']:,} {loss}"


def _why(found: Comparison, row: Mapping[Any, Any]) -> str:
    """Return why a difference whose interval excludes 0, or whose p is small, is still not taken for shown."""
    level = 1 - found.confidence
    excludes = row["ci_low"] > 0 or row["ci_high"] < 0
    if excludes and row["p"] < level:
        return f", and p is {p_text(row['p_holm'])} when corrected for all comparisons of the score"
    if excludes:
        return f", and chance gives one as large too often (p {p_text(row['p'])})"
    return ""


def _needed(found: Comparison, row: Mapping[Any, Any], score: str, spread: float) -> str:
    """Return which difference so many pairs would find, and how many would find the one seen."""
    alpha = found.level(score)
    if not spread > 0:
        return ""
    least = detectable_effect(row["n_pairs"], power=POWER, alpha=alpha) * spread
    text = f" So many pairs find one of {_plain(least)} in {POWER * 100:.0f} % of cases"
    size = abs(row["difference"])
    items = pairs_needed(size / spread, power=POWER, alpha=alpha)
    if items is None or not row["n_pairs"] < items <= MOST_TOLD:
        return f"{text}."
    return f"{text}; one of {_plain(size)}, as seen, needs about {_round(items):,} pairs."


def _noted(row: Mapping[Any, Any]) -> str:
    """Return a row's note as a sentence."""
    return f" Note: {row['note']}." if row["note"] else ""


def between(row: Mapping[Any, Any]) -> str:
    """Return a difference with its interval, with as many digits as show on which side of 0 the ends are."""
    ends = row["ci_low"], row["ci_high"]
    digits = _digits(ends[1] - ends[0])
    while digits < MOST_DIGITS and any(end and not float(f"{end:.{digits}f}") for end in ends):
        digits += 1
    mean, low, high = (_number(value, digits) for value in (row["difference"], *ends))
    return f"{mean} ({low} to {high})"


def _digits(width: float) -> int:
    """Return how many decimals show two digits of a width.

    Examples
    --------
    >>> _digits(0.1), _digits(0.041), _digits(30.0), _digits(0.0)
    (2, 3, 0, 2)
    """
    return min(max(1 - math.floor(math.log10(width)), 0), MOST_DIGITS) if 0 < width < math.inf else 2


def _number(value: float, digits: int) -> str:
    """Return a number with so many decimals, and no sign before a 0."""
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if not float(text.replace(",", "")) else text


def _plain(value: float) -> str:
    """Return a number that has no interval, with two digits."""
    return _number(value, _digits(abs(value)))


def p_text(value: float) -> str:
    """Return a p-value.

    Examples
    --------
    >>> p_text(0.0432), p_text(0.0001)
    ('0.043', 'below 0.001')
    """
    return "below 0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"  # noqa: PLR2004


def _round(count: int) -> int:
    """Return a count with two digits.

    Examples
    --------
    >>> _round(1234), _round(87)
    (1200, 87)
    """
    return round(count, -max(len(str(count)) - 2, 0))


def _pairs(found: Comparison, place: int) -> str:
    """Return how many pairs, and in how many clusters."""
    count, clusters = int(found.summary["n_pairs"].iloc[place]), int(found.counts["clusters"].iloc[place])
    told = "1 pair" if count == 1 else f"{count:,} pairs"
    return f"{told} in {clusters:,} cluster{'' if clusters == 1 else 's'}" if found.cluster and count else told
