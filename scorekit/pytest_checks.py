"""What `scorekit.pytest_plugin.assert_evals` checks: scores against what they must reach, and against the means of an earlier run."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from scorekit.analysis.statistics import check_real
from scorekit.analysis.summary import as_names, read_score, select_scores, summarize, worse_when_higher
from scorekit.errors import SYNONYMS, ArgumentTypeError, OptionRangeError, ScorekitError
from scorekit.evals.gates import ROUNDING, Bounds, groups_of
from scorekit.evals.result import EvalResult
from scorekit.files import TableFileError, replacing
from scorekit.terminal import apart, one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

WHO: Final = "assert_evals"
MOST_ROWS, TEXT_CHARACTERS, LABEL_CHARACTERS = 3, 80, 40
TEXTS: Final = ("output", *SYNONYMS["output"], "input", *SYNONYMS["input"])
"""The columns of which the first that is there shows what a row is."""
UPDATE: Final = "pytest --evals-update-baseline"

Means = dict[str, dict[str, float]]
"""By score its ``mean`` and ``n``."""


@dataclass(frozen=True)
class Criteria:
    """What `assert_evals` was asked to check, read and in range."""

    pass_rate: dict[str, tuple[float, float]]
    thresholds: dict[str, Bounds]
    gates: list[str]
    margin: float
    most_unscored: float
    lower_is_better: frozenset[str]

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        *,
        pass_rate: Mapping[str, tuple[float, float]] | None,
        thresholds: Mapping[str, float | Mapping[str, float]] | None,
        gates: str | Iterable[str] | None,
        margin: float,
        most_unscored: float,
        lower_is_better: Collection[str] | None,
    ) -> Criteria:
        """Read the arguments.

        Raises
        ------
        ArgumentTypeError, OptionRangeError, UnknownOptionError, MissingColumnError
            When one is of the wrong kind or out of range, or names a score that the frame does not have.
        """
        worse = worse_when_higher(lower_is_better or ())
        lower = frozenset(name.removesuffix("_score") for name in worse)
        rates, bounds = _named(frame, "pass_rate", pass_rate), _named(frame, "thresholds", thresholds)
        names = as_names("gates", gates or [])
        return cls(
            pass_rate={name: _rate(name, pair) for name, pair in rates.items()},
            thresholds={name: Bounds.of(name, value, lower_is_better=name in lower) for name, value in bounds.items()},
            gates=select_scores(frame, names, WHO) if names else [],
            margin=_share("margin", margin, math.inf),
            most_unscored=_share("most_unscored", most_unscored, 1.0),
            lower_is_better=lower,
        )


def _named(frame: pd.DataFrame, option: str, given: Any) -> dict[str, Any]:
    """Return a mapping by score, under the names that the scores have in the frame."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ArgumentTypeError.from_value(option, given, "a mapping from scores, such as {'relevancy': ...}")
    return {select_scores(frame, [name], WHO)[0]: value for name, value in given.items()}


def _rate(name: str, pair: object) -> tuple[float, float]:
    """Return the bound of a row and the share of rows that must reach it."""
    option, wanted = (
        f"pass_rate[{name!r}]",
        "two numbers: what a row must reach, and the share of rows that must reach it, above 0 and at most 1",
    )
    if isinstance(pair, str) or not isinstance(pair, Sequence):
        raise ArgumentTypeError.from_value(option, pair, wanted)
    ends = [check_real(option, value) for value in pair]
    if len(ends) != 2 or math.isnan(ends[0]) or not 0 < ends[1] <= 1:  # noqa: PLR2004
        raise OptionRangeError.from_value(option, pair, wanted)
    return ends[0], ends[1]


def _share(option: str, value: object, most: float) -> float:
    """Return a number from 0 to ``most``."""
    number = check_real(option, value)
    if not 0 <= number <= most or math.isinf(number):
        raise OptionRangeError.from_value(option, value, "0 or more and finite" if math.isinf(most) else f"between 0 and {most:g}")
    return number


@dataclass
class Part:
    """The rows of one score (and target), and what they miss.

    Attributes
    ----------
    label
        The score, with the target where there are several: ``"relevancy (old)"``.
    misses
        What was missed, a text each.
    bad
        Which rows a miss is about.
    sides
        Whether misses are about scores that are too high, too low, or both.
    """

    label: str
    name: str
    rows: pd.DataFrame
    scores: NDArray[np.float64]
    lower: bool
    misses: list[str] = field(default_factory=list)
    bad: NDArray[np.bool_] = field(init=False)
    sides: set[bool] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin with no row that is bad."""
        self.bad = np.zeros(len(self.scores), dtype=bool)

    @property
    def n(self) -> int:
        """How many rows have a score."""
        return int((~np.isnan(self.scores)).sum())

    @property
    def mean(self) -> float:
        """The mean of the rows that have a score; NaN where none has."""
        return float(np.nanmean(self.scores)) if self.n else math.nan

    @property
    def count(self) -> str:
        """How many rows the mean rests on."""
        return f"n={self.n:,}, unscored {len(self.scores) - self.n:,}"

    def miss(self, text: str, bad: NDArray[np.bool_], *, above: bool | None = None) -> None:
        """Keep what was missed, the rows it is about, and whether these are too high or too low."""
        self.misses.append(text)
        self.bad |= bad
        self.sides |= set() if above is None else {above}

    def beyond(self, bound: float, *, above: bool) -> NDArray[np.bool_]:
        """Return which rows lie above or below a bound; unscored ones do neither."""
        found: NDArray[np.bool_] = self.scores > bound + ROUNDING if above else self.scores < bound - ROUNDING
        return found

    def text(self) -> str:
        """Return the misses and the worst rows as lines."""
        lines = [f"  {self.label}: {miss}" for miss in self.misses]
        highest = self.lower if not self.sides or self.lower in self.sides else not self.lower
        badness = np.where(np.isnan(self.scores), math.inf, self.scores if highest else -self.scores)
        places = np.flatnonzero(self.bad)
        worst = places[np.argsort(-badness[places], kind="stable")][:MOST_ROWS]
        column = next((name for name in TEXTS if list(self.rows.columns).count(name) == 1), None)
        for place in worst.tolist():
            value = f"{self.scores[place]:.3g}" if not math.isnan(self.scores[place]) else f"unscored {self._code(place)}".rstrip()
            text = "" if column is None else f"  {one_line(self.rows[column].iloc[place], TEXT_CHARACTERS)}"
            lines.append(f"    row {one_line(self.rows.index[place], LABEL_CHARACTERS)}: {value}{text}")
        if more := len(places) - len(worst):
            lines.append(f"    and {more:,} more")
        return "\n".join(lines)

    def codes(self) -> str:
        """Return why rows are unscored, as counts by error code."""
        column = f"{self.name}_error"
        if column not in self.rows.columns:
            return ""
        found = self.rows.loc[np.isnan(self.scores), column].dropna().astype(str).value_counts()
        return f" ({', '.join(f'{code}: {count}' for code, count in found.items())})" if len(found) else ""

    def _code(self, place: int) -> str:
        """Return the error code of a row."""
        column = f"{self.name}_error"
        code = self.rows[column].iloc[place] if column in self.rows.columns else None
        return "" if code is None or pd.isna(code) else str(code)


def parts_of(frame: pd.DataFrame, names: Sequence[str], lower: Collection[str], *, named: bool) -> list[Part]:
    """Return the rows of each score and target."""
    return [
        Part(name if target is None else f"{name} ({target})", name, rows, read_score(rows, name), name in lower)
        for name in names
        for target, rows in groups_of(frame, named=named).items()
    ]


def check_part(part: Part, criteria: Criteria) -> None:
    """Find what the rows of a score miss of the numbers that were asked for."""
    blank, total = np.isnan(part.scores), len(part.scores)
    if not part.n:
        part.miss(f"no row of {total:,} has a score{part.codes()}", blank)
        return
    if total - part.n > criteria.most_unscored * total + ROUNDING:
        part.miss(
            f"{total - part.n:,} of {total:,} rows are unscored{part.codes()}; a share of {criteria.most_unscored:g} is allowed", blank
        )
    if part.name in criteria.pass_rate:
        bound, share = criteria.pass_rate[part.name]
        failing = part.beyond(bound, above=part.lower)
        passing = part.n - int(failing.sum())
        if passing / part.n < share - ROUNDING:
            where = f"at or {'below' if part.lower else 'above'} {bound:g}"
            part.miss(
                f"pass rate {apart(passing / part.n, share)} is below {share:g}: {passing:,} of {part.n:,} scored rows are {where}",
                failing,
                above=part.lower,
            )
    if part.name in criteria.thresholds:
        ends = criteria.thresholds[part.name]
        if not part.mean >= ends.least - ROUNDING:
            part.miss(
                f"mean {apart(part.mean, ends.least)} is below {ends.least:g} ({part.count})",
                part.beyond(ends.least, above=False),
                above=False,
            )
        if not part.mean <= ends.most + ROUNDING:
            part.miss(
                f"mean {apart(part.mean, ends.most)} is above {ends.most:g} ({part.count})", part.beyond(ends.most, above=True), above=True
            )
    if part.name in criteria.gates:
        best = 0.0 if part.lower else 1.0
        failing = blank | part.beyond(best, above=part.lower)
        if failing.any():
            part.miss(f"gate: {int(failing.sum()):,} of {total:,} rows are not {best}", failing, above=part.lower)


def check_baseline(parts: Sequence[Part], stored: Means, margin: float) -> list[str]:
    """Find which means are worse than the stored ones by more than the margin; return what is stored and was not scored now."""
    for part in parts:
        if not part.n:
            continue  # which is a miss already
        if part.label not in stored:
            part.misses.append(f"the baseline does not have this score; make a new one with: {UPDATE}")
            continue
        old, count = stored[part.label]["mean"], stored[part.label]["n"]
        worse = part.mean - old if part.lower else old - part.mean
        if worse > margin + ROUNDING:
            text = f"mean {apart(part.mean, old)} is worse than the baseline's {old:.3f} by {apart(worse, margin)}, margin {margin:g}"
            part.miss(f"{text} ({part.count}; baseline n={count:,.0f})", part.beyond(old, above=part.lower), above=part.lower)
    gone = [label for label in stored if label not in {part.label for part in parts}]
    return [f"  {label}: the baseline has it, and it was not scored; to leave it out make a new one with: {UPDATE}" for label in gone]


def missed_in_run(result: EvalResult, criteria: Criteria) -> list[tuple[str, str]]:
    """Return the labels and misses of the gates and thresholds that `run_evals` itself was given; those that are asked for anew are left to these."""
    found = []
    for what, name, table, anew in (
        ("gate", "gate", result.gates, criteria.gates),
        ("threshold", "score", result.thresholds, criteria.thresholds),
    ):
        for row in table[~table["passed"] & ~table[name].isin(list(anew))].to_dict("records"):
            label = f"{row[name]} ({row['target']})" if "target" in row else str(row[name])
            ends = " ".join(f"{end} {row[end]:g}" for end in ("min", "max") if end in row and not math.isnan(row[end]))
            number = f"{row['missed']:,} of {row['n']:,} rows" if what == "gate" else f"mean {row['mean']:.3f}, {ends} (n={row['n']:,})"
            failed = f"; target or judge failed in {row['failures']:,} rows" if row["failures"] else ""
            found.append((label, f"{what} of run_evals: {number}{failed}"))
    return found


def frame_of(result: object) -> tuple[pd.DataFrame, bool]:
    """Return the rows of a result or a scored frame, and whether they are of several targets.

    Raises
    ------
    ArgumentTypeError
        When it is neither.
    """
    if isinstance(result, EvalResult):
        return result.frame, "target" in result.scores.columns
    if isinstance(result, pd.DataFrame):
        return result, False
    raise ArgumentTypeError.from_value(WHO, result, "an EvalResult or a scored DataFrame")


def names_of(result: EvalResult | pd.DataFrame) -> list[str]:
    """Return the scores of a result, each once.

    Raises
    ------
    MissingColumnError
        When a frame has none.
    """
    return list(dict.fromkeys(result.scores["score"])) if isinstance(result, EvalResult) else select_scores(result, None, WHO)


def checked_names(result: EvalResult | pd.DataFrame, criteria: Criteria) -> list[str]:
    """Return the scores that are held against a number, those of the run's own gates and thresholds included, each once."""
    own = [*result.gates["gate"], *result.thresholds["score"]] if isinstance(result, EvalResult) else []
    return list(dict.fromkeys([*criteria.pass_rate, *criteria.thresholds, *criteria.gates, *own]))


def numbers_of(result: object, names: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return, for each score and target, ``score``, ``mean``, ``low``, ``high``, ``n`` and ``unscored``, in plain Python numbers."""
    frame, named = frame_of(result)
    table = result.scores if isinstance(result, EvalResult) else summarize(frame, scores=names)
    keep = table if names is None else table[table["score"].isin(list(names))]
    return [
        {
            "score": f"{row['score']} ({row['target']})" if named else str(row["score"]),
            **{key: float(row[column]) for key, column in (("mean", "mean"), ("low", "ci_low"), ("high", "ci_high"))},
            "n": int(row["n"]),
            "unscored": int(row["unscored"]),
        }
        for row in keep.to_dict("records")
    ]


def read_baselines(path: Path) -> dict[str, Means]:
    """Return the means in a file, by test; nothing where it is not there.

    Raises
    ------
    TableFileError
        When it is there and cannot be read as such a file.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
        return {
            str(key): {str(score): {end: float(numbers[end]) for end in ("mean", "n")} for score, numbers in means.items()}
            for key, means in found.items()
        }
    except FileNotFoundError:
        return {}
    except OSError as error:
        msg = f"Cannot read the baseline {path}: {error.strerror or error}."
        raise TableFileError(msg) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        msg = f"{path} is no baseline file ({type(error).__name__}: {error}): delete it and make one with: {UPDATE}"
        raise TableFileError(msg) from error


def _refuse(constant: str) -> None:
    """Refuse a NaN: nothing is worse than that."""
    msg = f"{constant} is no mean"
    raise ValueError(msg)


def write_baseline(path: Path, key: str, parts: Sequence[Part]) -> None:
    """Put the means of a test into a file, which is made where it is not there and replaced at once.

    Raises
    ------
    TableFileError
        When it cannot be read or written.
    """
    means = {part.label: {"mean": part.mean, "n": part.n} for part in parts}
    text = json.dumps(read_baselines(path) | {key: means}, ensure_ascii=True, indent=2, sort_keys=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as target:
            target.write(f"{text}\n".encode("ascii"))
    except OSError as error:
        if isinstance(error, ScorekitError):
            raise
        msg = f"Cannot write the baseline {path}: {error.strerror or error}."
        raise TableFileError(msg) from error


@dataclass(frozen=True)
class Checked:
    """What a check found: by score whether it was missed, what to say of it, and whether a baseline was written."""

    missed: dict[str, bool]
    message: str
    written: bool


def check(
    result: EvalResult | pd.DataFrame, criteria: Criteria, names: Sequence[str], baseline: tuple[Path, str, bool] | None, who: str
) -> Checked:
    """Check a result.

    Parameters
    ----------
    names
        The scores to check.
    baseline
        The file of earlier means, the key in it, and whether to write it anew.
    who
        What the message says was checked.
    """
    frame, named = frame_of(result)
    parts = parts_of(frame, names, criteria.lower_is_better, named=named)
    for part in parts:
        check_part(part, criteria)
    own = {part.label: part for part in parts}
    for label, text in missed_in_run(result, criteria) if isinstance(result, EvalResult) else ():
        own[label].misses.append(text)
    others: list[str] = []
    written, note = False, ""
    if baseline is not None:
        path, key, update = baseline
        if update and any(part.misses for part in parts):
            note = f"  The baseline {path} was not written."
        elif update:
            write_baseline(path, key, parts)
            written = True
        elif (stored := read_baselines(path).get(key)) is None:
            there = f"has none for {key!r}" if path.exists() else "is not there"
            others = [f"  no baseline: {path} {there}. Make one with: {UPDATE}"]
        else:
            others = check_baseline(parts, stored, criteria.margin)
    count = sum(len(part.misses) for part in parts) + len(others)
    lines = [f"{WHO}: {count} miss{'' if count == 1 else 'es'} in {who}", *(part.text() for part in parts if part.misses), *others]
    message = "\n".join([*lines, *([note] if note else [])]) if count else ""
    return Checked({part.label: bool(part.misses or others) for part in parts}, message, written)
