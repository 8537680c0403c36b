"""The fields of a form as ipywidgets: an option's control, an input's text area, and how they stand in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets
from traitlets import TraitError

from scorekit.errors import ArgumentTypeError, UnknownOptionError, shown
from scorekit.texts import is_missing, without_surrogates
from scorekit.trace import as_python
from scorekit.widgets.step_html import as_json

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from scorekit.widgets.scorer_form import OptionField


class Control:
    """An option's widget. Its value is the one that the option began with, kind and all, until somebody changes it."""

    def __init__(self, option: OptionField) -> None:
        """Make the widget that fits the option's kind."""
        self._option, self._given = option, option.value
        self._labels = _labels(option.choices)
        settings = {"tooltip": option.about or None}
        if option.kind == "choice":
            self.widget = field_of(ipywidgets.Dropdown, option.name, options=self._labels, **settings)
        elif option.kind == "bool":
            self.widget = field_of(ipywidgets.Checkbox, option.name, indent=False, **settings)
        elif option.kind == "text" or option.optional:
            self.widget = field_of(ipywidgets.Text, option.name, placeholder="None" if option.optional else "(empty)", **settings)
        else:
            self.widget = field_of(ipywidgets.IntText if option.kind == "int" else ipywidgets.FloatText, option.name, **settings)
        self.show(option.value)

    @property
    def value(self) -> Any:
        """The option as it is set.

        Raises
        ------
        ArgumentTypeError
            When the text should be a number and is none.
        """
        value = self.widget.value
        if value == self._text:
            return self._given
        if self._option.kind == "choice":
            return self._option.choices[self._labels.index(value)]
        return self._option.read(value) if isinstance(self.widget, ipywidgets.Text) else value

    def show(self, value: Any) -> None:
        """Show a value, and give it back as it is."""
        option = self._option
        if option.kind == "choice":
            if value not in option.choices:
                raise UnknownOptionError.from_value(option.name, value, option.choices)
            text: Any = self._labels[option.choices.index(value)]
        else:
            text = without_surrogates("" if value is None else str(value)) if isinstance(self.widget, ipywidgets.Text) else value
        try:
            self.widget.value = text
        except (TraitError, ValueError, TypeError) as error:
            raise ArgumentTypeError.from_value(option.name, value, f"of the kind {option.kind}") from error
        self._text, self._given = self.widget.value, value


def cell_text(cell: Any) -> str:
    r"""Return the text that stands for a cell: messages and lists as JSON, which scorers read as such.

    Examples
    --------
    >>> cell_text("a"), cell_text(None), cell_text(["a"])
    ('a', '', '[\n  "a"\n]')
    """
    if isinstance(cell, str):
        return without_surrogates(cell)
    if is_missing(cell):
        return ""
    plain = as_python(cell)
    return without_surrogates(as_json(plain) if isinstance(plain, (list, dict)) else str(plain))


def _labels(choices: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the choices as texts that differ."""
    texts = tuple(choice if isinstance(choice, str) else repr(choice) for choice in choices)
    return texts if len(set(texts)) == len(texts) else tuple(map(repr, choices))


def text_area(name: str, column: Hashable) -> Any:
    """Return the text area of an input."""
    label = name if column == name else f"{name} (column {shown(str(column))})"
    return ipywidgets.Textarea(description=label, rows=6, layout={"flex": "1 1 240px", "width": "auto", "margin": "2px 4px 6px 2px"})


def field_of(kind: Any, name: str, **settings: Any) -> Any:
    """Return a field of the usual width."""
    return kind(description=name, layout={"width": "auto", "margin": "0 4px 6px 2px"}, **settings)


def in_a_row(widgets: Iterable[Any], align: str = "flex-start") -> Any:
    """Return widgets in a row that goes on in the next line where it is too long."""
    return ipywidgets.Box(tuple(widgets), layout={"display": "flex", "flex_flow": "row wrap", "align_items": align, "width": "100%"})


def in_a_grid(widgets: Iterable[Any]) -> Any:
    """Return widgets in columns of one width."""
    columns = "repeat(auto-fill, minmax(132px, 1fr))"
    return ipywidgets.Box(tuple(widgets), layout={"display": "grid", "grid_template_columns": columns, "width": "100%"})
