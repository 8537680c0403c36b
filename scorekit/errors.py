"""Every exception that scorekit raises on purpose.

::

    ScorekitError
    ├── MissingColumnError    (KeyError)     the frame lacks a column that a scorer or a view needs
    ├── ColumnConflictError   (ValueError)   a column is there twice, or would be overwritten
    ├── UnknownOptionError    (ValueError)   an option's value is not one of its choices
    ├── OptionRangeError      (ValueError)   an option's value is of the right kind but out of range
    ├── ArgumentTypeError     (TypeError)    an argument is of the wrong kind
    ├── ScorerDefinitionError (TypeError)    a Scorer or Prompt cannot work as it is declared
    ├── StepResultError       (ValueError)   a step returned something that does not fit its rows
    ├── JudgeSetupError       (RuntimeError) no judge can be asked: a key, an address or a stand-in is missing
    └── StoreError            (RuntimeError) the database of scores cannot be used, or holds something else already

What is wrong with one row is no exception: it is a code in the row's error column (``scorekit.columns.ERROR_CODES``).
Each exception is also the nearest builtin, so ``except KeyError`` works without importing anything from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from rapidfuzz import fuzz, process

SHOWN_CHARACTERS = 80

SYNONYMS = {
    "input": ("question", "query", "prompt", "user_input", "instruction", "q", "request"),
    "output": ("answer", "response", "completion", "reply", "prediction", "generated", "a", "result"),
    "context": ("contexts", "document", "documents", "docs", "passages", "retrieved", "source"),
    "ground_truth": ("reference", "expected", "expected_output", "target", "label", "gold"),
}
"""What people call the columns that scorers need."""


class ScorekitError(Exception):
    """The base of all exceptions that scorekit raises on purpose."""

    def __str__(self) -> str:
        """Return the message as written (``KeyError`` alone would show its repr)."""
        return " ".join(str(arg) for arg in self.args)


class MissingColumnError(ScorekitError, KeyError):
    """A frame lacks a column that is needed."""

    @classmethod
    def from_columns(cls, who: str, needed: str, present: Iterable[object], keyword: str | None = None) -> Self:
        """Say who needs which column, what the frame has, and the nearest name."""
        names = [str(column) for column in present]
        has = f"the frame has {listed(names)}" if names else "the frame has no columns"
        near = nearest(needed, names) or next((name for name in names if name.strip().casefold() in SYNONYMS.get(needed, ())), None)
        if near is not None:
            hint = f" Did you mean {keyword}={near!r}?" if keyword else f" Did you mean {near!r}?"
        else:
            hint = f" Pass {keyword}= with the name of the column that holds it." if keyword and names else ""
        return cls(f"{who} needs a column {needed!r}; {has}.{hint}")


class ColumnConflictError(ScorekitError, ValueError):
    """A column name stands for two things."""

    @classmethod
    def from_duplicate(cls, who: str, name: str, count: int) -> Self:
        """Say that a needed column is there more than once."""
        return cls(f"{who} reads the column {name!r}, but the frame has {count} columns of that name. Rename or drop all but one.")

    @classmethod
    def from_existing(cls, scorer: str, columns: Sequence[str]) -> Self:
        """Say which columns a scorer would overwrite although it did not write them."""
        return cls(
            f"The scorer {scorer!r} would write {listed(columns)}, which the frame already has and which no earlier run of it wrote. "
            f"Pass name= to choose another prefix, or rename the column."
        )

    @classmethod
    def from_scorers(cls, first: str, second: str, columns: Sequence[str]) -> Self:
        """Say that two scorers of one call would write the same columns."""
        return cls(f"The scorers {first} and {second} would both write {listed(columns)}. Give one of them another name=.")


class UnknownOptionError(ScorekitError, ValueError):
    """An option's value is not one of its choices."""

    @classmethod
    def from_value(cls, option: str, value: object, choices: Iterable[object]) -> Self:
        """Say the value, the choices and the nearest of them."""
        names = [str(choice) for choice in choices]
        near = nearest(str(value), names)
        hint = f" Did you mean {near!r}?" if near is not None else ""
        choice = f"choose one of {listed(names)}." if names else "there is none to choose from."
        return cls(f"{option}={value!r} is not known; {choice}{hint}")


class OptionRangeError(ScorekitError, ValueError):
    """An option's value is out of range."""

    @classmethod
    def from_value(cls, option: str, value: object, wanted: str) -> Self:
        """Say the value and what it must be."""
        return cls(f"{option}={value!r} is out of range: it must be {wanted}.")


class ArgumentTypeError(ScorekitError, TypeError):
    """An argument is of the wrong kind."""

    @classmethod
    def from_value(cls, argument: str, value: object, wanted: str, hint: str = "") -> Self:
        """Say the kind found, the kind wanted and, where it helps, what to do."""
        return cls(f"{argument} must be {wanted}, not {type(value).__name__}.{' ' + hint if hint else ''}")


class ScorerDefinitionError(ScorekitError, TypeError):
    """A Scorer or Prompt cannot work as it is declared."""


class StepResultError(ScorekitError, ValueError):
    """A step returned something that does not fit its rows."""


class JudgeSetupError(ScorekitError, RuntimeError):
    """No judge can be asked."""


class StoreError(ScorekitError, RuntimeError):
    """The database of scores cannot be used, or holds something else already."""


def listed(names: Iterable[object], most: int = 12) -> str:
    """Return names quoted and joined, the first ``most`` of them."""
    quoted = [repr(str(name)) for name in names]
    more = f" and {len(quoted) - most} more" if len(quoted) > most else ""
    return ", ".join(quoted[:most]) + more


def nearest(name: str, names: Sequence[str]) -> str | None:
    """Return the one of ``names`` that ``name`` is probably a slip of, or None.

    Case and white space around a name do not count: ``"Answer "`` is a slip of ``"answer"``.
    """
    found = process.extractOne(name, names, scorer=fuzz.WRatio, processor=lambda text: text.strip().casefold(), score_cutoff=75)
    return None if found is None else found[0]


def shown(value: Any) -> str:
    """Return at most 80 characters of a row's text, for a message."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
