"""sk.live around plain functions and methods: what it is told, what it leaves untouched, and what it keeps."""

import copy
import functools
import inspect
import pickle
import sys
import traceback

import cloudpickle
import pandas as pd
import pytest
from live_rows import inputs, outputs, stored
from live_scorers import LENGTH

import scorekit as sk
from scorekit.errors import ArgumentTypeError, MissingColumnError, OptionRangeError, ScorerDefinitionError, UnknownOptionError

SCORERS = {"size": LENGTH}


@pytest.fixture
def live(store):
    """The decorator with a scorer and a store, and whatever else a test says."""
    return functools.partial(sk.live, scorers=SCORERS, store=store)


def of_module(question):
    return question


# --- what it is told


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scorers": [sk.score_tone]}, ArgumentTypeError, "scorers must be a mapping from names to scorers, not list. Write scorers={'tone': score_tone}."),
        ({"scorers": {}}, OptionRangeError, "scorers={} is out of range: it must be one scorer at least."),
        ({"scorers": {"my tone": sk.score_tone}}, OptionRangeError, "A key of scorers='my tone' is out of range"),
        ({"scorers": {"": sk.score_tone}}, OptionRangeError, "A key of scorers='' is out of range"),
        ({"scorers": {3: sk.score_tone}}, ArgumentTypeError, "A key of scorers must be text, not int."),
        ({"scorers": {"tone": "tone"}}, ArgumentTypeError, "scorers['tone'] must be a callable from a frame to a frame, not str. Pass functions such as"),
        ({"scorers": {"tone": 0.5}}, ArgumentTypeError, "scorers['tone'] must be a callable from a frame to a frame, not float."),
        ({"store": "sqlite:///scores.db"}, ArgumentTypeError, "store must be a ScoreStore, not str. Write store=ScoreStore('sqlite:///scores.db')."),
        ({"worker": "fork"}, UnknownOptionError, "worker='fork' is not known; choose one of 'thread', 'process'."),
        ({"full": "raise"}, UnknownOptionError, "full='raise' is not known; choose one of 'drop', 'block'."),
        ({"capacity": 0}, OptionRangeError, "capacity=0 is out of range: it must be 1 or more."),
        ({"capacity": True}, ArgumentTypeError, "capacity must be a whole number, not bool."),
        ({"block_timeout_s": -1}, OptionRangeError, "block_timeout_s=-1 is out of range"),
        ({"block_timeout_s": float("nan")}, OptionRangeError, "block_timeout_s=nan is out of range"),
        ({"block_timeout_s": "1"}, ArgumentTypeError, "block_timeout_s must be a number, not str."),
        ({"name": ""}, OptionRangeError, "name='' is out of range: it must be 1 to 512 characters."),
        ({"name": 5}, ArgumentTypeError, "name must be text, not int."),
        ({"entity_type": "x" * 513}, OptionRangeError, "entity_type='xxxx"),
        ({"when": "question"}, ArgumentTypeError, "when must be a plain function"),
        ({"output": 5}, ArgumentTypeError, "output must be a plain function"),
        ({"metadata": {"a": 1}}, ArgumentTypeError, "metadata must be a plain function"),
        ({"input": 5}, ArgumentTypeError, "input must be the name of a parameter, or a function of the call, not int."),
        ({"input": "qestion"}, UnknownOptionError, "input='qestion' is not known; choose one of 'question'. Did you mean 'question'?"),
        ({"run_id": "request"}, UnknownOptionError, "run_id='request' is not known; choose one of 'question'."),
        ({"trace_id": 7}, ArgumentTypeError, "trace_id must be the name of a parameter"),
        ({"context": ""}, OptionRangeError, "context='' is out of range"),
    ],
)  # fmt: skip
def test_live_wrong_options_raise_when_the_function_is_decorated(live, options, error, message):
    with pytest.raises(error) as caught:
        live(**options)(of_module)
    assert str(caught.value).startswith(message)


async def hook(call):
    return "a"


@pytest.mark.parametrize("option", ["input", "output", "context", "when", "metadata", "run_id", "trace_id"])
def test_live_async_hooks_raise_when_the_function_is_decorated(live, option):
    with pytest.raises(ArgumentTypeError, match=f"{option} must be a plain function"):
        live(**{option: hook})(of_module)


def test_live_scorer_that_needs_a_column_that_no_call_has_raises_when_decorated(live):
    scorer = functools.partial(sk.score_tone, output="answer")
    with pytest.raises(MissingColumnError, match="needs a column 'answer'; the frame has 'input', 'output', 'context'"):
        live(scorers={"tone": scorer})(of_module)


def test_live_scorer_that_adds_no_score_raises_when_decorated(live):
    with pytest.raises(ScorerDefinitionError, match="added no column that ends in '_score'"):
        live(scorers={"tone": lambda df: df})(of_module)


@pytest.mark.parametrize("target", [property(of_module), 5, "agent"])
def test_live_around_what_is_no_function_raises(live, target):
    with pytest.raises(ArgumentTypeError, match="live must be a function or method, not "):
        live()(target)


def test_live_around_a_class_says_what_to_decorate(live):
    with pytest.raises(ArgumentTypeError, match="not type. Decorate the method whose calls are to be scored."):
        live()(dict)


def test_live_options_are_keywords():
    with pytest.raises(TypeError):
        sk.live(of_module)


def test_live_says_what_it_is():
    assert repr(sk.live) == "live(scorers=..., store=...)"


# --- what it leaves untouched


def test_live_result_is_the_very_object(live):
    answer = {"text": ["a"]}
    assert live()(lambda question: answer)("q") is answer


def test_live_exception_is_the_very_object_with_the_functions_own_traceback(live):
    error = ValueError("no such tool")

    @live()
    def agent(question):
        raise error

    with pytest.raises(ValueError, match="^no such tool$") as caught:
        agent("q")
    assert caught.value is error
    assert (error.__cause__, error.__context__) == (None, None)
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert names == ["test_live_exception_is_the_very_object_with_the_functions_own_traceback", "around", "agent"]


def test_live_exception_of_a_hook_is_not_the_context_of_the_functions(live):
    @live(when=lambda call: 1 / 0)
    def agent(question):
        raise ValueError(question)

    with pytest.raises(ValueError, match="q") as caught:
        agent("q")
    assert caught.value.__context__ is None


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_live_what_ends_the_process_passes_and_leaves_no_row(live, store, kind):
    @live()
    def agent(question):
        raise kind

    with pytest.raises(kind):
        agent("q")
    live()(of_module)("later")
    assert outputs(store) == ["later"]
    assert sk.live.stats().calls == 2


def test_live_wrong_arguments_raise_as_without_it_and_are_recorded(live, store):
    @live()
    def agent(question, *, loud=False):
        return question

    with pytest.raises(TypeError, match=r"agent\(\) got an unexpected keyword argument 'quiet'"):
        agent("q", quiet=True)
    row = stored(store).iloc[0]
    assert (row["input"], row["size_error"]) == ("q", "target_error")
    assert "TypeError" in row["size_reason"]


def test_live_function_keeps_its_name_signature_doc_and_attributes(live):
    def agent(question: str, *, loud: bool = False) -> str:
        """Answer."""
        return question

    agent.version = 3
    found = live()(agent)
    assert (found.__name__, found.__qualname__, found.__doc__, found.__module__) == (
        agent.__name__,
        agent.__qualname__,
        "Answer.",
        __name__,
    )
    assert inspect.signature(found) == inspect.signature(agent)
    assert (found.version, found.__wrapped__, found.__annotations__) == (3, agent, agent.__annotations__)
    assert inspect.isfunction(found)


def test_live_function_of_a_module_pickles_by_its_name(live, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "of_module", live()(of_module))
    monkeypatch.setitem(sys.modules, "this_test", sys.modules[__name__])
    monkeypatch.setattr(of_module, "__module__", "this_test")
    assert pickle.loads(pickle.dumps(of_module)) is of_module
    assert copy.deepcopy(of_module) is of_module


def test_live_function_of_a_notebook_pickles_by_cloudpickle_and_is_attached_again(live, store):
    @live(scorers={"size": LENGTH}, metadata=lambda call: {"loud": call.arguments["loud"]})
    def agent(question, *, loud=True):
        with sk.live.step("inside", scorers={"found": LENGTH}) as step:
            step.output = question
        return question.upper()

    there = cloudpickle.loads(cloudpickle.dumps(agent))
    assert (there("a"), there.__name__, inspect.signature(there)) == ("A", "agent", inspect.signature(agent))
    frame = stored(store)
    assert frame["output"].tolist() == ["a", "A"]
    assert frame["loud"].tolist()[1] is True


def test_live_call_lets_go_of_what_an_exception_holds_without_the_garbage_collector(live):
    import gc
    import weakref

    class Large:
        pass

    @live(when=lambda call: True)
    def agent(question):
        raise ValueError

    def fail():
        large = Large()
        try:
            agent(large)
        except ValueError:
            return weakref.ref(large)

    gc.collect()
    gc.disable()
    try:
        assert fail()() is None
    finally:
        gc.enable()


def test_live_deep_recursion_raises_what_it_raises_without_it(live):
    @live(scorers={"size": sk.sampled(LENGTH, 0)})
    def agent(depth):
        return agent(depth + 1)

    with pytest.raises(RecursionError):
        agent(0)


def test_live_call_near_the_end_of_the_stack_returns_where_another_decorator_would(live):
    def leaf(question):
        return question

    def plain(*args, **kwargs):
        return leaf(*args, **kwargs)

    def at_depth(depth, function):
        return function("q") if depth == 0 else at_depth(depth - 1, function)

    def deepest(function):
        found = 0
        for depth in range(sys.getrecursionlimit()):
            try:
                found = depth if at_depth(depth, function) == "q" else -1
            except RecursionError:
                break
        return found

    assert deepest(live(scorers={"size": sk.sampled(LENGTH, 0)})(leaf)) == deepest(plain)
    assert deepest(live(capacity=1)(leaf)) == deepest(plain)


# --- what it keeps


def test_live_call_becomes_a_row(live, store):
    @live(scorers={"size": LENGTH, "tone": sk.score_tone})
    def agent(question):
        return question.upper()

    before = pd.Timestamp.now("UTC")
    assert agent("I love it.") == "I LOVE IT."
    after = pd.Timestamp.now("UTC")
    (row,) = stored(store).to_dict("records")
    assert (row["source"], row["entity_type"], row["entity_id"]) == ("LIVE", "agent", "agent")
    assert (row["input"], row["output"], row["size_score"], row["tone_score"]) == ("I love it.", "I LOVE IT.", 10.0, 1.0)
    assert before <= row["created_at"] <= after
    assert pd.isna(row["trace_id"])
    assert len(row["run"]) == len(row["row"]) == 32


def test_live_exception_becomes_a_row_without_a_score(live, store):
    @live()
    def agent(question):
        msg = f"no such tool: {question}"
        raise LookupError(msg)

    with pytest.raises(LookupError):
        agent("q")
    (row,) = stored(store).to_dict("records")
    assert (row["input"], row["size_error"]) == ("q", "target_error")
    assert row["size_reason"] == "The function raised LookupError: no such tool: q"
    assert pd.isna(row["output"])
    assert pd.isna(row["size_score"])


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "expected"),
    [
        (lambda question, context=None: "", ("q",), {}, "q"),
        (lambda question: "", (), {"question": "q"}, "q"),
        (lambda model, input: "", ("m", "q"), {}, "q"),  # noqa: A006
        (lambda model, *, input: "", ("m",), {"input": "q"}, "q"),  # noqa: A006
        (lambda question="default": "", (), {}, "default"),
        (lambda question, /: "", ("q",), {}, "q"),
        (lambda question, /, **kwargs: "", ("q",), {"question": "another"}, "q"),
        (lambda question="default", /, **kwargs: "", (), {"question": "another"}, "default"),
        (lambda *, question: "", (), {"question": "q"}, "q"),
        (lambda self, question: "", ("s", "q"), {}, "q"),
        (lambda *questions: "", ("q",), {}, "q"),
        (lambda *questions: "", ("q", "r"), {}, ["q", "r"]),
        (lambda *args, **kwargs: "", ("q",), {"loud": True}, "q"),
        (lambda *args, **kwargs: "", ("q",), {"input": "i"}, "i"),
        (lambda *args, **kwargs: "", (), {"question": "q"}, "q"),
        (lambda **kwargs: "", (), {"question": "q"}, "q"),
        (lambda **kwargs: "", (), {"loud": True, "input": "q"}, "q"),
        (lambda **kwargs: "", (), {"loud": True, "question": "q"}, {"loud": True, "question": "q"}),
        (functools.partial(lambda model, question: "", "m"), ("q",), {}, "q"),
        (functools.partial(lambda question, model: "", question="q"), (), {"model": "m"}, "q"),
        (lambda *args, **kwargs: "", ("q", "more"), {}, "q"),
        (lambda self, *args, **kwargs: "", ("s", "q", "more"), {}, "q"),
        (str.format, ("{}", "q"), {}, "{}"),
    ],
)  # fmt: skip
def test_live_input_is_the_parameter_input_else_the_first(live, store, function, args, kwargs, expected):
    live(output=lambda call: "")(function)(*args, **kwargs)
    assert inputs(store) == [expected]


@pytest.mark.parametrize(("function", "args"), [(lambda: "a", ()), (lambda self: "a", ("s",)), (lambda *args: "a", ())])
def test_live_function_without_an_input_keeps_its_output(live, store, function, args):
    live()(function)(*args)
    row = stored(store).iloc[0]
    assert row["output"] == "a"
    assert pd.isna(row["input"])


def test_live_context_is_the_parameter_context(live, store):
    @live()
    def agent(question, context=("Paris is a city.",)):
        return question

    agent("q", context=["Berlin is a city."])
    agent("q")
    assert stored(store)["context"].tolist() == [["Berlin is a city."], ["Paris is a city."]]


def test_live_input_is_what_it_was_before_the_function_changed_it(live, store):
    @live()
    def agent(messages):
        messages.append({"role": "assistant", "content": "Hi."})
        return messages

    messages = [{"role": "user", "content": "Hello?"}]
    result = agent(messages)
    result.clear()
    row = stored(store).iloc[0]
    assert row["input"] == [{"role": "user", "content": "Hello?"}]
    assert row["output"] == [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hi."}]
    assert row["size_score"] == 3


def test_live_function_that_calls_itself_is_scored_at_every_level_in_one_run(live, store):
    @live()
    def agent(depth):
        return "" if depth == 0 else agent(depth - 1) + "x"

    assert agent(2) == "xx"
    frame = stored(store)
    assert frame["output"].tolist() == ["", "x", "xx"]
    assert len(set(frame["run"])) == 1
    assert frame["row"].nunique() == 3


def test_live_names_of_scorers_that_differ_from_their_own_name_columns_and_rows(live, store):
    live(scorers={"first": sk.sampled(LENGTH, 1, version="a"), "second": sk.sampled(LENGTH, 1, version="b")})(of_module)("four")
    row = stored(store).iloc[0]
    assert (row["first_score"], row["second_score"]) == (4, 4)
    assert sorted((each.scorer, each.scorer_version) for each in store.first(9)) == [("first", "a"), ("second", "b")]


# --- methods and other callables


class Agent:
    """Methods are decorated in the tests, where a store is."""

    def __init__(self, name="A"):
        self.name = name

    def plain(self, question):
        return self.name + question

    def of_class(cls, question):  # noqa: N805
        return cls.__name__ + question

    def __call__(self, question):
        return self.name + question


def test_live_method_is_bound_and_named_with_its_class(live, store):
    class Sub(Agent):
        plain = live()(Agent.plain)

    assert Sub("S").plain("q") == "Sq"
    row = stored(store).iloc[0]
    assert (row["entity_id"], row["input"], row["output"]) == ("Agent.plain", "q", "Sq")


def test_live_classmethod_on_either_side(live, store):
    class Sub(Agent):
        above = live()(classmethod(Agent.of_class))
        below = classmethod(live()(Agent.of_class))

    assert [Sub.above("q"), Sub.below("q"), Sub().above("q")] == ["Subq"] * 3
    assert isinstance(inspect.getattr_static(Sub, "above"), classmethod)
    assert inputs(store) == ["q"] * 3


def test_live_staticmethod_on_either_side(live, store):
    class Sub:
        above = live()(staticmethod(of_module))
        below = staticmethod(live()(of_module))

    assert [Sub.above("a"), Sub().above("b"), Sub.below("c"), Sub().below("d")] == ["a", "b", "c", "d"]
    assert inputs(store) == ["a", "b", "c", "d"]


def test_live_bound_method_callable_object_and_partial_are_functions_then(live, store):
    wraps = [live()(Agent().plain), live()(Agent("B")), live()(functools.partial(of_module)), live()(str.upper)]
    assert [wrap("q") for wrap in wraps[:3]] + [wraps[3]("q")] == ["Aq", "Bq", "q", "Q"]
    frame = stored(store)
    assert frame["entity_id"].tolist() == ["Agent.plain", "Agent", "of_module", "str.upper"]
    assert frame["output"].tolist() == ["Aq", "Bq", "q", "Q"]
    assert [wrap.__name__ for wrap in wraps] == ["plain", "Agent", "of_module", "upper"]
    assert not hasattr(wraps[1], "name")


def test_live_decorator_serves_several_functions(live, store):
    decorator = live()
    decorator(of_module)("a")
    decorator(Agent().plain)("b")
    assert stored(store)["entity_id"].tolist() == ["of_module", "Agent.plain"]


def test_live_name_and_entity_type_are_what_they_are_told(live, store):
    live(name="support", entity_type="workflow")(of_module)("a")
    row = stored(store).iloc[0]
    assert (row["entity_type"], row["entity_id"]) == ("workflow", "support")


def test_live_function_with_a_wrapped_signature_is_read_by_it(live, store):
    @functools.wraps(of_module)
    def loose(*args, **kwargs):
        return of_module(*args, **kwargs)

    live(input="question")(loose)(question="q")
    assert inputs(store) == ["q"]
