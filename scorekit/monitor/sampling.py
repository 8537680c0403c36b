"""Sampling: which runs a scorer is asked about, decided by the run's id alone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from scorekit.analysis.statistics import check_real
from scorekit.errors import ArgumentTypeError, OptionRangeError
from scorekit.monitor.keys import LONGEST

if TYPE_CHECKING:
    from scorekit.run import ScorerLike


@dataclass(frozen=True)
class Sampled:
    """A scorer and how often `live` asks it.

    Attributes
    ----------
    scorer
        As in `score`.
    rate
        The share of runs that are scored, 0 (none) to 1 (all).
    version
        Kept beside every score, so that a scorer that changed can be told from what it was; None for none.

    Raises
    ------
    ArgumentTypeError, OptionRangeError
        When it is made: a scorer that cannot be called, a rate that is no number or outside 0 to 1, a version that is no text.
    """

    scorer: ScorerLike
    rate: float
    version: str | None = None

    def __post_init__(self) -> None:
        """Check what was given; a rate becomes a float."""
        if isinstance(self.scorer, Sampled):
            raise ArgumentTypeError.from_value("scorer", self.scorer, "a scorer", "Say the rate once: sampled(score_tone, rate=0.5).")
        if not callable(self.scorer):
            raise ArgumentTypeError.from_value(
                "scorer", self.scorer, "a callable from a frame to a frame", "Pass a function such as score_tone."
            )
        rate = check_real("rate", self.rate)
        if not 0 <= rate <= 1:  # NaN is not either
            raise OptionRangeError.from_value("rate", self.rate, "a number from 0 (never) to 1 (always)")
        object.__setattr__(self, "rate", rate)
        if self.version is not None:
            check_name("version", self.version)


def sampled(scorer: ScorerLike, /, rate: float, *, version: str | None = None) -> Sampled:
    """Return a scorer that `live` asks about a share of the runs.

    Parameters
    ----------
    scorer
        As in `score`: a public function, a partial of one, a `Scorer`, a callable of your own.
    rate
        The share of runs that are scored, 0 (none) to 1 (all). Which ones is decided by the run's id, see `share_of`: scorers of one rate
        score the same runs, and what a lower rate picks a higher one picks too.
    version
        A text that is kept beside every score. The shipped measures have scorekit's version where none is given.

    Returns
    -------
    Sampled
        A value that compares and prints, and pickles where its scorer does.

    Raises
    ------
    ArgumentTypeError, OptionRangeError
        At once: a rate that is no number, NaN, or outside 0 to 1; a scorer that cannot be called.

    Examples
    --------
    >>> from scorekit import score_tone
    >>> sampled(score_tone, rate=0.5).rate
    0.5
    >>> sampled(score_tone, rate=1.5)
    Traceback (most recent call last):
    scorekit.errors.OptionRangeError: rate=1.5 is out of range: it must be a number from 0 (never) to 1 (always).
    """
    return Sampled(scorer, rate, version)


def share_of(run_id: str) -> float:
    r"""Return the number that stands for a run in sampling, 0 or more and below 1: a run is picked where it is less than the rate.

    The first 6 bytes, big-endian, of the SHA-256 of the id in UTF-8, over 2**48. Lone surrogates are encoded as if they were characters.

    References
    ----------
    Mastra samples live runs by the same rule.

    Examples
    --------
    >>> share_of("run-0")
    0.5650173173242194
    >>> 0 <= share_of("a lone surrogate: \ud800") < 1
    True
    """
    return int.from_bytes(sha256(run_id.encode("utf-8", "surrogatepass")).digest()[:6], "big") / 281474976710656


class Picks:
    """Which of several scorers sampling picks, worked out once for every possible share.

    Parameters
    ----------
    rates
        The rate of each scorer.

    Examples
    --------
    >>> Picks([0.5, 1.0, 0.6]).of("run-0")
    (1, 2)
    """

    __slots__ = ("_picked", "_rates", "_same")

    def __init__(self, rates: Sequence[float]) -> None:
        """Put the rates in order."""
        self._rates = sorted(rates)
        self._picked = [tuple(place for place, rate in enumerate(rates) if rate > least) for least in (-1.0, *self._rates)]
        self._same = self._picked[bisect_right(self._rates, 0.0)] if set(rates) <= {0.0, 1.0} else None

    def of(self, run_id: str) -> tuple[int, ...]:
        """Return the positions of the scorers that are picked for a run."""
        if self._same is not None:
            return self._same
        return self._picked[bisect_right(self._rates, share_of(run_id))]


def check_name(what: str, name: object) -> str:
    """Return a name that the store can keep as text; raise for anything else."""
    if not isinstance(name, str):
        raise ArgumentTypeError.from_value(what, name, "text")
    if not 0 < len(name) <= LONGEST:
        shown = name if len(name) < LONGEST else f"{name[:40]}…"
        raise OptionRangeError.from_value(what, shown, f"1 to {LONGEST} characters")
    return str.__str__(name)
