"""live: the calls of a running function, scored in the background."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

from scorekit.analysis.statistics import check_real, check_whole
from scorekit.errors import ArgumentTypeError, OptionRangeError, UnknownOptionError
from scorekit.monitor import worker as background
from scorekit.monitor.arguments import Parameters
from scorekit.monitor.channel import Channel, Full, LiveStats, Worker
from scorekit.monitor.options import read_hooks, read_scorers
from scorekit.monitor.runs import LiveRun
from scorekit.monitor.sampling import check_name
from scorekit.monitor.steps import Step
from scorekit.monitor.store import ScoreStore
from scorekit.monitor.taps import FunctionTap
from scorekit.monitor.worker import attach
from scorekit.monitor.wrappers import decorated, name_of, wrapped

if TYPE_CHECKING:
    from scorekit.monitor.options import Hook, NameOrHook, Scorers

Function = TypeVar("Function", bound=Callable[..., Any])


class Live:
    """The class of ``sk.live``, a decorator that scores the calls of a running function in the background and keeps every result.

    The function's result, exceptions and signature stay what they are: scorers, hooks and the database never get in its way. It works on plain and
    ``async`` functions, on generators of both kinds, and on methods.

    Parameters
    ----------
    scorers
        By the name that their columns and rows get: scorers as in `score`, each asked about every call, or `sampled` ones.
    store
        The `ScoreStore` that keeps the results, with the source ``"LIVE"``.
    input, context
        The name of a parameter, or a function of the `LiveCall`. Without ``input=`` it is the parameter ``input``, else the first that is not
        ``self`` or ``cls``; without ``context=`` the parameter ``context``, if there is one. ``context`` may also name a step (see `step`), whose last
        output it is then; a parameter of that name comes first. Both are taken before the function runs, which may change its arguments; a function
        of the call that raises then, since it reads the result, say, is asked again when the function has ended.
    output
        A function of the call; without it the output is the result. Of a generator it is the joined text where all parts are texts, else the list of
        the parts.
    when
        A function of the call, asked about every call that has ended; the call is scored only where it gives true. Where it raises, it is not.
    metadata
        A function of the call that gives a mapping, kept beside the scores.
    run_id, trace_id
        The name of a parameter, or a function of the call, asked before the function runs; None is the same as nothing. The trace's id is kept beside
        the scores. See Notes for what a run is.
    name
        What the function is called in the store; without it, its name, of a method ``"Agent.answer"``.
    entity_type
        What it is, for the store.
    worker
        ``"thread"`` scores in a thread of this process; ``"process"`` in another process, so that no scorer slows this one down.
    capacity
        How many rows, one a call and scorer, may wait to be scored and stored.
    full
        When as many wait: ``"drop"`` gives up the scores of the call, which `stats` counts; ``"block"`` makes the call wait for room, but no longer than
        ``block_timeout_s``, then drops them.
    block_timeout_s
        In seconds, 0 or more.

    Returns
    -------
    A decorator. What it returns has the type of the function, and the function as ``__wrapped__``.

    Raises
    ------
    ArgumentTypeError, OptionRangeError, UnknownOptionError, MissingColumnError, JudgeSetupError, ScorerDefinitionError
        When a function is decorated, never later: what is wrong with an option, and what is wrong with a scorer for every row, since each scorer is
        called on no rows.

    Notes
    -----
    *Runs.* A call that is made inside another belongs to its run, and so do steps; another call is a run of its own, with a new id, unless ``run_id=``
    or ``with live.run("..."):`` gives one. Runs go with ``contextvars``: into tasks and ``asyncio.to_thread``, not by themselves into a thread or a pool
    (``pool.submit(contextvars.copy_context().run, agent, question)`` takes them there). A function that calls itself is scored at every level.

    *Sampling* goes by the run's id alone, see `scorekit.monitor.sampling.share_of`: equal rates pick equal runs, a step those of its call.

    *What is kept* of a call is what it was at the time: texts as they are, other values as JSON (messages, mappings, lists, pydantic models,
    dataclasses), an object that JSON cannot hold as its type and the first 1,000 characters of its ``repr``. A large value that is no text is written as
    JSON while the caller waits, some 20 ms a megabyte. Of a generator that is picked every part is kept until it ends. Of a call that sampling does not
    pick, nothing is.

    *Ends.* A call that raises an `Exception` and is picked gets rows without a score, with the error ``target_error``; `stats` counts all that
    raised. One that is cancelled or ended by ctrl-C or ``sys.exit`` leaves no row. A generator is recorded when it ends; one that is closed early with
    what it gave until then and the metadata ``{"complete": False}``; one that is never begun, not at all. A plain function that returns a coroutine or
    a generator has ended when that has.

    *The process.* Where nobody handles SIGTERM when a function is decorated in the main thread, live scoring does: it drains, then ends the process by
    the same signal. The end of the process drains too, for up to five seconds; what is not scored then is kept with the error ``cancelled``, for
    `score_stored`. A forked child begins with nothing waiting.

    *Where rows wait.* Between the call and the store rows are in memory: ``kill -9`` loses them. While the store cannot be written they wait in an SQLite
    file in the user's state folder (on Linux ``~/.local/state/scorekit/spill``; the environment variable SCOREKIT_SPILL names another folder), and are
    sent in their order by the next process that scores into this store, or by ``scorekit store send``.

    *Hooks* that raise cost what they were to give, never the call; `stats` counts them, and the logger ``scorekit.live`` tells of each hook's first.

    *Cost.* Some microseconds a call that is not picked, some ten more for one that is; ``benchmarks/live.py`` measures it.

    References
    ----------
    Live evaluations of Mastra: scorers attached to agents and workflow steps, sampled, in one table.

    Examples
    --------
    >>> from scorekit import ScoreStore, live, sampled, score_text_difference, score_tone
    >>> folder = getfixture("tmp_path")
    >>> store = ScoreStore(folder / "scores.db")
    >>> @live(scorers={"tone": score_tone, "echo": sampled(score_text_difference, rate=0.5)}, store=store)
    ... def agent(question: str) -> str:
    ...     return question.upper()
    >>> agent("I love it.")
    'I LOVE IT.'
    >>> live.flush()
    True
    >>> store.read(scorer="tone")[["entity_id", "input", "output", "tone_score"]]
      entity_id       input      output  tone_score
    0     agent  I love it.  I LOVE IT.         1.0
    """

    def __call__(
        self,
        *,
        scorers: Scorers,
        store: ScoreStore,
        input: NameOrHook | None = None,  # noqa: A002  (what it gives)
        output: Hook | None = None,
        context: NameOrHook | None = None,
        when: Hook | None = None,
        metadata: Hook | None = None,
        run_id: NameOrHook | None = None,
        trace_id: NameOrHook | None = None,
        name: str | None = None,
        entity_type: str = "agent",
        worker: Worker = "thread",
        capacity: int = 10_000,
        full: Full = "drop",
        block_timeout_s: float = 1.0,
    ) -> Callable[[Function], Function]:
        """Return a decorator; see the class."""
        if not isinstance(store, ScoreStore):
            raise ArgumentTypeError.from_value("store", store, "a ScoreStore", "Write store=ScoreStore('sqlite:///scores.db').")
        for option, value, choices in (("worker", worker, get_args(Worker)), ("full", full, get_args(Full))):
            if value not in choices:
                raise UnknownOptionError.from_value(option, value, choices)
        attached = read_scorers(scorers, "scorers")
        check_whole("capacity", capacity, 1)
        seconds = _check_seconds("block_timeout_s", block_timeout_s)
        check_name("entity_type", entity_type)
        if name is not None:
            check_name("name", name)

        def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
            parameters = Parameters(function)
            hooks = read_hooks(
                parameters,
                input=input,
                output=output,
                context=context,
                when=when,
                metadata=metadata,
                run_id=run_id,
                trace_id=trace_id,
            )
            entity_id = name_of(function) if name is None else name
            channel = Channel(entity_type, entity_id, attached, store, worker, capacity, full, seconds)
            return wrapped(function, FunctionTap(attach(channel), parameters, hooks))

        def decorate(function: Function) -> Function:
            found: Function = decorated(function, "live", wrap)
            return found

        return decorate

    def step(
        self,
        name: str,
        *,
        scorers: Scorers | None = None,
        input: Any = None,  # noqa: A002  (what it is)
        output: Any = None,
        context: Any = None,
        when: Any = None,
        metadata: Any = None,
    ) -> Step:
        """Return a step of a live call, to be used in a with statement or as a decorator.

        Its output lands in ``call.steps`` of the `live` call around it, where hooks find it and ``context="retrieve"`` reads it. With ``scorers`` it is
        scored, too: under the run's id, as entity ``"step"`` of its name, in the store and with the settings of the call around it. Outside any
        live call it does nothing but run. A step in a step belongs to the live call, too.

        Parameters
        ----------
        name
            The step's.
        scorers
            As in `live`; none for a step that is not scored itself. In a with statement they are attached when they are first picked, and wrong ones are
            logged; make them outside the function (``partial(...)``), since those that a line of code makes first stand for all that it makes.
        input, output, context, metadata
            In a with statement the values themselves, of which ``step.output``, ``step.context`` and ``step.metadata`` may be set inside. In a decorator
            as in `live`.
        when
            As in `live`; in a with statement also a plain truth value.

        Raises
        ------
        ArgumentTypeError, OptionRangeError
            For a name that is no text, and for scorers as in `live`.

        Notes
        -----
        With ``with``, each use takes a new ``live.step(...)``. ``async with`` is the same, and waits for room as ``async`` functions do.

        Examples
        --------
        >>> from scorekit import ScoreStore, live, score_text_difference
        >>> store = ScoreStore(getfixture("tmp_path") / "scores.db")
        >>> @live(scorers={"echo": score_text_difference}, store=store, context="retrieve")
        ... def agent(question):
        ...     with live.step("retrieve", input=question, scorers={"found": score_text_difference}) as step:
        ...         step.output = f"{question} Yes."
        ...     return step.output.upper()
        >>> agent("Well?")
        'WELL? YES.'
        >>> live.flush()
        True
        >>> store.read(scorer="echo")["context"].tolist()
        ['Well? Yes.']
        >>> store.read(entity_type="step")[["entity_id", "input", "output"]]
          entity_id  input      output
        0  retrieve  Well?  Well? Yes.
        """
        return Step(name, scorers=scorers, input=input, output=output, context=context, when=when, metadata=metadata)

    def run(self, run_id: str) -> LiveRun:
        """Return a context manager: live calls inside belong to this run, except those with a ``run_id=`` of their own.

        Parameters
        ----------
        run_id
            A text of 1 to 512 characters, or a whole number or UUID, whose text it then is. It often comes from a request, so anything else does not
            raise: it is counted in `stats` and logged once, and a new id is taken.

        Examples
        --------
        >>> from scorekit import live
        >>> with live.run("conversation-7") as run_id:
        ...     print(run_id)
        conversation-7
        """
        return LiveRun(run_id)

    def flush(self, timeout_s: float = 30.0) -> bool:
        """Wait until every call that has ended is scored and its rows are in the store; return whether they are.

        It blocks: in async code ``await asyncio.to_thread(live.flush)``. An application need not call it: the end of the process, and SIGTERM where
        nobody else handles it, drain for up to five seconds. Where the store cannot be reached it waits in vain, though what waits in the spill
        file (`stats`: ``spilled``) is safe.

        Parameters
        ----------
        timeout_s
            How long to wait at most, in seconds.

        Examples
        --------
        >>> from scorekit import live
        >>> live.flush(timeout_s=5)
        True
        """
        return background.flush(_check_seconds("timeout_s", timeout_s))

    def stats(self) -> LiveStats:
        """Return what live scoring has done in this process so far.

        Examples
        --------
        >>> from scorekit import live
        >>> live.stats().lost
        0
        """
        return background.stats()

    def __repr__(self) -> str:
        """Show how it is used."""
        return "live(scorers=..., store=...)"


def _check_seconds(option: str, value: object) -> float:
    """Return a time-out in seconds."""
    seconds = check_real(option, value)
    if not 0 <= seconds < float("inf"):
        raise OptionRangeError.from_value(option, value, "a number of seconds, 0 or more, and finite")
    return seconds


live: Final = Live()
"""See `Live`."""
