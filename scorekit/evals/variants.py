"""Variants: the prompts that an application may send, as templates over a frame's columns, and what each gives for each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from scorekit.columns import require
from scorekit.errors import ArgumentTypeError, MissingColumnError, OptionRangeError, ScorerDefinitionError
from scorekit.texts import ROLES, without_surrogates
from scorekit.trace import as_python

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Template as CompiledTemplate
    from jinja2 import Undefined
    from jinja2.sandbox import SandboxedEnvironment

    from scorekit.judge.replies import Message

Rendered = str | tuple["Message", ...]
"""A prompt as it is sent: a text, which is one user message, or several messages."""

Template = str | Sequence[Mapping[str, str]] | Callable[[dict[str, Any]], Any]
"""Jinja text; chat messages whose contents are jinja text; or a function from the row to a text or to messages."""


class MissingCellError(Exception):
    """A template prints the value of a cell that is missing."""


@dataclass(frozen=True)
class Unrendered:
    """A row for which there is no prompt, and why."""

    reason: str


@dataclass(frozen=True)
class Variant:
    """A prompt under its name, and the columns that its template reads; a function may read all, and then ``reads`` is None."""

    name: str
    template: Template
    reads: frozenset[str] | None

    @classmethod
    def of(cls, name: str, template: object) -> Variant:
        """Check a template and read its names.

        Raises
        ------
        ArgumentTypeError, ScorerDefinitionError
            When it is no template, or jinja cannot parse it.
        """
        if callable(template):
            return cls(name, template, None)
        if isinstance(template, str):
            return cls(name, template, _names(name, template))
        messages = _checked_messages(template, f"prompts[{name!r}]")
        return cls(name, messages, frozenset[str]().union(*(_names(name, message["content"]) for message in messages)))

    def render(self, cells: Mapping[str, Any]) -> Rendered:
        """Return the prompt for one row of cells as pandas holds them."""
        if callable(self.template):
            made = self.template({column: as_python(cell) for column, cell in cells.items()})
            if isinstance(made, str):
                return without_surrogates(made)
            return _checked_messages(made, f"What the prompt {self.name!r} returns")
        values = {name: _value(name, cells[name]) for name in self.reads or () if name in cells}
        if isinstance(self.template, str):
            return _filled(self.template, values)
        return tuple({"role": message["role"], "content": _filled(message["content"], values)} for message in self.template)


def read_variants(prompts: object, df: pd.DataFrame) -> list[Variant]:
    """Return the variants, checked against the frame.

    Raises
    ------
    ArgumentTypeError, OptionRangeError, ScorerDefinitionError
        When ``prompts`` is no mapping from names to templates, is empty, or a template cannot be parsed.
    MissingColumnError, ColumnConflictError
        When a template reads a name that is no column, or that two columns have.
    """
    if not isinstance(prompts, Mapping):
        raise ArgumentTypeError.from_value("prompts", prompts, "a mapping from names to templates", "Pass {'short': '... {{ input }}'}.")
    if not prompts:
        raise OptionRangeError.from_value("prompts", {}, "one variant at least, such as {'short': 'Answer briefly: {{ input }}'}")
    seen: dict[str, str] = {}
    for name in prompts:
        if not isinstance(name, str) or not name.strip():
            raise ArgumentTypeError.from_value("The name of a variant", name, "text, and not empty")
        if name.strip() in seen:
            msg = f"Two variants have the same name, {seen[name.strip()]!r} and {name!r}: they could not be told apart."
            raise OptionRangeError(msg)
        seen[name.strip()] = name
    variants = [Variant.of(name, template) for name, template in prompts.items()]
    texts = [column for column in df.columns if isinstance(column, str)]
    for variant in variants:
        for name in sorted(variant.reads or ()):
            if name in texts:
                require(df, name, f"The prompt {variant.name!r}")
            elif name not in _environment().globals:
                raise MissingColumnError.from_columns(f"The prompt {variant.name!r}", name, df.columns)
    return variants


def render_all(variants: Sequence[Variant], df: pd.DataFrame) -> list[Rendered | Unrendered]:
    """Return the prompt of every row under every variant, those of one row together.

    A row whose template prints what the row does not have gets none. What else a template or a function raises is raised, with a note.

    Raises
    ------
    ScorerDefinitionError
        When a template fits no row at all.
    """
    from jinja2 import UndefinedError

    wanted = frozenset(str(column) for column in df.columns if isinstance(column, str))
    if all(variant.reads is not None for variant in variants):
        wanted &= frozenset[str]().union(*(variant.reads or () for variant in variants))
    columns = {name: require(df, name, "generate").astype(object).tolist() for name in df.columns if name in wanted}
    found: list[Rendered | Unrendered] = []
    unfit = dict.fromkeys((variant.name for variant in variants), 0)
    for row in range(len(df)):
        cells = {name: values[row] for name, values in columns.items()}
        for variant in variants:
            try:
                found.append(variant.render(cells))
            except MissingCellError as error:
                found.append(Unrendered(str(error)))
            except UndefinedError as error:
                found.append(Unrendered(f"The prompt {variant.name!r} reads what this row does not have: {error.message}."))
                unfit[variant.name] += 1
                if unfit[variant.name] == len(df):
                    msg = f"The prompt {variant.name!r} cannot be rendered for any row: {error.message}."
                    raise ScorerDefinitionError(msg) from error
            except Exception as error:
                error.add_note(f"(raised by the prompt {variant.name!r} in row {row}, counted from 0)")
                raise
    return found


def _checked_messages(value: object, what: str) -> tuple[Message, ...]:
    """Return chat messages with role and content alone, as they are sent."""
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)) or not value:
        raise ArgumentTypeError.from_value(what, value, "text or a list of messages such as {'role': 'user', 'content': '...'}")
    for message in value:
        if not (isinstance(message, Mapping) and message.get("role") in ROLES and isinstance(message.get("content"), str)):
            hint = f"Roles are {', '.join(sorted(ROLES))}; a content is text."
            raise ArgumentTypeError.from_value(f"{what}: each message", message, "a mapping with a role and a content", hint)
    return tuple({"role": message["role"], "content": without_surrogates(message["content"])} for message in value)


def _value(name: str, cell: Any) -> Any:
    """Return a cell as a template sees it; a missing one can be tested for, but not printed."""
    value = as_python(cell)
    if value is not None:
        return value
    return _missing_type()(f"The prompt reads the {name}, which is missing.", name=name, exc=MissingCellError)


def _filled(template: str, values: Mapping[str, Any]) -> str:
    """Render a template."""
    return without_surrogates(_compiled(template).render(values))


@lru_cache(maxsize=256)
def _compiled(template: str) -> CompiledTemplate:
    """Compile a template."""
    return _environment().from_string(template)


@lru_cache(maxsize=1)
def _environment() -> SandboxedEnvironment:
    """Return jinja's sandbox. Values are rendered as jinja does, and what a text says is never read as template."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)


@lru_cache(maxsize=1)
def _missing_type() -> Callable[..., Undefined]:
    """Return the class of missing cells: false, not defined, and an error where they are printed."""
    from jinja2 import StrictUndefined

    class MissingCell(StrictUndefined):
        __slots__ = ()

        def __bool__(self) -> bool:  # type: ignore[override]
            return False

    return MissingCell


def _names(variant: str, template: str) -> frozenset[str]:
    """Return the free names of a template."""
    from jinja2 import TemplateSyntaxError, meta

    try:
        names = frozenset(meta.find_undeclared_variables(_environment().parse(template)))
        _compiled(template)  # finds filters that do not exist
    except TemplateSyntaxError as error:
        msg = f"The prompt {variant!r} cannot be parsed, line {error.lineno}: {error.message}"
        raise ScorerDefinitionError(msg) from error
    return names
