"""Scorer: four steps over whole columns, as a value that is called on a frame and returns it with more columns."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from scorekit.columns import add_result, refuse_conflicts, require, require_frame, to_json
from scorekit.declaration import CALL_ARGUMENTS, REPEATS, STEPS, USAGE, check_declaration, kind_of
from scorekit.drive import AsksJudge, Drive, Part, Stopped
from scorekit.errors import (
    ArgumentTypeError,
    JudgeSetupError,
    OptionRangeError,
    ScorerDefinitionError,
    UnknownOptionError,
    nearest,
)
from scorekit.judge.client import resolve_judge
from scorekit.judge.local import LocalJudge, warn_rough
from scorekit.judge.prompts import Prompt
from scorekit.pipeline import FieldKind, Outcome, Plan, StepFunction, averaged
from scorekit.progress import SHARED, Progress, progress_bar
from scorekit.texts import Side, read_contexts, read_texts, without_surrogates

if TYPE_CHECKING:
    from numpy.typing import NDArray

SMALLEST_CHUNK, CHUNKS = 8, 32
ASKED_CHUNK, READ_CHUNK = 256, 1024
"""How many rows of a scorer of one prompt are under way at a time, and how many are read at a time, or judged locally."""

KEY: Final = np.dtype("u8, u8")
"""What stands for a row where equal ones are to be found: a digest of 128 bits, so that no two rows are taken for equal by chance."""

JudgeLike = AsksJudge | LocalJudge | str


@dataclass(frozen=True)
class Scorer:
    """A measure: up to four steps over whole columns. Calling it on a frame returns the frame with its result columns.

    A step is a function over the rows' columns, or a `Prompt` that asks a judge about each row. Steps run in the order preprocess, analyze,
    generate_score, generate_reason. Each reads the inputs and the fields of earlier steps by name from a frame ``rows`` that holds only
    rows which are still good, on the index 0 to n - 1. Inputs are ``string`` columns without missing values, except that ``context`` is a column
    of lists of str. Where a cell holds chat messages, an input whose name ends in "input" is the first user message, any other the last
    assistant message with text. A step must be row-wise: what it gives for a row depends on that row alone.

    Parameters
    ----------
    name
        Prefix of the result columns; an identifier such as ``"has_link"``.
    needs
        The columns that it reads, such as ``("input", "output")``. Each is a keyword of the call: ``scorer(df, output="answer")``.
    generate_score
        ``generate_score(rows, *, option...)`` gives a number a row: a series, or a frame with a column ``score`` and further fields.
    preprocess, analyze
        A function that gives a frame of fields, or a `Prompt`. A text in a field ``not_scorable`` stops its row, with that reason.
    generate_reason
        A function that gives a text a row, or a `Prompt` whose reply has a field ``reason``. Without it a reply field ``reason`` of an earlier
        step serves.
    fields
        Fields of function steps that become columns, with their type: float, int, bool or str, else the field is kept as JSON text.
        Fields of a Prompt's reply are columns always.
    options
        Settings. A function step takes those that it names as keyword-only arguments; templates read them by name.
    judge
        Which judge to ask where the call names none.

    Raises
    ------
    ScorerDefinitionError
        When it is made: a name that is no identifier, an option that no step takes, a template that reads a name nothing can give, a reserved
        field, an argument that no option fills.

    Examples
    --------
    >>> import pandas as pd
    >>> shouting = Scorer(
    ...     "shouting",
    ...     needs=("output",),
    ...     generate_score=lambda rows: rows["output"].str.count("[A-Z]") / rows["output"].str.count("[A-Za-z]"),
    ...     generate_reason=lambda rows: (100 * rows["score"]).map("{:.0f} % of the letters are capitals.".format),
    ... )
    >>> shouting(pd.DataFrame({"output": ["STOP it", None]}))[["shouting_score", "shouting_reason", "shouting_error"]]
       shouting_score                     shouting_reason shouting_error
    0        0.666667  67 % of the letters are capitals.           <NA>
    1             NaN             The output is missing.  missing_input
    """

    name: str
    needs: tuple[str, ...]
    generate_score: StepFunction
    preprocess: StepFunction | Prompt | None = None
    analyze: StepFunction | Prompt | None = None
    generate_reason: StepFunction | Prompt | None = None
    fields: Mapping[str, type] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    judge: JudgeLike | None = None

    def __post_init__(self) -> None:
        """Refuse what could only fail later."""
        needs = (self.needs,) if isinstance(self.needs, str) else tuple(self.needs)
        object.__setattr__(self, "needs", needs)
        check_declaration(self)

    @property
    def steps(self) -> tuple[tuple[str, StepFunction | Prompt], ...]:
        """The steps that there are, in order, with their names."""
        found = ((step, getattr(self, step)) for step in STEPS)
        return tuple((step, work) for step, work in found if work is not None)

    @property
    def prompts(self) -> dict[str, Prompt]:
        """The judged steps by name."""
        return {step: work for step, work in self.steps if isinstance(work, Prompt)}

    @property
    def kinds(self) -> dict[str, FieldKind]:
        """The fields that become columns, and how each is kept: numbers, then texts and JSON, in the order of the steps."""
        found: dict[str, FieldKind] = {}
        for step, prompt in self.prompts.items():
            if step != "generate_reason":
                found |= {name: kind_of(info.annotation) for name, info in prompt.reply.model_fields.items() if name != "reason"}
        found |= {name: kind_of(annotation) for name, annotation in self.fields.items()}
        return dict(sorted(found.items(), key=lambda item: item[1] != "number"))

    def with_prompts(self, prompts: Mapping[str, Prompt]) -> Scorer:
        """Return this scorer with other prompts in place of its own.

        Parameters
        ----------
        prompts
            By step: ``{"analyze": Prompt(...)}``. A new prompt that does not say ``when``, ``otherwise`` or ``local`` keeps the old one's.

        Raises
        ------
        UnknownOptionError
            For a step that asks no judge.
        ScorerDefinitionError
            When the new reply lacks a field of the old one, or its template reads what nothing gives.
        """
        changed: dict[str, Any] = {}
        if not isinstance(prompts, Mapping):
            raise ArgumentTypeError.from_value("prompts", prompts, "a mapping from steps to Prompts, such as {'analyze': Prompt(...)}")
        for step, prompt in prompts.items():
            if step not in self.prompts:
                raise UnknownOptionError.from_value("prompts", step, self.prompts)
            if not isinstance(prompt, Prompt):
                raise ArgumentTypeError.from_value(f"prompts[{step!r}]", prompt, "a Prompt")
            old = self.prompts[step]
            lost = sorted(set(old.reply.model_fields) - set(prompt.reply.model_fields))
            if lost:
                msg = (
                    f"The new prompt for {step} of the scorer {self.name!r} must reply with the field(s) {lost} too: later steps read them."
                )
                raise ScorerDefinitionError(msg)
            kept = {name: getattr(old, name) for name in ("when", "otherwise", "local") if getattr(prompt, name) is None}
            changed[step] = replace(prompt, **kept)
        return replace(self, **changed) if changed else self

    def __call__(
        self,
        df: pd.DataFrame,
        /,
        *,
        judge: JudgeLike | None = None,
        repeats: int = 1,
        keep_prompts: bool = False,
        usage: bool = False,
        progress: bool = True,
        **columns: Hashable,
    ) -> pd.DataFrame:
        """Return the frame with this scorer's columns added.

        Parameters
        ----------
        df
            The rows; never changed. No rows give no rows, with the final columns and dtypes, and ask nothing.
        judge
            A `Judge`, `LocalJudge()`, or a model's name; None takes the scorer's own, else what the environment says.
        repeats
            Ask about each row this many times. The score is the mean of those that came out; the reason and the fields are of the one nearest
            to it. Adds ``<name>_spread`` (float64, the highest less the lowest score) and ``<name>_repeats`` (JSON list of the scores).
        keep_prompts
            Add ``<name>_<step>_prompt`` (string): what each judged step asked.
        usage
            Add ``<name>_input_tokens``, ``<name>_output_tokens`` and ``<name>_seconds`` (float64) of the judge's calls; 0 from the cache.
        progress
            Show a bar when it takes more than 2 seconds.
        **columns
            Which column stands for a needed one: ``output="answer"``.

        Returns
        -------
        pandas.DataFrame
            The same rows in the same order with the same index; after the frame's own columns ``<name>_score`` (float64, NaN = not scored),
            ``<name>_reason``, ``<name>_error`` (string, NA when scored), ``<name>_judge`` (string, judged scorers only), and the fields.

        Raises
        ------
        MissingColumnError, ColumnConflictError, JudgeSetupError
            Before any request: what is wrong for every row.
        Exception
            What a function step raises, with a note that names the step.
        KeyboardInterrupt
            On Ctrl-C. Whatever is raised once rows were finished carries them as ``error.partial``.
        """
        require_frame(df, self.name)
        if not (isinstance(repeats, int) and repeats >= 1):
            raise OptionRangeError.from_value("repeats", repeats, "a whole number from 1")
        if repeats > 1 and not self.prompts:
            raise OptionRangeError.from_value(
                "repeats", repeats, f"1 for {self.name!r}, which asks no judge and gives the same score each time"
            )
        mapping = self._mapping(columns)
        sources = {need: require(df, column, f"The scorer {self.name!r}", need) for need, column in mapping.items()}
        refuse_conflicts(df, self.name, self._columns(keep_prompts=keep_prompts, usage=usage, repeats=repeats), self._known())
        asked = self._judge(judge, warn=len(df) > 0) if self.prompts else None
        outcome = Outcome(len(df))
        plan = Plan(
            self.name, self.needs, self.steps, self.kinds, self.options, local=isinstance(asked, LocalJudge), keep_prompts=keep_prompts
        )
        rows = _Rows.of(sources, outcome, distinct=bool(self.prompts))
        pieces = _pieces(rows.count, _chunk_size(rows.count, len(self.prompts), local=plan.local))
        shared = SHARED.get()
        counters = shared if shared is not None else Progress()
        counters.add(rows=(len(df) - rows.count) * repeats)
        runs = [Outcome(rows.count) for _ in range(repeats)]
        drive = Drive(
            [
                Part(replace(plan, repeat=repeat), piece.stop - piece.start, partial(rows.read, piece))
                for repeat in range(repeats)
                for piece in pieces
            ],
            None if isinstance(asked, LocalJudge) else asked,
            counters,
            lambda rank, done: runs[rank // len(pieces)].put(pieces[rank % len(pieces)], done),
        )

        def finish() -> pd.DataFrame:
            merged = runs[0] if repeats == 1 else averaged(runs)
            outcome.put(rows.good, merged if len(rows.number) == rows.count else merged.take(rows.number, rows.first))
            label = None if asked is None else asked.label
            result = self._result(outcome, label, keep_prompts=keep_prompts, usage=usage, repeats=repeats)
            return add_result(df, self.name, result, self._known())

        try:
            total = len(df) * repeats
            with progress_bar(total, self.name, counters, shown=progress and shared is None and total > 0) as show:
                drive.run(show)
        except (Exception, KeyboardInterrupt, Stopped) as error:
            drive.cancel()
            finished = finish()
            error.partial = finished  # type: ignore[union-attr]
            if isinstance(error, KeyboardInterrupt) and not error.args:
                error.args = (interrupted(finished, self.name),)
            raise
        return finish()

    def _mapping(self, columns: Mapping[str, Hashable]) -> dict[str, Hashable]:
        """Return which column stands for each needed one."""
        for keyword, column in columns.items():
            if keyword not in self.needs:
                near = nearest(keyword, [*self.needs, *(CALL_ARGUMENTS - {"df"})])
                hint = f" Did you mean {near!r}?" if near else ""
                msg = f"The scorer {self.name!r} has no argument {keyword!r}; it reads the columns {list(self.needs)}.{hint}"
                raise ArgumentTypeError(msg)
            if not isinstance(column, Hashable):
                raise ArgumentTypeError.from_value(f"{keyword}=", column, "the name of a column", f"Pass {keyword}='name'.")
        return {need: columns.get(need, need) for need in self.needs}

    def _judge(self, judge: JudgeLike | None, *, warn: bool) -> AsksJudge | LocalJudge:
        """Return whom to ask; raise where nobody can be."""
        wanted = judge if judge is not None else self.judge
        found: AsksJudge | LocalJudge = resolve_judge(wanted)
        if isinstance(found, LocalJudge):
            missing = [step for step, prompt in self.prompts.items() if prompt.local is None]
            if missing:
                msg = (
                    f"The scorer {self.name!r} needs a judge: its step {missing[0]} has no local stand-in. Pass judge=sk.Judge(...), "
                    f"or set OPENAI_API_KEY, OPENAI_BASE_URL or SCOREKIT_JUDGE."
                )
                raise JudgeSetupError(msg)
            if wanted is None and warn:
                warn_if_local()
        elif hasattr(found, "check_ready"):
            found.check_ready()
        return found

    def _columns(self, *, keep_prompts: bool, usage: bool, repeats: int = 1) -> list[str]:
        """Return the names of the columns that a call adds, in order."""
        parts = ["score", "reason", "error", *(["judge"] if self.prompts else []), *self.kinds]
        parts += [f"{step}_prompt" for step in self.prompts] if keep_prompts else []
        parts += USAGE if usage and self.prompts else ()
        parts += REPEATS if repeats > 1 else ()
        return [f"{self.name}_{part}" for part in parts]

    def _known(self) -> list[str]:
        """Return every column that any call of a scorer like this one may have added."""
        if not self.prompts:
            return self._columns(keep_prompts=False, usage=False)
        prompts = [f"{self.name}_{step}_prompt" for step in STEPS]
        return list(dict.fromkeys([*self._columns(keep_prompts=True, usage=True, repeats=2), *prompts]))

    def _result(self, outcome: Outcome, label: str | None, *, keep_prompts: bool, usage: bool, repeats: int) -> pd.DataFrame:
        """Return the outcome as this scorer's columns."""
        scored = ~np.isnan(outcome.score)
        kinds = {**self.kinds, **{f"{step}_prompt": "text" for step in self.prompts if keep_prompts}}
        parts: dict[str, Any] = {
            "score": outcome.score,
            "reason": _text_column(outcome.reasons),
            "error": pd.Series(outcome.errors, dtype="string"),
        }
        if self.prompts:
            parts["judge"] = pd.Series([label if done else None for done in scored.tolist()], dtype="string")
        for name, kind in kinds.items():
            values = outcome.fields.get(name)
            if kind == "number":
                parts[name] = values if values is not None else np.full(outcome.count, np.nan)
            else:
                cells = values if values is not None else np.full(outcome.count, None, dtype=object)
                parts[name] = _text_column(cells)
        if usage and self.prompts:
            parts |= {name: outcome.usage[:, i] for i, name in enumerate(USAGE)}
        if repeats > 1:
            parts |= {
                "spread": outcome.fields["spread"],
                "repeats": _text_column(outcome.fields["repeats"]),
            }
        return pd.DataFrame({f"{self.name}_{part}": values for part, values in parts.items()}, index=range(outcome.count))


RESUME = "They are in error.partial, and paid answers are in the judge's cache: run the same call again to go on from here."


def interrupted(partial: pd.DataFrame, name: str) -> str:
    """Say how far an interrupted call came."""
    left = int((partial[f"{name}_error"] == "cancelled").sum())
    return f"Stopped: {len(partial) - left} of {len(partial)} rows of {name!r} are done. {RESUME}"


def warn_if_local() -> None:
    """Warn, once a process, where the environment names no judge, so that the local one answers."""
    if not os.environ.get("SCOREKIT_JUDGE") and isinstance(resolve_judge(None), LocalJudge):
        warn_rough()


@dataclass(frozen=True)
class _Rows:
    """The rows that can be scored: those whose inputs are good; of equal ones the first alone where a judge is asked.

    For a judged scorer texts are read again when their turn comes: all at once, as Python's strings, they would take more room than the results.

    Attributes
    ----------
    sources
        The columns by need.
    good
        Positions in the frame of the rows whose inputs are good.
    first
        Of these, the place of each distinct one's first.
    number
        For every good row the number of its distinct one.
    """

    sources: Mapping[str, pd.Series[Any]]
    good: NDArray[np.intp]
    first: NDArray[np.intp]
    number: NDArray[np.intp]
    texts: pd.DataFrame | None = None

    @classmethod
    def of(cls, sources: Mapping[str, pd.Series[Any]], outcome: Outcome, *, distinct: bool) -> _Rows:
        """Survey the columns; rows with a bad input get their error in ``outcome``."""
        if not distinct:
            whole, there = _read(sources, outcome, slice(None))
            return cls(sources, np.flatnonzero(there), np.arange(len(whole)), np.arange(len(whole)), whole)
        keys = np.empty(outcome.count, dtype=KEY)
        kept = np.empty(outcome.count, dtype=bool)
        for piece in _pieces(outcome.count, READ_CHUNK):
            texts, kept[piece] = _read(sources, outcome, piece)
            digests = (
                blake2b((to_json(row) or "").encode(), digest_size=KEY.itemsize)
                for row in zip(*(texts[need] for need in texts), strict=True)
            )
            keys[piece][kept[piece]] = np.frombuffer(bytearray().join(digest.digest() for digest in digests), dtype=KEY)
        good = np.flatnonzero(kept)
        _, first, number = np.unique(keys[good], return_index=True, return_inverse=True)
        order = np.argsort(first)  # np.unique sorts by key; rows keep their order
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        return cls(sources, good, first[order], place[number.reshape(-1)])

    @property
    def count(self) -> int:
        """How many rows there are to run."""
        return len(self.first)

    def read(self, piece: slice) -> pd.DataFrame:
        """Return the texts of some rows, on a fresh index."""
        if self.texts is not None:
            return self.texts
        positions = self.good[self.first[piece]]
        return _read(self.sources, Outcome(len(positions)), positions)[0]


def _read(
    sources: Mapping[str, pd.Series[Any]], outcome: Outcome, rows: slice | NDArray[np.intp]
) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """Read some rows; return the texts of the good ones on a fresh index, and which those are; the others get their error in ``outcome``."""
    columns = {need: column.iloc[rows] for need, column in sources.items()}
    cells = {
        need: read_contexts(column, need) if need == "context" else read_texts(column, need, _side(need))
        for need, column in columns.items()
    }
    errors, reasons = (values[rows] if isinstance(rows, slice) else values for values in (outcome.errors, outcome.reasons))
    for _, new_errors, new_reasons in cells.values():
        new = (new_errors != None) & (errors == None)  # noqa: E711  (elementwise over object arrays)
        errors[new], reasons[new] = new_errors[new], new_reasons[new]
    good = errors == None  # noqa: E711
    whole = good.all()
    texts = {need: cell.texts if whole else cell.texts[good].reset_index(drop=True) for need, cell in cells.items()}
    return pd.DataFrame(texts, index=range(int(good.sum()))), good


def _side(need: str) -> Side:
    """Return which message of a conversation stands for a needed column."""
    return "input" if need.endswith("input") else "output"


def _pieces(count: int, size: int) -> list[slice]:
    """Cut rows into pieces of a size."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def _chunk_size(count: int, prompts: int, *, local: bool) -> int:
    """Return how many rows run together.

    Few where several steps ask, so that early rows end early; more where one does, to bound what is in memory; all where none does.
    """
    if not prompts:
        return max(1, count)
    if local:
        return READ_CHUNK
    return max(SMALLEST_CHUNK, count // CHUNKS) if prompts > 1 else ASKED_CHUNK


def _text_column(values: Iterable[object]) -> pd.Series[str]:
    """Return a string column; lone surrogates become U+FFFD, since Arrow and files cannot carry them."""
    texts = [without_surrogates(text) if isinstance(text, str) and not text.isascii() else text for text in values]
    column: pd.Series[str] = pd.Series(texts, dtype="string")
    return column
