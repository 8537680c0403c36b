"""``scorekit score --fail-under NAME=NUMBER --max NAME=NUMBER``: what the means of a scored file must reach."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scorekit.errors import ArgumentTypeError, OptionRangeError, UnknownOptionError, shown
from scorekit.evals.gates import ROUNDING, Bounds
from scorekit.terminal import apart

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd


def add_bounds(parser: argparse.ArgumentParser) -> None:
    """Add the options that bound a mean."""
    for flag, end in (("--fail-under", "below"), ("--max", "above")):
        parser.add_argument(
            flag,
            action="append",
            default=[],
            metavar="NAME=NUMBER",
            help=f"exit with 1 where the mean of a scorer's scored rows is {end} this, or no row is scored; may be given several times",
        )


def read_bounds(fail_under: Iterable[str], most: Iterable[str], names: Sequence[str]) -> dict[str, Bounds]:
    """Return the bounds of each score from the words of ``--fail-under`` and ``--max``.

    Raises
    ------
    UnknownOptionError, ArgumentTypeError, OptionRangeError
        When a word is not NAME=NUMBER, a name is not among the scorers or is given twice, or nothing can lie between the bounds.
    """
    ends: dict[str, dict[str, float]] = {}
    for flag, end, words in (("--fail-under", "min", fail_under), ("--max", "max", most)):
        for word in words:
            given, equals, text = word.partition("=")
            if not equals or not given:
                msg = f"{flag} {shown(word)!r} is not NAME=NUMBER, such as relevancy=0.7."
                raise UnknownOptionError(msg)
            name = given if given in names else given.removesuffix("_score")
            if name not in names:
                raise UnknownOptionError.from_value(f"{flag}: the scorer", shown(given), names)
            if end in ends.setdefault(name, {}):
                msg = f"{flag} is given twice for {name!r}: keep one."
                raise OptionRangeError(msg)
            ends[name][end] = _number(f"{flag} {name}", text)
    for name, bound in ends.items():
        if bound.get("min", -math.inf) > bound.get("max", math.inf):
            msg = f"--fail-under {name}={bound['min']:g} is above --max {name}={bound['max']:g}: no mean can lie between them."
            raise OptionRangeError(msg)
    return {name: Bounds(bound.get("min", -math.inf), bound.get("max", math.inf)) for name, bound in ends.items()}


def _number(option: str, text: str) -> float:
    """Return a bound."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        msg = f"{option}={shown(text)!r} is not a finite number."
        raise ArgumentTypeError(msg)
    return number


def missed_bounds(summary: pd.DataFrame, bounds: Mapping[str, Bounds]) -> list[str]:
    """Return a line per bound that a mean misses; a score of no row misses each of its bounds.

    Parameters
    ----------
    summary
        What `summarize` gives, without groups.
    bounds
        Which mean must lie between what, the ends included.
    """
    lines = []
    for name, bound in bounds.items():
        row = summary.loc[summary["score"] == name].iloc[0]
        mean, rows = float(row["mean"]), f"n={row['n']:,}, {row['unscored']:,} unscored"
        for flag, end, missed, word in (
            ("--fail-under", bound.least, not mean >= bound.least - ROUNDING, "below"),
            ("--max", bound.most, not mean <= bound.most + ROUNDING, "above"),
        ):
            if math.isfinite(end) and missed:
                found = "no row has a score" if math.isnan(mean) else f"its mean {apart(mean, end)} is {word} {end:g}"
                lines.append(f"{name} misses {flag}: {found} ({rows})")
    return lines
