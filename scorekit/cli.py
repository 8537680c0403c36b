"""The command line: ``scorekit demo``, ``scorekit score``, ``scorekit compare``, ``scorekit store`` and ``scorekit playground``.

Exit codes: 0; 1 when more rows are in error than ``--max-errors`` allows, a mean misses ``--fail-under`` or ``--max``, or ``--fail-on-regression``
objects; 2 for wrong use (an unknown scorer, a missing column or file, an
unknown ending, nothing can be written, no Jupyter to open); that of Jupyter where it was opened; 130 after Ctrl-C; 141 when the reader of a pipe has gone.
"""

from __future__ import annotations

import argparse
import inspect
import math
import os
import sys
import warnings
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import pandas as pd

import scorekit
from scorekit import cli_store
from scorekit.cli_compare import add_arguments, compare_file
from scorekit.cli_gates import add_bounds, missed_bounds, read_bounds
from scorekit.errors import ArgumentTypeError, ScorekitError, UnknownOptionError, shown
from scorekit.files import Table, TableFileError, file_ending, read_table, replacing, require_writable, write_table
from scorekit.terminal import aligned, one_line, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

USED_WRONGLY, INTERRUPTED, PIPE_CLOSED = 2, 130, 141
WORST_ROWS: Final = 5
NO_LIMIT: Final = -1
COLUMNS: Final = ("input", "output", "context")
"""The options that name a column."""
SET_ELSEWHERE: Final = frozenset({"judge", "name", "keep_prompts", "usage", "progress", "prompts"})
"""Arguments of the scorers that ``--option`` does not set: they have a flag, change the columns, or are no text."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code.

    Parameters
    ----------
    argv
        The words after ``scorekit``; by default those of the process.
    """
    arguments = _parser().parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # rows hold any script, and a terminal may not be UTF-8
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            code: int = arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes stdout once more when it ends; that must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except KeyboardInterrupt as error:
        _say(f"scorekit: interrupted. {' '.join(map(str, error.args))}".rstrip())
        return INTERRUPTED
    except ScorekitError as error:
        _say(f"scorekit: error: {printable(error)}")
        return USED_WRONGLY
    return code


def _parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(prog="scorekit", description="Scores with reasons for the outputs of LLM applications.")
    parser.add_argument("--version", action="version", version=f"scorekit {scorekit.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="score the shipped answers of a small model and draw them; needs no key and no network")
    demo.add_argument("-o", "--out", default="scorekit_demo.html", metavar="HTML", help="the page to write (default: %(default)s)")
    demo.set_defaults(run=_demo)

    names = ", ".join(_scorer_names())
    score = commands.add_parser(
        "score",
        help="score the rows of a CSV, JSONL or Parquet file",
        description="Score the rows of a file. Every column of the file comes back as it was; the scorers' columns follow.",
        epilog="Exit codes: 0; 1 when more rows are in error than --max-errors, or a bound is missed; 2 for wrong use; 130 after Ctrl-C.",
    )
    score.add_argument("file", metavar="FILE", help="a .csv, .jsonl or .parquet file; the cells of a CSV are text, empty ones too")
    score.add_argument("-s", "--scorer", action="append", required=True, metavar="NAME", help=f"{names}; may be given several times")
    _add_columns(score)
    score.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of the scorers that have it, such as lexicon=afinn or tone.scale=10; may be given several times",
    )
    score.add_argument(
        "--judge", metavar="MODEL", help="who judges, such as openai/gpt-5-mini or local (default: SCOREKIT_JUDGE, as in Python)"
    )
    score.add_argument(
        "-o",
        "--out",
        metavar="OUT",
        help="a .csv, .jsonl or .parquet file (default: standard output, JSONL for a JSONL file and CSV otherwise)",
    )
    score.add_argument(
        "--max-errors",
        type=_error_limit,
        default=0,
        metavar="N",
        help="rows in error up to which the exit code is 0; 'any' for no limit (default: 0). OUT is written in any case",
    )
    add_bounds(score)
    score.set_defaults(run=_score)

    compare = commands.add_parser(
        "compare",
        help="compare the variants in a scored file in pairs",
        description="Compare the scores of the same items under several variants, in pairs: what can be concluded, and the numbers.",
        epilog="Exit codes: 0; 1 where --fail-on-regression objects; 2 for wrong use; 130 after Ctrl-C.",
    )
    add_arguments(compare)
    compare.set_defaults(run=_compare)

    store = commands.add_parser(
        "store",
        help="list, read, export or prune what a store of scores holds",
        description="A store of scores: what live scoring and store.append have kept.",
    )
    cli_store.add_arguments(store)
    store.set_defaults(run=_store)

    playground = commands.add_parser(
        "playground",
        help="open a notebook on which a scorer runs on one row and shows its steps",
        description="Write a notebook with a playground into the current folder, and open JupyterLab on it where that is installed.",
    )
    playground.add_argument("scorer", nargs="?", default="relevancy", metavar="SCORER", help=f"{names} (default: %(default)s)")
    playground.add_argument("--file", metavar="FILE", help="a .csv, .jsonl or .parquet file to pick rows from")
    _add_columns(playground)
    playground.add_argument("--judge", metavar="MODEL", help="who judges, such as openai/gpt-5-mini or local; can be changed on the panel")
    playground.add_argument("--no-open", action="store_true", help="write the notebook, print its path and open nothing")
    playground.set_defaults(run=_playground)
    return parser


def _add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a column of the file."""
    parser.add_argument("--input", metavar="COLUMN", help="the column that holds the input (default: input)")
    parser.add_argument("--output", metavar="COLUMN", help="the column that holds the output (default: output)")
    parser.add_argument(
        "--context", metavar="COLUMN", help="the column that holds the context, for scorers that read one (default: context)"
    )


def _playground(arguments: argparse.Namespace) -> int:
    """Write a notebook with a playground, and open it."""
    from scorekit.cli_playground import open_notebook, require_server, write_notebook

    function = _scorer(arguments.scorer)
    columns = {key: value for key in COLUMNS if (value := getattr(arguments, key)) is not None}
    if columns and arguments.file is None:
        msg = f"--{next(iter(columns))} names a column of a file: give --file too."
        raise UnknownOptionError(msg)
    server = None if arguments.no_open else require_server()
    path = write_notebook(function, file=arguments.file, judge=arguments.judge, columns=columns)
    if server is None:
        print(path)
        return 0
    _say(f"Opening {path}. Run its cell with Shift+Enter; Ctrl-C here ends Jupyter.")
    return open_notebook(server, path)


def _score(arguments: argparse.Namespace) -> int:
    """Score a file."""
    names = list(dict.fromkeys(arguments.scorer))
    bounds = read_bounds(arguments.fail_under, arguments.max, names)
    options = _options(arguments)
    _refuse_unused(options, names)
    scorers = [_bound(name, options) for name in names]
    written = {column for scorer in scorers for column in _written(scorer, arguments.judge)}
    ending = file_ending(arguments.out) if arguments.out else ".jsonl" if file_ending(arguments.file) == ".jsonl" else ".csv"
    table = read_table(arguments.file)
    require_writable(table, ending)
    _note_empty(table.frame, options)
    with replacing(arguments.out) if arguments.out else nullcontext(sys.stdout.buffer) as target:
        try:
            scored = scorekit.score(table.frame, scorers, judge=arguments.judge, progress=True)
        except (Exception, KeyboardInterrupt) as error:
            _keep_partial(table, error, written, ending, arguments.out)
            raise
        _write(table, scored, written, ending, target)
    summary = scorekit.summarize(scored, scores=names)
    _say(summary_text(summary))
    if arguments.out:
        _say(f"{len(scored):,} rows written to {arguments.out}")
    missed = missed_bounds(summary, bounds)
    for line in missed:
        _say(f"scorekit: exit code 1: {line}")
    errors = scored[[f"{name}_error" for name in names]].notna().to_numpy().any(axis=1).sum()
    if errors and arguments.max_errors != NO_LIMIT and errors > arguments.max_errors:
        _say(
            f"scorekit: {errors:,} row{'s' if errors > 1 else ''} in error, {arguments.max_errors:,} allowed: exit code 1 "
            f"(--max-errors {errors} or --max-errors any accepts them)"
        )
        return 1
    return 1 if missed else 0


def _store(arguments: argparse.Namespace) -> int:
    """Show or change what a store holds."""
    print(cli_store.run_action(arguments))
    return 0


def _compare(arguments: argparse.Namespace) -> int:
    """Compare the variants of a scored file."""
    found = compare_file(arguments)
    for note in found.notes:
        _say(f"scorekit: note: {printable(note)}")
    print(found.text)
    if arguments.out:
        _say(f"The summary is written to {arguments.out}")
    for line in found.failures:
        _say(f"scorekit: exit code 1: {printable(line)}")
    if found.failures:
        return 1
    if found.passed:
        _say(f"scorekit: {printable(found.passed)}")
    return 0


def _note_empty(df: pd.DataFrame, options: Mapping[str, str]) -> None:
    """Say how many cells are empty texts: they are scored as such, since a file of text alone cannot say that one is missing."""
    for need in ("input", "output"):
        column = options.get(need, need)
        cells = df[column].tolist() if list(df.columns).count(column) == 1 else []
        count = sum(isinstance(cell, str) and not cell for cell in cells)
        if count:
            _say(
                f"scorekit: note: {count:,} cell{'s' if count > 1 else ''} of {column!r} are empty texts and are scored as empty, not as missing."
            )


def _keep_partial(table: Table, error: BaseException, written: set[str], ending: str, out: str | None) -> None:
    """Write what was finished before an error beside the output."""
    partial_frame = getattr(error, "partial", None)
    if partial_frame is None or out is None or len(partial_frame) != len(table.frame):
        return
    path = f"{out}.partial"
    try:
        with replacing(path) as target:
            _write(table, partial_frame, written, ending, target)
    except TableFileError as unwritable:
        _say(f"scorekit: what was finished is lost: {printable(unwritable)}")
        return
    _say(f"scorekit: what was finished is in {path} ({ending[1:]})")


def _write(table: Table, scored: pd.DataFrame, written: set[str], ending: str, target: Any) -> None:
    """Write the rows; say in one line why they cannot be written."""
    try:
        write_table(table, scored, written, ending, target)
        target.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        if isinstance(error, ScorekitError):
            raise
        msg = f"Cannot write the rows: {error.strerror or error}."
        raise TableFileError(msg) from error


def _scorer_names() -> list[str]:
    """Return what ``-s`` takes: every public ``score_<name>`` that is a measure; ``score_stored`` runs one."""
    return [name.removeprefix("score_") for name in scorekit.__all__ if name.startswith("score_") and name != "score_stored"]


def _scorer(name: str) -> Callable[..., pd.DataFrame]:
    """Return the public function of a scorer."""
    if name not in _scorer_names():
        if "," in name:
            msg = f"-s {name} names several scorers at once; give -s once for each: {' '.join(f'-s {part}' for part in name.split(','))}."
            raise UnknownOptionError(msg)
        raise UnknownOptionError.from_value("scorer", name, _scorer_names())
    function: Callable[..., pd.DataFrame] = getattr(scorekit, f"score_{name}")
    return function


def _options(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the options of the command line: "lexicon" or "tone.lexicon" -> its text."""
    options = {key: value for key in COLUMNS if (value := getattr(arguments, key)) is not None}
    for word in arguments.option:
        key, equals, value = word.partition("=")
        if not equals or not key:
            msg = f"--option {shown(word)!r} is not KEY=VALUE, such as lexicon=afinn."
            raise UnknownOptionError(msg)
        options[key] = value
    return options


def _value(option: str, text: str, annotation: str) -> Any:
    """Return an option's text as the kind that the scorer wants: a number or a truth value; anything else stays text."""
    kinds = annotation.split(" | ")
    if "bool" in kinds:
        if text not in ("true", "false"):
            raise UnknownOptionError.from_value(f"--option {option}", shown(text), ("true", "false"))
        return text == "true"
    if "float" in kinds or "int" in kinds:
        try:
            number = float(text)
            if math.isfinite(number):
                return int(text) if "float" not in kinds or text.lstrip("-").isdecimal() else number
        except ValueError:
            pass
        wanted = "a finite number" if "float" in kinds else "a whole number"
        msg = f"--option {option}={shown(text)!r} is not {wanted}."
        raise ArgumentTypeError(msg)
    return text


def _bound(name: str, options: Mapping[str, str]) -> partial[pd.DataFrame]:
    """Return a scorer with those options that it takes; one meant for it alone wins."""
    function = _scorer(name)
    chosen = {
        key: _value(option, options[option], annotation)
        for key, annotation in _settable(function).items()
        for option in (key, f"{name}.{key}")
        if option in options
    }
    return partial(function, **chosen)


def _written(scorer: partial[pd.DataFrame], judge: str | None) -> list[str]:
    """Return the columns that a scorer writes, found by scoring no rows; raise where its options do not work.

    An error that is not scorekit's own is the options' fault if it does not come without them; otherwise it is a bug, and raised as it is.
    """
    no_rows = pd.DataFrame({column: [] for column in COLUMNS}, dtype=object)
    options = {key: value for key, value in scorer.keywords.items() if key not in COLUMNS}
    try:
        scored = scorekit.score(no_rows, partial(scorer.func, **options), judge=judge, progress=False)
    except ScorekitError:
        raise
    except (TypeError, ValueError) as error:
        if not options:
            raise
        scorekit.score(no_rows, scorer.func, judge=judge, progress=False)
        given = ", ".join(f"{key}={shown(value)}" for key, value in options.items())
        msg = f"--option {given} does not work: {error}"
        raise ArgumentTypeError(msg) from error
    return [str(column) for column in scored.columns if column not in COLUMNS]


def _refuse_unused(options: Mapping[str, str], names: Iterable[str]) -> None:
    """Raise where no scorer of the call takes an option."""
    known = {name: _settable(_scorer(name)) for name in names}
    every = list(dict.fromkeys(key for keys in known.values() for key in keys))
    full = {f"{name}.{key}" for name, keys in known.items() for key in keys}
    for key in options:
        if key not in every and key not in full:
            raise UnknownOptionError.from_value("option", key, every)


def _settable(function: Callable[..., Any]) -> dict[str, str]:
    """Return the options of a scorer that a command line can set, with their annotations."""
    parameters = inspect.signature(function).parameters.values()
    return {
        parameter.name: parameter.annotation if isinstance(parameter.annotation, str) else inspect.formatannotation(parameter.annotation)
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in SET_ELSEWHERE
    }


def _error_limit(text: str) -> int:
    """Return the value of ``--max-errors``."""
    if text == "any":
        return NO_LIMIT
    if not text.isdecimal():
        msg = f"{text!r} is neither a number of rows nor 'any'"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _demo(arguments: argparse.Namespace) -> int:
    """Score the shipped answers, print what comes out and write it as a page."""
    from scorekit.widgets.page import write_page

    if Path(arguments.out).is_dir() or not Path(arguments.out).resolve().parent.is_dir():
        msg = f"Cannot write {arguments.out}: its folder is not there, or it is a folder itself."
        raise TableFileError(msg)
    df = scorekit.load_dataset("smollm_answers")
    print(
        f"{len(df)} answers of SmolLM2-135M-Instruct to {df['input'].nunique()} questions under {df['variant'].nunique()} prompt variants."
    )
    scorers: list[Callable[..., pd.DataFrame]] = [scorekit.score_relevancy, scorekit.score_tone, scorekit.score_text_difference]
    scored = scorekit.score(df, scorers, judge=scorekit.LocalJudge())
    summary = scorekit.summarize(scored, by="variant")
    worst = worst_rows(scored)
    print(f"\n{summary_text(summary)}\n")
    print(f"{JUDGE_NOTE} tone and text_difference are computed by code; text_difference is 1 for equal texts.")
    print(f"\nThe {len(worst)} rows that answer their question least:\n")
    for number, row in enumerate(worst.to_dict("records"), start=1):
        print(_row_text(number, {str(key): value for key, value in row.items()}))
    sections = {
        "What is this?": PAGE_INTRO,
        "Means by prompt variant": _readable(summary),
        "Distributions": scorekit.figure_scores(scored, by="variant"),
        "Verdicts by kind of question": scorekit.figure_statements(scored, by="kind"),
        "Rows that answer least": worst,
    }
    try:
        page = write_page(arguments.out, sections, title="scorekit demo: 360 answers of a very small model")
    except OSError as error:
        msg = f"Cannot write {arguments.out}: {error.strerror or error}."
        raise TableFileError(msg) from error
    print(f"Plots and tables: {page.resolve()}")
    print(NEXT_STEPS)
    return 0


JUDGE_NOTE: Final = (
    "relevancy comes from the local stand-in judge, which needs no key and is rough: it tells whether an answer is about the\n"
    "question's subject, not whether it answers it."
)
PAGE_INTRO: Final = (
    "A very small language model (135 million parameters) answered 120 questions under three system prompts: short, detailed, expert. "
    "Three scorers read every answer: relevancy (does it address the question), tone (do question and answer have the same sentiment) and "
    "text_difference (how alike are the two texts).\n"
    "Relevancy was judged by the local stand-in, which needs no key and is rough: it sees the subject, not whether the question "
    "is answered."
)
NEXT_STEPS: Final = """
Next:
  scorekit score answers.csv -s relevancy -s tone --input question --output answer -o scored.csv
  in Python:  import scorekit as sk;  scored = df.pipe(sk.score_relevancy);  sk.figure_scores(scored)
  a real judge: set OPENAI_API_KEY (or OPENAI_BASE_URL for a server of your own) and pass --judge MODEL"""


def worst_rows(scored: pd.DataFrame, count: int = WORST_ROWS) -> pd.DataFrame:
    """Return the rows with the lowest relevancy, those with the lower tone first among equals, with their texts and reasons."""
    rows = scored[scored["relevancy_score"].notna()].sort_values(["relevancy_score", "tone_score"], kind="stable").head(count)
    columns = ["id", "variant", "input", "output", "relevancy_score", "relevancy_reason", "tone_score", "tone_reason"]
    return rows[columns].reset_index(drop=True)


def _row_text(number: int, row: dict[str, Any]) -> str:
    """Return one row for the terminal."""
    lines = [f"{number}. {row['id']} {row['variant']}"]
    lines += [f"   {label:<10} {one_line(row[label])}" for label in ("input", "output")]
    for name in ("relevancy", "tone"):
        score = row[f"{name}_score"]
        lines.append(f"   {name:<10} {'none' if pd.isna(score) else f'{score:.2f}'}  {one_line(row[f'{name}_reason'])}")
    return "\n".join(lines) + "\n"


def _readable(summary: pd.DataFrame) -> pd.DataFrame:
    """Return a summary with the interval in one column, as text, and without columns that say nothing."""
    groups = list(summary.columns[1 : summary.columns.get_loc("mean")])
    columns: dict[str, Any] = {"score": summary["score"], **{name: summary[name].astype("string") for name in groups}}
    columns["mean"] = summary["mean"].map("{:.3f}".format).replace("nan", "none")
    ends = [summary[end].map("{:.3f}".format) for end in ("ci_low", "ci_high")]
    columns["95 % interval"] = (ends[0] + " to " + ends[1]).where(summary["ci_low"].notna(), "none")
    columns |= {"n": summary["n"], "unscored": summary["unscored"], "errors": summary["errors"], "judges": summary["judges"]}
    table = pd.DataFrame(columns)
    return table.drop(columns=[name for name in ("errors", "judges") if (table[name] == "").all()])


def summary_text(summary: pd.DataFrame) -> str:
    """Return a summary as aligned lines for a terminal.

    Examples
    --------
    >>> print(summary_text(scorekit.summarize(pd.DataFrame({"tone_score": [0.5, 0.7]}))))
    score   mean  95 % interval   n  unscored
    tone   0.600  0.000 to 1.000  2         0
    """
    table = _readable(summary)
    return aligned(list(table.columns), table.itertuples(index=False, name=None), {"mean", "n", "unscored"})


def _show_warning(message: Warning | str, *_: object, file: TextIO | None = None, line: str | None = None) -> None:  # noqa: ARG001
    """Write a warning without the place in the code that raised it."""
    if isinstance(message, scorekit.LocalJudgeWarning):
        message = f"{JUDGE_NOTE} Pass --judge MODEL for a real judge, or --judge local to choose this one and silence the note."
    _say(f"scorekit: note: {message}")


def _say(text: str) -> None:
    """Write to standard error, where progress and summaries go."""
    print(text, file=sys.stderr)
