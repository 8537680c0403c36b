"""How the mean of a score moves over time, or from run to run, and where it has left what it was in a reference window."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Hashable, Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
import pandas as pd

from scorekit.analysis.paired import SAME, holm
from scorekit.analysis.statistics import check_confidence, check_whole, mean_interval
from scorekit.analysis.summary import asked_rows, group_rows, pick, read_score, select_scores, summarize
from scorekit.columns import require, require_frame
from scorekit.errors import ArgumentTypeError, MissingColumnError, OptionRangeError, UnknownOptionError, listed, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

By = Literal["hour", "day", "week", "run"]
BUCKETS: Final = ("hour", "day", "week", "run")
FIRST_SHARE: Final = 4
"""One bucket of so many is in the reference window where none is named."""

LEAST_ROWS: Final = 2
"""A mean of fewer rows has no spread to judge it by."""

DAY: Final = 86_400_000_000
"""In microseconds."""

LATEST: Final = np.iinfo(np.int64).max


def trend(
    df: pd.DataFrame,
    /,
    *,
    by: By = "day",
    scores: str | Sequence[str] | None = None,
    time: Hashable = "created_at",
    reference: object = None,
    confidence: float = 0.95,
    zone: str | dt.tzinfo = "UTC",
) -> pd.DataFrame:
    """Return the mean of every score per hour, day, week or run, and whether it has drifted from that of a reference window.

    Parameters
    ----------
    df
        A scored frame with a column of times, such as `ScoreStore.read` gives; not changed.
    by
        ``"hour"``, ``"day"``, ``"week"`` (from Monday) as the clocks of ``zone`` show them, or ``"run"``: the values of the column "run", in the order of
        their first time. A day on which the clocks change has 23 or 25 hours; the hour that they show twice is two buckets.
    scores
        Names of scorers, such as ``"relevancy"``; by default every scorer that has scored the frame.
    time
        The column of times: datetimes, or ISO 8601 texts; those without a zone are UTC. With ``by="run"`` it may be None: the runs then
        come in the order of their rows.
    reference
        The buckets that the others are compared with. None takes the first quarter of them, one at least; a whole number takes so many of the first. Both
        count the buckets in which the score has scored rows. ``(since, until)`` takes the buckets that begin at ``since`` or later and before ``until``
        (ISO texts or datetimes, in ``zone`` where they name none; None leaves an end open). With ``by="run"``: a run, or a list of runs
        (``[3]`` for a run that is called 3).
    confidence
        Of the intervals, above 0 and below 1; a bucket has drifted where its corrected p is below ``1 - confidence``.
    zone
        Whose clocks make the buckets, such as ``"Europe/Berlin"``.

    Returns
    -------
    pandas.DataFrame
        One row per score and bucket in which it has rows, in the order of time, on a fresh index:

        - ``score`` (string), ``bucket`` (datetime64[us, zone]: its start; or the run, with the dtype of its column).
        - ``mean``, ``ci_low``, ``ci_high`` (float64), ``n``, ``unscored`` (int64), ``errors`` (string): as in `summarize`. A row that has neither a score nor
          an error code was not put to that scorer (it was sampled at another rate) and does not count, where the frame has the scorer's error column.
        - ``reference`` (bool): whether the bucket is in the reference window.
        - ``difference`` (float64): the bucket's mean less the mean of all scored rows of the reference window.
        - ``p``, ``p_holm`` (float64): of the test that the bucket's rows are like those of the reference window, two-sided, and with Holm's correction for
          all tested buckets of the score.
        - ``drift`` (bool): whether ``p_holm`` is below ``1 - confidence``.

        Buckets of the window itself are not tested: p is NaN. So it is where fewer than two rows are scored, in the bucket or the window, or one is
        infinite. Rows without a time, or without a run, are a last row of their own per score, with the bucket missing; they are counted and not compared.

    Raises
    ------
    MissingColumnError, ColumnConflictError
        When a score or the column of times or runs is not there, or is there twice.
    ArgumentTypeError
        When a score holds no numbers, a time is none, or an option is of the wrong kind.
    OptionRangeError, UnknownOptionError
        When an option is out of range, ``by`` or ``zone`` is not known, or ``reference`` names a run that is not there or a window without buckets.

    Notes
    -----
    **The test.** p is that of Welch's t test or that of Student's, whichever is larger. Scores pile up at the ends of their scale, so that a small bucket often
    happens to have hardly any spread; Welch's test alone takes that for certainty. Of series of 30 days without any drift, 50 rows a day, it found drift
    somewhere in 4 % (normal scores), 13 % (60 % of them at 1.0), 19 % (like toxicity), 33 % (nine in ten pass) and 58 % (90 % at 1.0); the larger of both
    did in 0 to 4 %, and in 6 % at most for any of these at 2 to 200 rows a day (``benchmarks/trend.py``). It costs next to nothing: where a score becomes
    worse its spread grows, and then Welch's p is the larger one. Where neither side has any spread, p is counted: the chance that rows dealt out at random
    would be split like that, 1 over the number of ways to choose the bucket's rows (2 where both sides have as many); 1.0 where all are equal.

    **What it finds.** With 50 rows a day and 7 days of reference, one day of 23 that is off by 0.8 standard deviations is found in 98 % of series, by 0.5 in
    54 % (100 rows a day: 93 %). A pass rate that falls from 0.9 to 0.7 is found in 38 % at 50 rows a day, in 92 % at 100. The more buckets, the less each
    shows: by the hour only large shifts are found that the day would show easily.

    **What it takes for granted.** Rows are independent. Where traffic comes in clusters (one user's many questions, a day's topic), means move more than that,
    and drift says that the days differ, not why. Holm's correction is for the buckets of one score, not for several scores.

    References
    ----------
    B. L. Welch, The generalization of "Student's" problem when several different population variances are involved, Biometrika 34 (1947).
    S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979).

    Examples
    --------
    >>> days = pd.date_range("2026-03-01", periods=4, freq="D").repeat(3)
    >>> df = pd.DataFrame({"created_at": days, "tone_score": [0.8, 0.9, 0.7, 0.9, 0.8, 0.8, 0.7, 0.9, 0.8, 0.1, 0.2, 0.2]})
    >>> found = trend(df)
    >>> found[["bucket", "reference", "n", "drift"]]
                         bucket  reference  n  drift
    0 2026-03-01 00:00:00+00:00       True  3  False
    1 2026-03-02 00:00:00+00:00      False  3  False
    2 2026-03-03 00:00:00+00:00      False  3  False
    3 2026-03-04 00:00:00+00:00      False  3   True
    >>> found["difference"].round(2).tolist()
    [0.0, 0.03, 0.0, -0.63]
    """
    return find_trend(df, by=by, scores=scores, time=time, reference=reference, confidence=confidence, zone=zone).table


class Trend(NamedTuple):
    """What `trend` returns, the scores, the number of each row's bucket, the buckets of all scores in order, and how many of these are known."""

    table: pd.DataFrame
    scores: tuple[str, ...]
    places: NDArray[np.intp]
    labels: pd.Series[Any]
    known: int


def find_trend(
    df: pd.DataFrame,
    *,
    by: By,
    scores: str | Sequence[str] | None,
    time: Hashable,
    reference: object,
    confidence: float,
    zone: str | dt.tzinfo,
) -> Trend:
    """Return what `trend` does, with the order of the buckets over all scores."""
    frame = require_frame(df, "trend")
    if by not in BUCKETS:
        raise UnknownOptionError.from_value("by", by, BUCKETS)
    share = check_confidence(confidence)
    clock = _read_zone(zone)
    names = select_scores(frame, scores, "trend")
    times = _read_times(frame, time, by)
    buckets = _run_buckets(_runs(frame), times) if by == "run" else time_buckets(times, by, clock)
    window = _read_window(reference, by, buckets, clock)
    parts = [_one_score(frame, name, buckets, window, share) for name in names]
    places = np.concatenate([part["place"] for part in parts])
    rows = [len(part["place"]) for part in parts]
    made: dict[str, Any] = {"score": pd.array(np.repeat(np.array(names, dtype=object), rows), dtype="string")}
    made["bucket"] = buckets.labels.iloc[places].reset_index(drop=True)
    made |= {key: np.concatenate([part[key] for part in parts]) for key in parts[0] if key != "place"}
    return Trend(pd.DataFrame(made).astype({"errors": "string"}), tuple(names), places, buckets.labels, buckets.known)


class Buckets(NamedTuple):
    """Which bucket each row belongs to, by number, and the buckets' labels in order; the number ``known`` stands for rows without one."""

    codes: NDArray[np.intp]
    labels: pd.Series[Any]
    known: int


class Window(NamedTuple):
    """The reference window: the buckets chosen, or how many of the first (None for a share of them)."""

    chosen: NDArray[np.bool_] | None = None
    first: int | None = None

    def among(self, places: NDArray[np.intp], filled: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which of a score's buckets, of which some are filled with scored rows, are in the window."""
        if self.chosen is not None:
            return self.chosen[places]
        found = np.zeros(len(places), dtype=np.bool_)
        if len(filled):
            count = max(len(filled) // FIRST_SHARE, 1) if self.first is None else min(self.first, len(filled))
            found[filled[0] : filled[count - 1] + 1] = True
        return found


class Moments(NamedTuple):
    """Means of samples, how many values each has, their squared deviations summed, and whether they are all equal."""

    mean: Floats
    n: NDArray[np.int64]
    squares: Floats
    flat: NDArray[np.bool_]


def _one_score(df: pd.DataFrame, name: str, buckets: Buckets, window: Window, confidence: float) -> dict[str, NDArray[Any]]:
    """Return the numbers of one score in each of its buckets."""
    scores = read_score(df, name)
    asked = asked_rows(df, name, scores, "trend")
    values, codes = scores[asked], buckets.codes[asked]
    columns: dict[str, Any] = {f"{name}_score": values}
    if f"{name}_error" in df.columns:
        columns[f"{name}_error"] = df[f"{name}_error"].array[asked]
    numbers = pd.RangeIndex(len(buckets.labels))
    told = summarize(
        pd.DataFrame({**columns, "bucket": pd.Categorical.from_codes(codes, numbers)}), by="bucket", scores=name, confidence=confidence
    )
    places = told["bucket"].to_numpy(dtype=np.intp)
    mean, n, least, most = (told[key].to_numpy() for key in ("mean", "n", "min", "max"))
    there = ~np.isnan(values)
    values, at = values[there], np.searchsorted(places, codes[there])
    inside = window.among(places, np.flatnonzero((n > 0) & (places < buckets.known)))
    with np.errstate(invalid="ignore"):  # infinite scores
        own = Moments(mean, n, np.bincount(at, (values - mean[at]) ** 2, len(places)).astype(np.float64), _flat(least, most))
        window_values = values[inside[at]]
        other = _moments(window_values)
        difference = np.where(places < buckets.known, mean - other.mean, np.nan)
    tested = ~inside & (places < buckets.known)
    p = np.where(tested, shift_p(own, other), np.nan)
    corrected = holm(p)
    same = {key: told[key].to_numpy() for key in ("mean", "ci_low", "ci_high", "n", "unscored", "errors")}
    return {
        "place": places,
        **same,
        "reference": inside,
        "difference": difference,
        "p": p,
        "p_holm": corrected,
        "drift": corrected < 1 - confidence,
    }


def _moments(values: Floats) -> Moments:
    """Return the moments of one sample."""
    mean = np.array([mean_interval(values).mean])
    ends = np.array([values.min(initial=np.inf)]), np.array([values.max(initial=-np.inf)])
    return Moments(mean, np.array([len(values)]), np.array([((values - mean) ** 2).sum()]), _flat(*ends))


def _flat(least: Floats, most: Floats) -> NDArray[np.bool_]:
    """Return which samples, told by their least and most, differ by no more than rounding."""
    with np.errstate(invalid="ignore"):
        return np.asarray(most - least <= SAME * np.maximum(np.abs(least), np.abs(most)))


def shift_p(samples: Moments, reference: Moments) -> Floats:
    """Return the two-sided p-value of every sample's mean against that of a reference: Welch's or Student's, whichever is larger.

    Parameters
    ----------
    samples
        Of any number of samples.
    reference
        Of one sample.

    Returns
    -------
    numpy.ndarray
        NaN where either side has fewer than two values or an infinite one. Where neither has any spread, the share of all ways to deal out their values that
        puts the means so far apart; `trend` tells why.

    Examples
    --------
    >>> passed, failed = (Moments(np.array([mean]), np.array([3]), np.zeros(1), np.array([True])) for mean in (1.0, 0.0))
    >>> shift_p(passed, failed).tolist()  # two of the 20 ways to choose 3 of 6
    [0.1]
    """
    from scipy import special

    n, m = samples.n.astype(np.float64), reference.n.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gap = np.abs(samples.mean - reference.mean)
        own, other = samples.squares / (n * (n - 1)), reference.squares / (m * (m - 1))
        part = own / (own + other)
        freedom = 1 / (part**2 / (n - 1) + (1 - part) ** 2 / (m - 1))
        welch = 2 * special.stdtr(freedom, -gap / np.sqrt(own + other))
        pooled = (samples.squares + reference.squares) / (n + m - 2) * (1 / n + 1 / m)
        found = np.maximum(welch, 2 * special.stdtr(n + m - 2, -gap / np.sqrt(pooled)))
        ways = special.binom(n + m, n)
        same = gap <= SAME * np.maximum(np.abs(samples.mean), np.abs(reference.mean))
    counted = np.where(same, 1.0, np.where(n == m, 2, 1) / ways)
    p = np.where(samples.flat & reference.flat, counted, found)
    known = (np.minimum(n, m) >= LEAST_ROWS) & np.isfinite(gap) & np.isfinite(own + other)
    result: Floats = np.where(known, p, np.nan)
    return result


def time_buckets(times: pd.DatetimeIndex, by: str, zone: dt.tzinfo) -> Buckets:
    """Return the hour, day or week of each time as the clocks of a zone show it; two hours that they show alike stay two.

    Examples
    --------
    >>> times = pd.DatetimeIndex(["2026-10-25T00:30Z", "2026-10-25T01:30Z"])
    >>> time_buckets(times, "hour", zoneinfo.ZoneInfo("Europe/Berlin")).labels.astype(str).tolist()
    ['2026-10-25 02:00:00+02:00', '2026-10-25 02:00:00+01:00']
    """
    times = times.as_unit("us")
    clocks = times.tz_convert(zone).tz_localize(None)
    floors = clocks.floor("h") if by == "hour" else clocks.normalize()
    if by == "week":
        floors = floors - pd.to_timedelta(clocks.day_of_week, unit="D").as_unit("us")
    codes, found = pd.factorize(floors)
    there = codes >= 0
    first, second = _instants(pd.DatetimeIndex(found), zone)
    starts = first[codes[there]]
    if by == "hour":
        again = second[codes[there]]
        starts = np.where((again > starts) & (times.asi8[there] >= again), again, starts)
    used, places = np.unique(starts, return_inverse=True)
    known = len(used)
    full = np.full(len(codes), known, dtype=np.intp)
    full[there] = places
    labels = pd.Series(pd.DatetimeIndex(used.view("M8[us]")).tz_localize("UTC").tz_convert(zone))
    return Buckets(full, labels.reindex(range(known + int(not there.all()))), known)


def _instants(clocks: pd.DatetimeIndex, zone: dt.tzinfo) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return when the clocks of a zone show some times, first and, where they are put back, again, in microseconds.

    A time that they skip is when they are put forward.
    """
    found = [
        clocks.tz_localize(zone, ambiguous=np.full(len(clocks), earlier), nonexistent="NaT").as_unit("us") for earlier in (True, False)
    ]
    skipped = np.asarray(found[0].isna())
    first, second = (np.array(times.asi8) for times in found)
    first[skipped] = second[skipped] = _put_forward(clocks[skipped].asi8, zone)
    return first, second


def _put_forward(clocks: NDArray[np.int64], zone: dt.tzinfo) -> NDArray[np.int64]:
    """Return when a zone's clocks skip some times; all in microseconds.

    pandas' ``shift_forward`` takes every skipped stretch for one hour; Lord Howe's is half of one, and Chatham's begins at a quarter to three.
    """
    before, after = (_offsets(clocks + step, zone) for step in (-DAY, DAY))
    low, high = clocks - after, clocks - before
    while (high - low > 1).any():
        middle = (low + high) // 2
        still = _offsets(middle, zone) == before
        low, high = np.where(still, middle, low), np.where(still, high, middle)
    return high


def _offsets(times: NDArray[np.int64], zone: dt.tzinfo) -> NDArray[np.int64]:
    """Return how far a zone's clocks are ahead of UTC at some times; all in microseconds."""
    clocks = pd.DatetimeIndex(times.view("M8[us]")).tz_localize("UTC").tz_convert(zone).tz_localize(None)
    return np.asarray(clocks.asi8 - times)


def _run_buckets(runs: pd.Series[Any], times: pd.DatetimeIndex | None) -> Buckets:
    """Return the run of each row, in the order of their first times, then of their first rows."""
    groups = group_rows([runs], len(runs))
    earliest = np.full(groups.total, LATEST)
    if times is not None:
        np.minimum.at(earliest, groups.codes, np.where(times.isna(), LATEST, times.asi8))
    lacking = runs.iloc[groups.first].isna().to_numpy(dtype=np.bool_)
    order = np.lexsort((groups.first, earliest, lacking))
    place = np.empty(groups.total, dtype=np.intp)
    place[order] = np.arange(groups.total)
    return Buckets(place[groups.codes], runs.iloc[groups.first[order]].reset_index(drop=True), int((~lacking).sum()))


def _runs(df: pd.DataFrame) -> pd.Series[Any]:
    """Return the column of runs."""
    if "run" not in df.columns:
        has = f"the frame has {listed(df.columns)}" if len(df.columns) else "the frame has no columns"
        msg = f"trend by='run' needs a column 'run', as ScoreStore.read gives it; {has}. Rename yours: df.rename(columns={{'version': 'run'}})."
        raise MissingColumnError(msg)
    return require(df, "run", "trend")


def _read_times(df: pd.DataFrame, time: Hashable, by: str) -> Any:
    """Return the times in UTC, to the microsecond; None where runs come in the order of their rows."""
    if time is None and by == "run":
        return None
    column = pick(df, time, "trend", "time")
    there = column.notna()
    kinds = set(map(type, column[there])) if column.dtype == object else set()
    strange = sorted(kind.__name__ for kind in kinds if not issubclass(kind, (str, dt.date, np.datetime64)))
    textual = column.dtype == object or pd.api.types.is_string_dtype(column.dtype) or isinstance(column.dtype, pd.CategoricalDtype)
    if strange or not (textual or pd.api.types.is_datetime64_any_dtype(column.dtype)):
        what = f"cells of kind {', '.join(strange)}" if strange else f"the dtype {column.dtype}"
        msg = f"trend reads times, but the column {time!r} has {what}. Convert it first: pd.to_datetime(df[{time!r}], unit='s', utc=True)."
        raise ArgumentTypeError(msg)
    given = column.astype(object) if isinstance(column.dtype, pd.CategoricalDtype) else column
    try:
        return pd.DatetimeIndex(pd.to_datetime(given, utc=True, format="ISO8601"))
    except (ValueError, TypeError, OverflowError) as error:
        read = pd.to_datetime(given, utc=True, format="ISO8601", errors="coerce")
        wrong = np.flatnonzero((read.isna() & there).to_numpy(dtype=np.bool_))
        where = f"{shown(column.iloc[wrong[0]])!r} in row {wrong[0]} (counted from 0)" if len(wrong) else str(error)
        msg = (
            f"trend reads times as ISO 8601, but the column {time!r} has {where}. Convert it first: pd.to_datetime(df[{time!r}], utc=True)."
        )
        raise ArgumentTypeError(msg) from error


def _read_zone(zone: object) -> dt.tzinfo:
    """Return the zone of that name."""
    if isinstance(zone, dt.tzinfo):
        return zone
    if not isinstance(zone, str):
        raise ArgumentTypeError.from_value("zone", zone, "the name of a time zone, such as 'Europe/Berlin'")
    try:
        return pd.DatetimeTZDtype(
            "us", zone
        ).tz  # the one that pandas takes for the name, so that columns of that zone are of the same dtype
    except (KeyError, ValueError, TypeError, OSError) as error:
        raise UnknownOptionError.from_value("zone", zone, sorted(zoneinfo.available_timezones())) from error


def _read_window(reference: object, by: str, buckets: Buckets, zone: dt.tzinfo) -> Window:
    """Return the reference window that an option names."""
    if reference is None:
        return Window()
    if isinstance(reference, Integral):
        return Window(first=check_whole("reference", reference, 1))
    labels = buckets.labels.iloc[: buckets.known]
    chosen = np.zeros(len(buckets.labels), dtype=np.bool_)
    if by == "run":
        single = isinstance(reference, (str, bytes)) or not isinstance(reference, Iterable)
        places = {label: place for place, label in enumerate(labels)}
        runs = [reference] if single else list(reference)  # type: ignore[call-overload]
        for run in runs:
            if not isinstance(run, Hashable) or run not in places:
                raise UnknownOptionError.from_value("reference", run, places)
            chosen[places[run]] = True
        if not runs:
            raise OptionRangeError.from_value("reference", reference, "one run at least, or None for the first quarter")
        return Window(chosen)
    wanted = f"a number of {by}s or (since, until)"
    if not isinstance(reference, (tuple, list)):
        raise ArgumentTypeError.from_value("reference", reference, wanted)
    if len(reference) != 2 or all(end is None for end in reference):  # noqa: PLR2004
        raise OptionRangeError.from_value("reference", reference, wanted)
    since, until = (_read_end(end, zone, wanted) for end in reference)
    if since is not None and until is not None and since >= until:
        raise OptionRangeError.from_value("reference", reference, "(since, until) with since before until")
    chosen[: len(labels)] = (since is None or labels >= since) & (until is None or labels < until)
    if len(labels) and not chosen.any():
        raise OptionRangeError.from_value(
            "reference", reference, f"where a {by} begins: they do from {labels.iloc[0]} to {labels.iloc[-1]}"
        )
    return Window(chosen)


def _read_end(end: object, zone: dt.tzinfo, wanted: str) -> pd.Timestamp | None:
    """Return one end of a window as a time; one without a zone is in that of the buckets."""
    if end is None:
        return None
    if not isinstance(end, (str, dt.date, np.datetime64)):
        raise ArgumentTypeError.from_value("Each end of reference", end, f"a time (ISO text or datetime), as reference is {wanted}")
    try:
        found = pd.Timestamp(pd.to_datetime(end, format="ISO8601") if isinstance(end, str) else end)
    except ValueError as error:
        raise OptionRangeError.from_value(
            "reference", end, f"a time in ISO 8601, such as '2026-03-01', as reference is {wanted}"
        ) from error
    if pd.isna(found):
        raise OptionRangeError.from_value("reference", end, "a time")
    return found if found.tzinfo else found.tz_localize(zone, ambiguous=True, nonexistent="shift_forward")
