"""For tests of scorers, ours and yours: a judge that answers from a script, and the checks that every scorer passes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import pandas as pd
from pydantic import ValidationError

from scorekit.columns import score_names
from scorekit.errors import UnknownOptionError, listed
from scorekit.judge.replies import Answer, Request, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scorekit.run import ScorerLike

Reply = Mapping[str, Any] | str | Exception
"""What a scripted judge says: the reply's fields, its raw JSON text (or the text, where plain text is asked for), or an exception to raise."""


NO_USAGE: dict[str, Any] = {"finish_reason": "stop", "input_tokens": None, "output_tokens": None, "seconds": 0.0}
"""What a scripted reply in plain text says of itself, where the script does not."""


class FakeJudge:
    """A judge that answers from a script, without any server.

    Parameters
    ----------
    replies
        By step (``"relevancy.analyze"``, or ``"analyze"`` for any scorer) the reply, or a function from the `Request` to the reply; or one
        function for all steps. Replies are checked as a real judge's are, without a second try: one that does not fit is ``reply_invalid``.
    label
        What the judge column says.

    Attributes
    ----------
    requests : list of Request
        What was asked, in order.

    Examples
    --------
    >>> from scorekit import score_relevancy
    >>> judge = FakeJudge({
    ...     "preprocess": {"statements": ["Paris."]},
    ...     "analyze": {"results": [{"statement": 1, "result": "Yes.", "reason": "It names the city."}]},
    ...     "generate_reason": {"reason": "It answers."},
    ... })
    >>> df = pd.DataFrame({"input": ["What is the capital of France?"], "output": ["Paris."]})
    >>> score_relevancy(df, judge=judge)["relevancy_score"].tolist()
    [1.0]
    >>> len(judge.requests)
    3
    """

    def __init__(
        self, replies: Mapping[str, Reply | Callable[[Request], Reply]] | Callable[[Request], Reply], *, label: str = "fake"
    ) -> None:
        """Take the script."""
        self.replies = replies
        self.label = label
        self.requests: list[Request] = []

    def submit(
        self, requests: Sequence[Request], *, rank: int = 0, on_answer: Callable[[int, Answer], None] | None = None
    ) -> Future[list[Answer]]:
        """Answer at once, in the caller's thread."""
        del rank
        future: Future[list[Answer]] = Future()
        answers = []
        for index, request in enumerate(requests):
            self.requests.append(request)
            answers.append(self._answer(request))
            if on_answer is not None:
                on_answer(index, answers[-1])
        future.set_result(answers)
        return future

    def _answer(self, request: Request) -> Answer:
        """Return the scripted reply, checked."""
        reply = self._scripted(request)
        if isinstance(reply, Exception):
            raise reply
        if issubclass(request.reply, Text):
            reply = NO_USAGE | ({"text": reply} if isinstance(reply, str) else dict(reply))
        try:
            if isinstance(reply, str):
                value = request.reply.model_validate_json(reply, context=request.context)
            else:
                value = request.reply.model_validate(dict(reply), context=request.context)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            return Answer(error="reply_invalid", reason=f"The reply is invalid: {where}: {first['msg']}", text=str(reply), calls=1)
        return Answer(value=value, text=str(reply), calls=1)

    def _scripted(self, request: Request) -> Reply:
        """Return what the script says to a request."""
        if callable(self.replies):
            return self.replies(request)
        step = request.step.rsplit(".", 1)[-1]
        if request.step not in self.replies and step not in self.replies:
            msg = f"The script has no reply for {request.step!r}; it has {listed(self.replies)}."
            raise UnknownOptionError(msg)
        reply = self.replies.get(request.step, self.replies.get(step, ""))
        return reply(request) if callable(reply) else reply


def check_scorer(scorer: ScorerLike, df: pd.DataFrame, /, *, judge: FakeJudge | None = None, pickles: bool = True) -> pd.DataFrame:
    """Check what every scorer promises, on a frame of yours, and return the scored frame.

    No rows give the final columns and dtypes and ask nothing; scores are float64, reasons and errors string, with a code exactly where there is
    no score; rows, order, index and the caller's own columns come back untouched; the frame given is not changed; splitting or turning the
    frame changes no row; scoring twice changes nothing; the scorer pickles.

    Parameters
    ----------
    scorer
        A callable from a frame to the frame with score columns; bind its judge with `functools.partial`.
    df
        At least two rows, some of them odd.
    judge
        The `FakeJudge` that is bound to the scorer, if it is a judged one.
    pickles
        Whether the scorer must pickle; pass False for one made of lambdas.

    Raises
    ------
    AssertionError
        That says which promise is broken.

    Examples
    --------
    >>> from scorekit import score_text_difference
    >>> df = pd.DataFrame({"input": ["a", None, "b"], "output": ["a", "b", "c"]}, index=[7, 7, 8])
    >>> check_scorer(score_text_difference, df)["text_difference_score"].tolist()
    [1.0, nan, 0.0]
    """
    equal = pd.testing.assert_frame_equal
    before = df.copy(deep=True)
    scored = scorer(df)
    equal(df, before, obj="the frame given to the scorer")
    asked = len(judge.requests) if judge is not None else 0
    empty = scorer(df.iloc[:0])
    if judge is not None and len(judge.requests) > asked:
        msg = "No rows must ask nothing, but the judge was asked."
        raise AssertionError(msg)
    if list(empty.columns) != list(scored.columns) or list(empty.dtypes) != list(scored.dtypes):
        msg = f"No rows give other columns or dtypes:\n{empty.dtypes}\nthan rows do:\n{scored.dtypes}"
        raise AssertionError(msg)
    equal(scored[list(df.columns)], before, obj="the caller's columns")
    names = [name for name in score_names(scored) if name not in score_names(df)]
    if not names:
        msg = "The scorer added no column <name>_score."
        raise AssertionError(msg)
    for name in names:
        _check_result(scored, name)
    half = len(df) // 2
    equal(pd.concat([scorer(df.iloc[:half]), scorer(df.iloc[half:])]), scored, obj="the frame scored in two parts")
    equal(scorer(df.iloc[::-1]).iloc[::-1], scored, obj="the frame scored in reverse order")
    equal(scorer(scored), scored, obj="the frame scored twice")
    if pickles:
        equal(pickle.loads(pickle.dumps(scorer))(df), scored, obj="the frame scored by the unpickled scorer")  # noqa: S301
    return scored


def _check_result(scored: pd.DataFrame, name: str) -> None:
    """Check the dtypes of a scorer's own columns, and that a row has a score or a code, never both or neither."""
    dtypes = {f"{name}_score": "float64", f"{name}_reason": "string", f"{name}_error": "string"}
    wrong = [column for column, dtype in dtypes.items() if column not in scored.columns or scored[column].dtype != dtype]
    if wrong:
        found = scored[wrong[0]].dtype if wrong[0] in scored.columns else "missing"
        msg = f"The column {wrong[0]!r} must be {dtypes[wrong[0]]}; it is {found}."
        raise AssertionError(msg)
    unscored = scored[f"{name}_score"].isna()
    if not (unscored == scored[f"{name}_error"].notna()).all():
        msg = f"{name}_error must have a code exactly where {name}_score is missing."
        raise AssertionError(msg)
