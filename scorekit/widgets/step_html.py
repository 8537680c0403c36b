"""A row's result and what each step did, as HTML: pure functions. Every text is escaped; no row's text is ever HTML."""

from __future__ import annotations

import html
import json
import math
import traceback
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from scorekit.columns import BANDS, HIGHER_IS_BETTER, LOWER_IS_BETTER, bands
from scorekit.errors import ScorekitError
from scorekit.widgets.panels import LIKENESS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from scorekit.run import ScoreResult
    from scorekit.trace import StepRun

MOST_CHARACTERS: Final = 20_000
"""A text with more is cut, and says how many characters are left out."""

MOST_OF_WORD: Final = 80
MOST_ITEMS: Final = 200
"""A list with more items is cut, and says how many are left out."""

DOERS: Final = {
    "judge": "asked the judge",
    "local": "local stand-in for the judge",
    "code": "code",
    "skipped": "nothing to ask",
}
LOCAL_NOTE: Final = "the built-in stand-in, which is rough: it sees the subject, not whether it is answered"

STYLE: Final = """<style>
.sk-play { --sk-ink: var(--jp-content-font-color1, #24292f); --sk-faint: var(--jp-content-font-color2, #5b6470);
  --sk-line: var(--jp-border-color2, #d9dde2); --sk-paper: var(--jp-layout-color1, #fff); --sk-shade: rgba(128, 138, 150, .12);
  --sk-accent: var(--jp-brand-color1, #0072b2); --sk-mono: var(--jp-code-font-family, ui-monospace, Menlo, Consolas, monospace);
  color: var(--sk-ink); font-size: 13px; line-height: 1.5; box-sizing: border-box; padding: 4px 0 8px; }
.sk-play .widget-html, .sk-play .widget-html-content { line-height: 1.5; font-size: 13px; overflow: hidden; color: var(--sk-ink); height: auto; }
.sk-play h3 { margin: 0; font-size: 17px; font-weight: 600; line-height: 1.3; overflow-wrap: anywhere; }
.sk-play h4 { margin: 10px 0 3px; font-size: 11px; font-weight: 600; letter-spacing: .04em; text-transform: uppercase; color: var(--sk-faint); }
.sk-play p { margin: 2px 0; overflow-wrap: anywhere; }
.sk-play .sk-faint { color: var(--sk-faint); }
.sk-play pre { margin: 0; padding: 8px 10px; background: var(--sk-shade); color: var(--sk-ink); border-radius: 4px; font: 12px/1.5 var(--sk-mono);
  white-space: pre-wrap; overflow-wrap: anywhere; word-break: normal; max-height: 280px; overflow-y: auto; }
.sk-play .sk-card { border: 1px solid var(--sk-line); border-radius: 6px; background: var(--sk-paper); padding: 12px 14px; margin: 0 0 8px; }
.sk-play .sk-score { display: flex; flex-wrap: wrap; align-items: baseline; gap: 2px 14px; }
.sk-play .sk-number { font-size: 30px; font-weight: 600; line-height: 1.2; font-variant-numeric: tabular-nums; }
.sk-play .sk-bar { height: 8px; border-radius: 4px; background: var(--sk-shade); margin: 8px 0; overflow: hidden; }
.sk-play .sk-bar div { height: 100%; background: var(--sk-accent); }
.sk-play .sk-chip { display: inline-block; padding: 0 8px; border-radius: 9px; font-size: 12px; line-height: 18px; font-weight: 600; white-space: nowrap; }
.sk-play .sk-good { background: #0072b2; color: #fff; } .sk-play .sk-bad { background: #b84c00; color: #fff; }
.sk-play .sk-neutral { background: #b9bec5; color: #24292f; }
.sk-play .sk-error { border-left: 4px solid #b84c00; }
.sk-play details { margin: 0; } .sk-play summary { cursor: pointer; }
.sk-play .sk-step > summary { display: flex; flex-wrap: wrap; gap: 0 12px; align-items: baseline; list-style-position: inside; }
.sk-play .sk-step > summary::before { content: "▸"; width: 10px; color: var(--sk-faint); } .sk-play .sk-step[open] > summary::before { content: "▾"; }
.sk-play .sk-step > summary b { font-size: 14px; }
.sk-play .sk-cost { margin-left: auto; color: var(--sk-faint); font-variant-numeric: tabular-nums; }
.sk-play .sk-role > summary { color: var(--sk-faint); font-size: 12px; padding: 2px 0; }
.sk-play table { border-collapse: collapse; width: 100%; table-layout: auto; margin: 0; font-size: 13px; }
.sk-play th, .sk-play td { text-align: left; vertical-align: top; padding: 4px 12px 4px 0; border: 0; overflow-wrap: anywhere; white-space: pre-wrap;
  background: none; color: var(--sk-ink); }
.sk-play tr { background: none !important; } .sk-play tr + tr > * { border-top: 1px solid var(--sk-line); }
.sk-play th { font-weight: 400; color: var(--sk-faint); white-space: nowrap; width: 1%; }
.sk-play td.sk-tight { width: 1%; white-space: nowrap; color: var(--sk-faint); }
.sk-play .widget-inline-hbox:not(.sk-inline) { flex-direction: column; align-items: stretch; height: auto; }
.sk-play .widget-inline-hbox > .widget-label { width: auto; max-width: 100%; margin: 0; text-align: left; color: var(--sk-faint); font-size: 12px; height: 22px;
  line-height: 22px; flex: none; }
.sk-play .sk-inline > .widget-label { margin-right: 8px; height: 28px; line-height: 28px; }
.sk-play .widget-inline-hbox:not(.sk-inline) > :is(input:not([type=checkbox]), select, textarea, .widget-readout) { flex: none; width: 100%; min-width: 0;
  margin: 0; box-sizing: border-box; }
.sk-play .widget-inline-hbox > select { height: 28px; }
.sk-play textarea { font-size: 13px; line-height: 1.45; resize: vertical; }
.sk-play .widget-checkbox { align-self: flex-end; }
.sk-play .sk-stale .sk-card { opacity: .7; }
.sk-play .sk-alert { display: inline-block; padding: 2px 10px; border-radius: 12px; background: #b84c00; color: #fff; font-weight: 600; }
</style>"""


def result_html(
    result: ScoreResult, *, measure: str = "", scale: float | None = None, seconds: float = 0.0, notes: Sequence[str] = ()
) -> str:
    """Return the score, its reason and what the row cost.

    Parameters
    ----------
    result
        What `run_one` gave.
    measure
        The shipped measure, whose bands and direction are told; another name has none.
    scale
        What the score was multiplied by: the bar reaches from 0 to it. None where it is not known.
    seconds
        How long the run took.
    notes
        Warnings that the run gave.

    Examples
    --------
    >>> from scorekit import run_one, score_text_difference
    >>> page = result_html(run_one(score_text_difference, input="a", output="a"), measure="text_difference", scale=1.0)
    >>> "The texts are equal." in page, "1 = identical" in page
    (True, True)
    """
    scored = not math.isnan(result.score)
    head = _score(result.score, measure, scale) if scored else f'<b class="sk-number">Not scored</b>{_chip("sk-bad", result.error)}'
    bar = ""
    if scored and scale and 0 <= result.score <= scale:
        bar = f'<div class="sk-bar"><div style="width: {100 * result.score / scale:.2f}%"></div></div>'
    reason = f"<p>{capped(result.reason)}</p>" if result.reason else '<p class="sk-faint">The scorer gives no reason.</p>'
    told = "".join(f'<p class="sk-faint">Note: {capped(note)}</p>' for note in notes)
    kind = "" if scored else " sk-error"
    costs = f'<p class="sk-faint">{html.escape(_costs(result, seconds))}</p>'
    return f'<div class="sk-card{kind}"><div class="sk-score">{head}</div>{bar}{reason}{told}{costs}</div>'


def _score(score: float, measure: str, scale: float | None) -> str:
    """Return a score in large type, with its band and direction."""
    of = "" if scale is None else f'<span class="sk-faint">of {number(scale)}</span>'
    band = f"<span>{html.escape(_band(score, measure, scale))}</span>"
    return f'<b class="sk-number" title="{score!r}">{number(score)}</b>{of}{band}{_faint(html.escape(direction(measure, scale)))}'


def error_html(error: BaseException) -> str:
    """Return what a run raised, in plain words; the traceback of what is no error of ours can be opened.

    Examples
    --------
    >>> "ZeroDivisionError: &lt;b&gt;" in error_html(ZeroDivisionError("<b>"))
    True
    """
    if isinstance(error, KeyboardInterrupt):
        head, words = "Stopped", "The run was interrupted before it had a result."
    elif isinstance(error, ScorekitError):
        head, words = "Cannot run", str(error)
    else:
        head, words = "The scorer raised an error", f"{type(error).__name__}: {error}".rstrip(": ")
    notes = "".join(f'<p class="sk-faint">{capped(note)}</p>' for note in getattr(error, "__notes__", ()))
    more = ""
    if isinstance(error, Exception) and not isinstance(error, ScorekitError):
        lines = "".join(traceback.format_exception(error))
        more = f'<details class="sk-role"><summary>Traceback</summary><pre>{capped(lines, tail=True)}</pre></details>'
    return (
        f'<div class="sk-card sk-error" role="alert"><div class="sk-score"><h3>{head}</h3></div><p>{capped(words)}</p>{notes}{more}</div>'
    )


def steps_html(trace: Sequence[StepRun], *, lower_is_better: bool = False) -> str:
    """Return a section for each step: what it asked, what was replied, its fields, time and cost.

    Parameters
    ----------
    trace
        ``ScoreResult.trace``, or the ``trace`` of an error.
    lower_is_better
        Whether a "yes" is bad: it colours the verdicts.
    """
    repeats = len({run.repeat for run in trace}) > 1
    scorers = len({run.scorer for run in trace}) > 1
    sections = []
    known: dict[tuple[str, int], dict[str, Any]] = {}
    for run in trace:
        fields = known.setdefault((run.scorer, run.repeat), {})
        fields |= run.fields
        name = f"{run.scorer}: {run.step}" if scorers else run.step
        title = f"{name}, repeat {run.repeat + 1}" if repeats else name
        is_open = " open" if run.repeat == 0 else ""
        sections.append(
            f'<details class="sk-card sk-step"{is_open}><summary><b>{html.escape(title)}</b> <span class="sk-faint">{DOERS[run.kind]}</span>'
            f'<span class="sk-cost">{html.escape(step_costs(run))}</span></summary>{_asked(run)}{_given(run, fields, lower=lower_is_better)}</details>'
        )
    return "".join(sections)


def _asked(run: StepRun) -> str:
    """Return the messages and the reply of a step."""
    if not run.messages:
        return ""
    parts = []
    for i, message in enumerate(run.messages, start=1):
        role, text = str(message.get("role", "")), str(message.get("content", ""))
        is_open = " open" if i == len(run.messages) else ""
        summary = f"<summary>{html.escape(role)}, {len(text):,} characters</summary>"
        parts.append(f'<details class="sk-role"{is_open}>{summary}<pre>{capped(text)}</pre></details>')
    reply = '<p class="sk-faint">No reply came.</p>' if run.reply is None else f"<pre>{capped(run.reply)}</pre>"
    return f"<h4>Asked</h4>{''.join(parts)}<h4>Reply</h4>{reply}"


def _given(run: StepRun, known: Mapping[str, Any], *, lower: bool) -> str:
    """Return the fields of a step, or why there are none."""
    stopped = ""
    if run.error is not None:
        stopped = f"<h4>Ended here</h4><p>{_chip('sk-bad', run.error)} {capped(run.reason or '')}</p>"
    fields = {name: value for name, value in run.fields.items() if value is not None}
    if not fields:
        return stopped or '<p class="sk-faint">It gave no fields.</p>'
    return f"<h4>Gave</h4>{_fields(fields, known, lower=lower)}{stopped}"


def _fields(fields: Mapping[str, Any], known: Mapping[str, Any], *, lower: bool) -> str:
    """Return fields by name: numbers and texts in rows, lists of texts numbered, verdicts beside their statements, all else as JSON."""
    rows, blocks = [], []
    for name, value in fields.items():
        label = html.escape(str(name))
        if isinstance(value, (bool, int, float)):
            rows.append(f"<tr><th>{label}</th><td>{html.escape(number(value))}</td></tr>")
        elif isinstance(value, str):
            rows.append(f"<tr><th>{label}</th><td>{capped(value) or _faint('(empty)')}</td></tr>")
        elif _are(value, str):
            blocks.append(_block(label, _numbered((i, [_cell(item)]) for i, item in enumerate(value, start=1)), len(value)))
        elif _are(value, dict) and all("result" in item for item in value):
            blocks.append(_block(label, _numbered(_verdicts(value, known.get("statements"), lower=lower)), len(value)))
        else:
            blocks.append(f"<p>{label}</p><pre>{capped(as_json(value))}</pre>")
    return (f"<table>{''.join(rows)}</table>" if rows else "") + "".join(blocks)


def _block(label: str, table: str, count: int) -> str:
    """Return a list under its name."""
    left = f'<p class="sk-faint">… and {count - MOST_ITEMS:,} more</p>' if count > MOST_ITEMS else ""
    return f'<p class="sk-faint">{label} ({count:,})</p>{table}{left}'


def _numbered(items: Iterable[tuple[Any, Sequence[str]]]) -> str:
    """Return numbered lines as a table; the cells are HTML already."""
    rows = [
        f'<tr><td class="sk-tight">{html.escape(str(place))}</td>{"".join(cells)}</tr>'
        for _, (place, cells) in zip(range(MOST_ITEMS), items, strict=False)
    ]
    return f"<table>{''.join(rows)}</table>"


def _verdicts(results: Sequence[Mapping[str, Any]], statements: Any, *, lower: bool) -> Iterable[tuple[Any, Sequence[str]]]:
    """Return for each verdict its number, its word, and its statement with the reason."""
    texts = statements if isinstance(statements, list) else []
    looks = {"yes": "sk-bad" if lower else "sk-good", "no": "sk-good" if lower else "sk-bad"}
    for place, result in enumerate(results, start=1):
        at = result.get("statement", place)
        text = texts[at - 1] if isinstance(at, int) and 1 <= at <= len(texts) else ""
        word = str(result["result"])
        rest = {name: value for name, value in result.items() if name not in ("statement", "result", "reason")}
        about = "\n".join(part for part in (str(result.get("reason") or ""), as_json(rest) if rest else "") if part)
        chip = f'<td class="sk-tight">{_chip(looks.get(word, "sk-neutral"), word)}</td>'
        yield at, [chip, _cell(text, about)]


def _cell(text: str, about: str = "") -> str:
    """Return a table cell with a text, and what is said about it in a line of its own."""
    return f"<td>{capped(text)}{'<br>' if text and about else ''}{_faint(capped(about))}</td>"


def _faint(text: str) -> str:
    """Return an escaped text in the colour of what is read second."""
    return f'<span class="sk-faint">{text}</span>' if text else ""


def _are(value: Any, kind: type) -> bool:
    """Return whether a value is a list with items, all of one kind."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, kind) for item in value)


def capped(text: str, most: int = MOST_CHARACTERS, *, tail: bool = False) -> str:
    """Return a text escaped; of a long one the beginning (or the end), with a count of what is left out.

    Examples
    --------
    >>> capped("<b>" + "x" * 9, 5)
    '&lt;b&gt;xx … (7 more characters)'
    """
    clean = text.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate cannot be sent
    if len(clean) <= most:
        return html.escape(clean)
    left = f"({len(clean) - most:,} more characters)"
    return f"{left} … {html.escape(clean[-most:])}" if tail else f"{html.escape(clean[:most])} … {left}"


def as_json(value: Any) -> str:
    """Return a value as indented JSON; what JSON cannot hold as Python writes it."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=repr)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def number(value: float) -> str:
    """Return a number as it is read: up to four digits that count.

    Examples
    --------
    >>> number(0.5925925925925926), number(2.0), number(True), number(12345.0)
    ('0.5926', '2', 'true', '12345')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if math.isfinite(value) and value == int(value) else f"{value:.4g}"


def direction(measure: str, scale: float | None = 1.0) -> str:
    """Return what a high score of a shipped measure means; nothing for others."""
    if measure in LOWER_IS_BETTER:
        return "lower is better"
    if measure in LIKENESS and scale is not None:
        return f"{number(scale)} = identical"
    return "higher is better" if measure in HIGHER_IS_BETTER else ""


def step_costs(run: StepRun) -> str:
    """Return a step's time, tokens and calls in words.

    Examples
    --------
    >>> from scorekit.trace import StepRun
    >>> step_costs(StepRun("relevancy", "analyze", "judge", seconds=0.42, input_tokens=210.0, output_tokens=34.0, calls=1))
    '420 ms · 210 tokens in, 34 out · 1 call'
    """
    if run.kind == "skipped":
        return "no call"
    if run.kind != "judge":
        return _seconds(run.seconds)
    if run.cached:
        return "from the cache · no call"
    return f"{_seconds(run.seconds)} · {_tokens(run.input_tokens, run.output_tokens)} · {_calls(run.calls)}"


def _costs(result: ScoreResult, seconds: float) -> str:
    """Return who judged a row and what it cost in all."""
    asked = [run for run in result.trace if run.kind == "judge"]
    parts = [_seconds(seconds)]
    if asked:
        given, taken = sum(run.input_tokens for run in asked), sum(run.output_tokens for run in asked)
        cached = sum(run.cached for run in asked)
        parts += [_tokens(given, taken), _calls(sum(run.calls for run in asked))]
        parts += [f"{cached} of {len(asked)} replies from the cache"] if cached else []
    if result.judge is not None:
        parts.insert(0, f"Judge {result.judge}" + (f" ({LOCAL_NOTE})" if result.judge == "local" else ""))
    return " · ".join(parts)


def _tokens(given: float, taken: float) -> str:
    """Return numbers of tokens in words."""
    return f"{given:,.0f} tokens in, {taken:,.0f} out"


def _calls(count: int) -> str:
    """Return a number of calls in words."""
    return "1 call" if count == 1 else f"{count:,} calls"


def _seconds(seconds: float) -> str:
    """Return a time in words."""
    milliseconds = 1000 * seconds
    return "under 1 ms" if milliseconds < 1 else f"{milliseconds:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _band(score: float, measure: str, scale: float | None) -> str:
    """Return the published label of a score; nothing for measures that have none."""
    if measure not in BANDS or not scale:
        return ""
    return str(bands(pd.DataFrame({f"{measure}_score": [score]}), measure, scale=scale).iloc[0])


def _chip(look: str, word: object) -> str:
    """Return a word on a coloured ground."""
    return f'<span class="sk-chip {look}">{capped(str(word), MOST_OF_WORD)}</span>'
