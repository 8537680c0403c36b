"""playground: run a scorer on one row, with its options beside it, and see what each of its steps asked, got and gave."""

from __future__ import annotations

import contextlib
import html
import warnings
from collections.abc import Hashable, Mapping
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import ipywidgets

from scorekit.columns import LOWER_IS_BETTER, require, require_frame
from scorekit.errors import ArgumentTypeError, OptionRangeError, UnknownOptionError, shown
from scorekit.pipeline import WRITES_REACH
from scorekit.run import ScoreResult, run_one
from scorekit.texts import is_missing, without_surrogates
from scorekit.widgets.controls import Control, cell_text, field_of, in_a_grid, in_a_row, text_area
from scorekit.widgets.scorer_form import USUAL_COLUMNS, ScorerForm
from scorekit.widgets.step_html import STYLE, capped, direction, error_html, number, result_html, steps_html

if TYPE_CHECKING:
    import pandas as pd

    from scorekit.run import ScorerLike
    from scorekit.scorer import JudgeLike

JUDGE_HELP: Final = "A model's name, such as openai/gpt-5-mini, or local; empty for the judge as given"

MOST_COLUMNS: Final = 3
"""How many columns of a frame get a text area where neither the scorer nor the call says which it reads, and none has a usual name."""

SUMMARY_CHARACTERS: Final = 200


def playground(scorer: ScorerLike, /, df: pd.DataFrame | None = None, *, judge: JudgeLike | None = None, **columns: Any) -> Playground:
    """Return a panel on which the scorer runs on one row, and which shows what each of its steps did.

    Parameters
    ----------
    scorer
        As in `score`: a public function, a partial of one, a `Scorer`, or a callable of your own from a frame to the frame with a
        ``<name>_score`` column added. The panel has a field for each option in its signature; what a partial binds is what it begins with.
    df
        Rows to pick from, by their position; never changed. An edited text is scored as edited, an untouched cell as it is in the frame.
    judge
        Whom to ask where the scorer brings no judge of its own. On the panel a model's name, or ``local``, can be put in its place.
    **columns
        With ``df`` the column that stands for an input, as in `score`: ``output="answer"``. Without it the texts to begin with, as in `run_one`:
        ``output="Paris."``. Options may stand among them: ``scale=10``. For a callable that does not say what it reads these are its inputs.

    Returns
    -------
    Playground
        An ipywidgets box. ``panel.run()`` does what its button does; ``panel.result`` is the last `ScoreResult`.

    Raises
    ------
    ArgumentTypeError
        For a scorer that is none, or a keyword that it does not know.
    MissingColumnError, ColumnConflictError
        When the frame lacks a column that the scorer reads, or has it twice.

    Notes
    -----
    Needs Jupyter to be seen. In Colab, call ``google.colab.output.enable_custom_widget_manager()`` first. A run costs what `run_one` costs; making
    the panel asks nothing.

    Examples
    --------
    >>> from scorekit import score_text_difference
    >>> panel = playground(score_text_difference, input="Hello world!", output="Hello there!", changes="words")
    >>> panel.run().score
    0.6666666666666666
    >>> [run.step for run in panel.result.trace]
    ['analyze', 'generate_score', 'generate_reason']
    """
    form = ScorerForm.of(scorer)
    inputs, options = form.split(columns)
    if options:
        form = ScorerForm.of(partial(scorer, **options))
    if df is None:
        names = form.needs or tuple(inputs) or USUAL_COLUMNS[:2]
        return Playground(form, names, judge=judge, inputs=inputs)
    require_frame(df, "playground")
    for name, column in inputs.items():
        if not isinstance(column, Hashable):
            raise ArgumentTypeError.from_value(f"{name}=", column, "the name of a column", f"Pass {name}='name'.")
    places = {**{need: need for need in form.needs or _text_columns(df, inputs)}, **form.columns, **inputs}
    form.check_columns(df, places)
    for name in () if form.needs else places:
        require(df, places[name], form.label, name)
    return Playground(form, tuple(places), judge=judge, df=df.copy(deep=WRITES_REACH), columns=places)


class Playground(ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """A panel with a scorer's inputs and options, a button, and what came out. Made by `playground`.

    Attributes
    ----------
    result : ScoreResult or None
        What the last run gave; None before the first, and where it raised.
    error : BaseException or None
        What the last run raised.
    inputs, options : dict
        The row and the options as they are set now, by name. A cell of the frame that was not edited is the cell itself.
    stale : bool
        Whether an input or an option has changed since the last run; the panel says so too.
    row : int or None
        The position of the picked row; can be set.
    """

    def __init__(
        self,
        form: ScorerForm,
        names: tuple[str, ...],
        *,
        judge: JudgeLike | None = None,
        inputs: Mapping[str, Any] | None = None,
        df: pd.DataFrame | None = None,
        columns: Mapping[str, Hashable] | None = None,
    ) -> None:
        """Lay out the panel."""
        self.result: ScoreResult | None = None
        self.error: BaseException | None = None
        self._form, self._judge, self._df, self._columns = form, judge, df, columns or {}
        self._ran: tuple[Any, ...] | None = None
        self._cells: dict[str, tuple[str, Any]] = {}
        self._areas = {name: text_area(name, self._columns.get(name, name)) for name in names}
        self._controls = {option.name: Control(option) for option in form.options}
        self._judge_field = field_of(ipywidgets.Text, "judge", placeholder=self._judge_as_given(), tooltip=JUDGE_HELP)
        self._row_field = ipywidgets.BoundedIntText(
            value=0, min=0, max=max(0, self._row_count() - 1), description="Row", layout={"width": "130px", "margin": "2px 8px"}
        )
        self._row_label = ipywidgets.HTML()
        self._button = ipywidgets.Button(description="Run", button_style="primary", icon="play", layout={"width": "120px"})
        self._status = ipywidgets.HTML(layout={"margin": "2px 10px"})
        self._page = ipywidgets.HTML(layout={"margin": "8px 2px"})
        self._output = ipywidgets.Output()
        super().__init__(children=self._laid_out(), layout={"width": "100%"})
        self.add_class("sk-play")
        self._row_field.add_class("sk-inline")
        for name, value in (inputs or {}).items():
            self._put(name, value)
        if self._row_count():
            self._show_row()
        self._row_field.observe(lambda _: self._show_row(), "value")
        for widget in self._watched():
            widget.observe(lambda _: self._mark(), "value")
        self._button.on_click(self._clicked)
        self._mark()

    # --- what is set

    @property
    def inputs(self) -> dict[str, Any]:
        """The row as it will be scored."""
        found = {}
        for name, area in self._areas.items():
            text, cell = self._cells.get(name, ("", ""))
            found[name] = cell if area.value == text else area.value
        return found

    @property
    def options(self) -> dict[str, Any]:
        """The options as they are set, those that are bound in code too."""
        return {**self._form.fixed, **{name: control.value for name, control in self._controls.items()}}

    @property
    def row(self) -> int | None:
        """The position of the picked row in the frame; None without rows."""
        return int(self._row_field.value) if self._row_count() else None

    @row.setter
    def row(self, position: int) -> None:
        """Pick a row."""
        if not 0 <= position < self._row_count():
            raise OptionRangeError.from_value(
                "row", position, f"a position from 0 to {self._row_count() - 1}" if self._row_count() else "unset: there are no rows"
            )
        self._row_field.value = position

    @property
    def stale(self) -> bool:
        """Whether what is shown is of other inputs or options than are set now."""
        return self._ran is not None and self._ran != self._state()

    def fill(self, **values: Any) -> None:
        """Set inputs and options by name, as a person would on the panel.

        Raises
        ------
        UnknownOptionError
            For a name that is neither, or a value that cannot be chosen.
        ArgumentTypeError
            For a value of the wrong kind.
        """
        for name, value in values.items():
            if name in self._areas:
                self._put(name, value)
            elif name in self._controls:
                self._controls[name].show(value)
            elif name == "judge" and self._form.judged and isinstance(value, str):
                self._judge_field.value = value
            else:
                raise UnknownOptionError.from_value("fill", name, [*self._areas, *self._controls])

    # --- running

    def run(self) -> ScoreResult:
        """Run the scorer on the inputs, show what came out and return it.

        Raises
        ------
        Exception, KeyboardInterrupt
            What the scorer raises; the panel shows it too, with the steps that had run.
        """
        state = self._state()
        self._button.disabled, self._button.description = True, "Running…"
        self._status.value = _status("Running…")
        self._output.outputs = ()
        self.result, self.error = None, None
        began, told = perf_counter(), []
        try:
            with warnings.catch_warnings(record=True) as told:
                self._try()
        finally:
            seconds = perf_counter() - began
            self._ran = state
            self._show([str(warning.message) for warning in told], seconds)
            self._button.disabled, self._button.description = False, "Run"
        if self.error is not None:
            raise self.error
        assert self.result is not None  # noqa: S101  (a run gives a result or an error)
        return self.result

    def _try(self) -> None:
        """Run; keep the result, or what was raised. What the scorer prints appears under the result."""
        with self._output:
            try:
                scorer = self._form.bound(self.options, self._judge_field.value.strip() or None)
                self.result = run_one(scorer, judge=self._judge, **{**self._other_cells(), **self.inputs})
            except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  (shown on the panel, and raised by `run`)
                self.error = error

    def _clicked(self, _: object) -> None:
        """Run; an error is on the panel, and a callback has nobody to raise it to."""
        with contextlib.suppress(Exception, KeyboardInterrupt):
            self.run()

    def _other_cells(self) -> dict[str, Any]:
        """Return the picked row's other cells, for a callable that does not say what it reads."""
        if self._df is None or self._form.needs or self.row is None:
            return {}
        taken = {*self._areas, *self._columns.values(), *self.options, "judge"}
        columns = self._df.columns[~self._df.columns.duplicated(keep=False)]
        names = [column for column in columns if isinstance(column, str) and column not in taken]
        return {name: self._df[name].iloc[self.row] for name in names}

    # --- what is shown

    def _laid_out(self) -> list[Any]:
        """Return the panel's parts from top to bottom."""
        about = f'<p class="sk-faint">{capped(self._form.about)}</p>' if self._form.about else ""
        parts = [ipywidgets.HTML(f"{STYLE}<h3>{html.escape(self._form.label)}</h3>{about}")]
        if self._row_count():
            back, forth = (ipywidgets.Button(description=word, layout={"width": "90px"}) for word in ("Previous", "Next"))
            back.on_click(lambda _: self._step(-1))
            forth.on_click(lambda _: self._step(1))
            parts.append(in_a_row([back, self._row_field, forth, self._row_label], "center"))
        elif self._df is not None:
            parts.append(ipywidgets.HTML('<p class="sk-faint">The frame has no rows to pick from.</p>'))
        parts.append(in_a_row(self._areas.values()))
        settings = [*(control.widget for control in self._controls.values()), *([self._judge_field] if self._form.judged else [])]
        if settings:
            parts.append(in_a_grid(settings))
        if self._form.fixed:
            told = ", ".join(f"{name} = {shown(value)}" for name, value in self._form.fixed.items())
            parts.append(ipywidgets.HTML(f'<p class="sk-faint">Set in code: {capped(told)}</p>'))
        return [*parts, in_a_row([self._button, self._status], "center"), self._page, self._output]

    def _show(self, notes: list[str], seconds: float) -> None:
        """Show what the run gave, or what it raised."""
        lower = self._form.measure in LOWER_IS_BETTER
        trace = self.result.trace if self.result is not None else getattr(self.error, "trace", ())
        if self.result is not None:
            head = result_html(self.result, measure=self._form.measure, scale=self._scale(), seconds=seconds, notes=notes)
        else:
            head = error_html(self.error or RuntimeError("The run ended without a result."))
        self._page.value = head + steps_html(trace, lower_is_better=lower)
        self._mark()

    def _scale(self) -> float | None:
        """Return the score's upper end; None where it is not known."""
        scale = self.options.get("scale", 1.0 if direction(self._form.measure) else None)
        return float(scale) if isinstance(scale, (int, float)) else None

    def _mark(self) -> None:
        """Say whether what is shown is of the inputs as they are."""
        if self._ran is None:
            text = "Not run yet." if not self._form.judged else "Not run yet. A run asks the judge about this one row."
            self._status.value = _status(text)
        elif self.stale:
            self._status.value = _status("The result below is of earlier inputs. Run again.", alert=True)
            self._page.add_class("sk-stale")
        else:
            self._status.value = _status("Stopped." if isinstance(self.error, KeyboardInterrupt) else "Failed." if self.error else "Done.")
            self._page.remove_class("sk-stale")

    def _watched(self) -> list[Any]:
        """Return the widgets that a result depends on: all that can be set."""
        return [*self._areas.values(), *(control.widget for control in self._controls.values()), self._judge_field, self._row_field]

    def _state(self) -> tuple[Any, ...]:
        """Return everything that is set, to tell whether it has changed."""
        return tuple(widget.value for widget in self._watched())

    def _judge_as_given(self) -> str:
        """Say who judges where the field is empty."""
        given = self._form.judge if self._form.judge is not None else self._judge
        if given is None:
            return "as the environment says"
        return f"as given: {shown(str(given if isinstance(given, str) else getattr(given, 'label', given)))}"

    # --- rows

    def _row_count(self) -> int:
        """Return how many rows there are to pick from."""
        return 0 if self._df is None else len(self._df)

    def _step(self, by: int) -> None:
        """Go to a neighbouring row; the first and the last have one neighbour."""
        self._row_field.value = min(max(self._row_field.value + by, 0), self._row_count() - 1)

    def _show_row(self) -> None:
        """Put the picked row's cells into the text areas."""
        assert self._df is not None  # noqa: S101  (the field is shown with a frame alone)
        position = self._row_field.value
        for name, column in self._columns.items():
            if column in self._df.columns:
                self._put(name, self._df[column].iloc[position])
        label = self._df.index[position]
        named = "" if label == position else f", index {capped(shown(label))}"
        self._row_label.value = f'<p class="sk-faint">of {self._row_count():,} rows, counted from 0{named}</p>'

    def _put(self, name: str, cell: Any) -> None:
        """Show a cell's text; the cell itself is scored as long as the text is not edited."""
        text = cell_text(cell)
        area = self._areas[name]
        area.value = text
        area.placeholder = "(missing)" if is_missing(cell) else "(empty)"
        self._cells[name] = (text, cell)

    # --- where there are no widgets

    def summary(self) -> str:
        """Return in a few lines which scorer this is, how it is set, and what the last run gave."""
        options = ", ".join(f"{name}={_brief(repr(value))}" for name, value in self._shown_options().items())
        lines = [f"Playground of {self._form.label}({options})"]
        lines += [f"{name}: {_brief(value)}" for name, value in self.inputs.items()]
        if self.error is not None:
            lines.append(f"{type(self.error).__name__}: {_brief(self.error)}")
        elif self.result is None:
            lines.append("Not run yet: panel.run() runs it.")
        else:
            told = self.result.error or number(self.result.score)
            lines.append(f"score: {told}{'; ' if self.result.reason else ''}{_brief(self.result.reason or '')}")
        return "\n".join([*lines, "The result is of earlier inputs."] if self.stale else lines)

    def _shown_options(self) -> dict[str, Any]:
        """Return the options for a summary, which no text that should be a number must break."""
        try:
            return self.options
        except ArgumentTypeError:
            return {name: control.widget.value for name, control in self._controls.items()}

    def __repr__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """Return the widget, and the summary for what cannot show widgets."""
        text = self.summary()
        bundle: dict[str, Any] = {**super()._repr_mimebundle_(**kwargs)}
        return bundle | {"text/plain": text, "text/html": f'<pre style="white-space: pre-wrap">{html.escape(text)}</pre>'}


def _text_columns(df: pd.DataFrame, inputs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return which columns get a text area where the scorer does not say what it reads."""
    if inputs:
        return ()
    names = [column for column in df.columns if isinstance(column, str)]
    return tuple([name for name in USUAL_COLUMNS if name in names] or names[:MOST_COLUMNS])


def _status(text: str, *, alert: bool = False) -> str:
    """Return the line beside the button."""
    return f'<p role="status" class="{"sk-alert" if alert else "sk-faint"}">{html.escape(text)}</p>'


def _brief(value: object) -> str:
    """Return a value on one line, shortened."""
    text = " ".join(without_surrogates(str(value)).split())
    return text if len(text) <= SUMMARY_CHARACTERS else text[: SUMMARY_CHARACTERS - 1] + "…"
