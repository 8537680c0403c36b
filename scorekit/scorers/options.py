"""Options that several measures have, checked in one way."""

from __future__ import annotations

from numbers import Real

from scorekit.errors import ArgumentTypeError, OptionRangeError


def checked_scale(scale: float) -> float:
    """Return the scale, or raise; 0 is a legal scale and gives 0."""
    return checked_number("scale", scale)


def checked_number(option: str, value: float) -> float:
    """Return a number of 0 or more.

    Raises
    ------
    ArgumentTypeError, OptionRangeError
        For anything that is no number; for one that is negative or not finite.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentTypeError.from_value(option, value, "a number")
    if not 0 <= value < float("inf"):
        raise OptionRangeError.from_value(option, value, "0 or more, and finite")
    return float(value)
