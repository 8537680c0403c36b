"""generate: every item under every variant of a prompt, asked of a model or of a function, as a long frame."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from scorekit.analysis.statistics import check_whole
from scorekit.columns import joined, require_frame
from scorekit.drive import BACKLOG, CANCELLED, POLL_S, AsksJudge, Stopped
from scorekit.errors import ArgumentTypeError, JudgeSetupError
from scorekit.evals.calls import Called, Calls, next_event, told
from scorekit.evals.items import Layout, item_ids, text_column
from scorekit.evals.variants import Rendered, Template, Unrendered, read_variants, render_all
from scorekit.judge.client import resolve_judge
from scorekit.judge.local import LocalJudge
from scorekit.judge.loop import interruptible, wait_any
from scorekit.judge.replies import Answer, Request, Text
from scorekit.progress import SHARED, Progress, progress_bar
from scorekit.texts import without_surrogates

if TYPE_CHECKING:
    from concurrent.futures import Future

COLUMNS: Final = ("rendered_prompt", "output", "finish_reason", "input_tokens", "output_tokens", "seconds", "error", "reason")
"""The columns that `generate` adds, after those that tell the rows apart."""

NUMBERS: Final = frozenset({"input_tokens", "output_tokens", "seconds"})
ASKED_TOGETHER: Final = 64
CALLED_TOGETHER: Final = 8

Model = AsksJudge | str | Callable[[Any], Any]
"""A judge, the name of a model, or a function from the prompt to the output."""

Take = Callable[[int, Answer], None]
"""Takes the number of a question and its answer."""

Asking = Callable[["_Questions", Take, Progress, Callable[[], None]], None]
"""Asks all questions, gives away each answer, and calls the function, which moves the bar, every now and then."""


def generate(
    df: pd.DataFrame,
    /,
    *,
    prompts: Mapping[str, Template],
    model: Model | None = None,
    item: Hashable | None = None,
    repeats: int = 1,
    concurrency: int | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Return a long frame with the output of a model for every item under every variant of a prompt.

    The answers of a `Judge` go through its cache: the same call again, after an interrupt too, asks only what has not been answered. Equal prompts,
    of two variants or two items, are asked once; with ``repeats``, once a repeat. What a function gives is not kept.

    Parameters
    ----------
    df
        The items, one a row; never changed. No rows give no rows, with the final columns and dtypes, and ask nothing.
    prompts
        The variants by name. A template is jinja text over the row's columns (``"Answer briefly: {{ input }}"``), sent as one user message; or a list of
        messages whose contents are such text (``[{"role": "system", "content": "..."}, {"role": "user", "content": "{{ input }}"}]``); or a function
        from the row, a dict, to a text or to messages. It is your application's own prompt, so values are rendered as they are, without the tags that
        the prompts of judges have around them; what a value says is never read as template. A missing cell is false and can be tested for
        (``{% if context %}``); where a template prints one, the row is not asked.
    model
        Whom to ask: a `Judge`, with its temperature, seed, budget and cache; a model's name, which gives a `Judge`; or a function, sync or async, from
        the prompt (a text, or messages where the variant has messages) to the output. None reads the environment, as scorers do.
    item
        The column that tells items apart: no id is missing or there twice. None adds a column ``item`` with the index's labels.
    repeats
        How often to ask, 1 or more, each with the next seed. More than 1 adds a column ``repeat``, from 0. Answers differ where the judge has a
        ``temperature`` above its default, 0.
    concurrency
        How many calls of a function run at once; 8 by default. A `Judge` has its own.
    progress
        Show a bar when it takes more than 2 seconds.

    Returns
    -------
    pandas.DataFrame
        On a fresh index, the rows of an item together, in the order of ``prompts``. The items' own columns, and

        - ``item`` (the index's dtype) without ``item=``, ``variant`` (string), with ``repeats`` ``repeat`` (int64),
        - ``rendered_prompt`` (string): a text, or messages as JSON, which scorers read like messages,
        - ``output`` (string): what was said, the empty text too; missing where there is an error,
        - ``finish_reason`` (string): ``"stop"``, ``"length"`` for a text that was cut off, which is kept; missing for a function,
        - ``input_tokens``, ``output_tokens``, ``seconds`` (float64): of the call that gave the output, the same when it comes from the cache
          (``judge.usage()`` tells what was spent); NaN where unknown,
        - ``error``, ``reason`` (string): one of ``scorekit.columns.ERROR_CODES`` and why, missing where there is an output. ``missing_input``: the prompt
          prints a missing cell. ``target_error``: the function raised.

    Raises
    ------
    MissingColumnError, ColumnConflictError, ArgumentTypeError, OptionRangeError, ScorerDefinitionError, JudgeSetupError
        Before any request: a template that reads no column, a column that would be there twice, a setting of the wrong kind, no model. What a function
        among ``prompts`` raises is raised then, too.
    KeyboardInterrupt
        On Ctrl-C. Whatever is raised once rows were finished carries them as ``error.partial``; the others have the error ``cancelled``.

    Notes
    -----
    Cost: a call for each distinct prompt and repeat. A text is taken as it comes: no JSON is asked for, the thoughts of a reasoning model stay where
    the endpoint leaves them in the text, and a cut text is not asked for again.

    Examples
    --------
    >>> df = pd.DataFrame({"id": ["q1", "q2"], "input": ["What boils at 100 °C?", "Who wrote Hamlet?"]})
    >>> prompts = {"plain": "{{ input }}", "brief": "In one word: {{ input }}"}
    >>> long = generate(df, prompts=prompts, model=lambda prompt: f"{len(prompt)} characters read", item="id")
    >>> long[["id", "variant", "rendered_prompt", "output"]]
       id variant                      rendered_prompt              output
    0  q1   plain                What boils at 100 °C?  21 characters read
    1  q1   brief  In one word: What boils at 100 °C?  34 characters read
    2  q2   plain                    Who wrote Hamlet?  17 characters read
    3  q2   brief      In one word: Who wrote Hamlet?  30 characters read
    """
    require_frame(df, "generate")
    check_whole("repeats", repeats, 1)
    ask = _asking(model, concurrency)
    variants = read_variants(prompts, df)
    layout = Layout(df, item_ids(df, item, "generate"), "variant", tuple(variant.name for variant in variants), repeats)
    layout.refuse_conflicts(COLUMNS, "generate")
    questions = _Questions(render_all(variants, df), [variant.name for variant in variants], repeats)
    shared = SHARED.get()
    counters = shared if shared is not None else Progress()
    counters.add(rows=layout.count - int(questions.sizes.sum()))
    answers: list[Answer | None] = [None] * len(questions.requests)

    def take(number: int, answer: Answer) -> None:
        answers[number] = answer
        failed = int(answer.error is not None)
        counters.add(rows=int(questions.sizes[number]), errors=failed, tokens=answer.input_tokens + answer.output_tokens)

    def finish() -> pd.DataFrame:
        frame = layout.frame()
        return joined(frame, frame, [questions.results(answers)])

    try:
        with (
            interruptible(),
            progress_bar(layout.count, "generate", counters, shown=progress and shared is None and layout.count > 0) as show,
        ):
            ask(questions, take, counters, show)
    except (Exception, KeyboardInterrupt, SystemExit, Stopped) as error:
        finished = finish()
        error.partial = finished  # type: ignore[union-attr]
        if isinstance(error, KeyboardInterrupt) and not error.args:
            done = layout.count - int((finished["error"] == "cancelled").sum())
            paid = "" if callable(model) else ", and paid answers are in the cache: run the same call again to go on from here"
            error.args = (f"Stopped: {done} of {layout.count} rows are done. They are in error.partial{paid}.",)
        raise
    return finish()


class _Questions:
    """What to ask for the rows of the long frame: each distinct prompt once a repeat."""

    def __init__(self, rendered: Sequence[Rendered | Unrendered], names: Sequence[str], repeats: int) -> None:
        """Give each distinct prompt its number; rows without one have none."""
        self.rendered = rendered
        self.repeats = repeats
        self.prompts: list[Rendered] = []
        self.requests: list[Request] = []
        self.numbers = np.full(len(rendered) * repeats, -1, dtype=np.intp)
        first: dict[Rendered | tuple[str, ...], int] = {}
        for place, prompt in enumerate(rendered):
            if isinstance(prompt, Unrendered):
                continue
            number = first.setdefault(_key(prompt), len(self.requests))
            if number == len(self.requests):
                step = f"generate.{names[place % len(names)]}"
                self.prompts += [prompt] * repeats
                self.requests += [Request(_messages(prompt), Text, step=step, repeat=repeat) for repeat in range(repeats)]
            self.numbers[place * repeats : (place + 1) * repeats] = np.arange(number, number + repeats)
        self.sizes = np.bincount(self.numbers[self.numbers >= 0], minlength=len(self.requests))

    def results(self, answers: Sequence[Answer | None]) -> pd.DataFrame:
        """Return the result columns of the long frame."""
        rows = [self._row(answers, number, place // self.repeats) for place, number in enumerate(self.numbers.tolist())]
        columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(COLUMNS, ())
        typed = {name: pd.Series(values, dtype="float64") if name in NUMBERS else text_column(values) for name, values in columns.items()}
        return pd.DataFrame(typed, index=range(len(rows)))

    def _row(self, answers: Sequence[Answer | None], number: int, place: int) -> tuple[Any, ...]:
        """Return the result of one row, in the order of the columns."""
        prompt = self.rendered[place]
        if isinstance(prompt, Unrendered):
            return (None, None, None, None, None, None, "missing_input", prompt.reason)
        shown = prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False)
        answer = answers[number] or Answer(error="cancelled", reason=CANCELLED)
        if not isinstance(answer.value, Text):
            return (shown, None, None, None, None, None, answer.error or "reply_invalid", answer.reason)
        said = answer.value
        return (shown, said.text, said.finish_reason, said.input_tokens, said.output_tokens, said.seconds, None, None)


def _key(prompt: Rendered) -> str | tuple[str, ...]:
    """Return what two equal prompts have in common; a function gets messages where another gets a text."""
    return prompt if isinstance(prompt, str) else tuple(part for message in prompt for part in (message["role"], message["content"]))


def _messages(prompt: Rendered) -> tuple[Mapping[str, str], ...]:
    """Return a prompt as the messages that are sent."""
    return ({"role": "user", "content": prompt},) if isinstance(prompt, str) else prompt


def _asking(model: Model | None, concurrency: int | None) -> Asking:
    """Return how to ask a model.

    Raises
    ------
    ArgumentTypeError, OptionRangeError, JudgeSetupError
        When it is none, has a concurrency of its own, or cannot be asked.
    """
    if concurrency is not None:
        check_whole("concurrency", concurrency, 1)
    judged = model is None or isinstance(model, (str, LocalJudge)) or callable(getattr(model, "submit", None))
    if isinstance(model, type) or not (judged or callable(model)):
        raise ArgumentTypeError.from_value("model", model, "a Judge, the name of a model, or a function from the prompt to the output")
    if callable(model) and not judged:
        return partial(_call, model, CALLED_TOGETHER if concurrency is None else concurrency)
    if concurrency is not None:
        msg = "concurrency= is for a model that is a function; set that of a judge where it is made: Judge(..., concurrency=...)."
        raise ArgumentTypeError(msg)
    judge = resolve_judge(model)
    if isinstance(judge, LocalJudge):
        msg = (
            "generate needs a language model, which the local judge is not. Pass model=sk.Judge(...) or a function, or set OPENAI_API_KEY, "
            "OPENAI_BASE_URL or SCOREKIT_JUDGE."
        )
        raise JudgeSetupError(msg)
    if hasattr(judge, "check_ready"):
        judge.check_ready()
    return partial(_ask, judge)


def _ask(judge: AsksJudge, questions: _Questions, take: Take, counters: Progress, show: Callable[[], None]) -> None:
    """Ask a judge, so many at a time that it does not run short."""
    waiting: set[Future[list[Answer]]] = set()
    started = answered = 0

    def took(first: int, index: int, answer: Answer) -> None:
        nonlocal answered
        take(first + index, answer)
        answered += 1  # always on the judge's thread, so it needs no lock

    try:
        while started < len(questions.requests) or waiting:
            if started < len(questions.requests) and started - answered < BACKLOG:
                piece = questions.requests[started : started + ASKED_TOGETHER]
                waiting.add(judge.submit(piece, rank=started // ASKED_TOGETHER, on_answer=partial(took, started)))
                started += len(piece)
            else:
                for future in wait_any(list(waiting), POLL_S):
                    waiting.discard(future)
                    future.result()
            if counters.stopped:
                raise Stopped
            show()
    finally:
        for future in waiting:
            future.cancel()


def _call(
    function: Callable[[Any], Any], concurrency: int, questions: _Questions, take: Take, counters: Progress, show: Callable[[], None]
) -> None:
    """Call a function with each prompt, a few at a time."""
    events: SimpleQueue[Called] = SimpleQueue()
    given = [prompt if isinstance(prompt, str) else [dict(message) for message in prompt] for prompt in questions.prompts]
    calls = Calls([partial(function, prompt) for prompt in given], concurrency, events)
    try:
        for _ in given:
            while (called := next_event(events)) is None:
                if counters.stopped:
                    raise Stopped
                show()
            take(called.index, _read(called))
            show()
    finally:
        calls.stop()


def _read(called: Called) -> Answer:
    """Return what a function gave as an answer; what it raises to end the process is raised."""
    if called.error is not None:
        if not isinstance(called.error, Exception):
            raise called.error
        return Answer(error="target_error", reason=f"The function raised {told(called.error)}", seconds=called.seconds)
    if not isinstance(called.value, str):
        return Answer(error="not_text", reason=f"The function returned {type(called.value).__name__}, not text.", seconds=called.seconds)
    text = without_surrogates(called.value)
    said = Text(text=text, finish_reason=None, input_tokens=None, output_tokens=None, seconds=called.seconds)
    return Answer(value=said, text=text, seconds=called.seconds)
