"""Functions around functions: each kind stays of its kind, and gives, raises and yields what the function inside does.

Each is made of a function and of ``start``, which begins the call. A plain function that returns a coroutine or a generator has only begun then, so
what it returned is wrapped in turn, with a ``start`` that goes on with the same call.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from functools import WRAPPER_ASSIGNMENTS, update_wrapper
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, Final

from scorekit.errors import ArgumentTypeError
from scorekit.monitor.keys import LONGEST
from scorekit.run import unwrapped

if TYPE_CHECKING:
    from scorekit.monitor.calls import Running
    from scorekit.monitor.taps import Tap

Start = Callable[[tuple[Any, ...], Mapping[str, Any]], "Running"]
Maker = Callable[[Callable[..., Any], "Tap", Start], Callable[..., Any]]

STREAMS: Final = frozenset({CoroutineType, GeneratorType, AsyncGeneratorType})
"""What a plain function may return when its work has only begun."""


def decorated(target: Any, what: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Any:
    """Return what a decorator makes of a target: of a classmethod or staticmethod object one of the same kind around the function inside.

    Raises
    ------
    ArgumentTypeError
        Where the target cannot be called, or is a class.
    """
    if isinstance(target, (classmethod, staticmethod)):
        return type(target)(decorated(target.__func__, what, wrap))
    if isinstance(target, type):
        raise ArgumentTypeError.from_value(what, target, "a function or method", "Decorate the method whose calls are to be scored.")
    if not callable(target):
        hint = "Put it below @property, above the function." if isinstance(target, property) else ""
        raise ArgumentTypeError.from_value(what, target, "a function or method", hint)
    return wrap(target)


def name_of(function: Callable[..., Any]) -> str:
    """Return what a function is called in the store: ``"answer"``, of a method ``"Agent.answer"``.

    Examples
    --------
    >>> from functools import partial
    >>> name_of(str.upper), name_of(partial(sorted, reverse=True))
    ('str.upper', 'sorted')
    """
    inner, _ = unwrapped(function)
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    return str(name).rpartition("<locals>.")[2][:LONGEST]


def wrapped(function: Callable[..., Any], tap: Tap) -> Callable[..., Any]:
    """Return a function of the same kind, of whose calls a tap takes what it wants."""
    around = _maker(function)(function, tap, tap.begin)
    around.__name__ = around.__qualname__ = tap.entity_id  # for what has no name, such as a partial
    updated = ("__dict__",) if inspect.isroutine(function) else ()  # the attributes of other objects are their own
    return update_wrapper(around, function, WRAPPER_ASSIGNMENTS, updated)


def _maker(function: Callable[..., Any]) -> Maker:
    """Return what wraps a function of this kind."""
    candidates = (function,) if inspect.isroutine(function) else (function, getattr(type(function), "__call__", function))  # noqa: B004
    code = getattr(function, "__code__", None)
    if any(map(inspect.iscoroutinefunction, candidates)) or (code is not None and code.co_flags & inspect.CO_ITERABLE_COROUTINE):
        return _around_coroutine
    if any(map(inspect.isasyncgenfunction, candidates)):
        return _around_async_generator
    return _around_generator if any(map(inspect.isgeneratorfunction, candidates)) else _around_plain


def _around_plain(function: Callable[..., Any], tap: Tap, start: Start) -> Callable[..., Any]:
    def around(*args: Any, **kwargs: Any) -> Any:
        running = start(args, kwargs)
        try:
            running.enter()
            result = function(*args, **kwargs)
        except Exception as error:
            tap.finish(running, None, error)
            raise
        except BaseException:
            tap.abandon(running)
            raise
        else:
            if type(result) in STREAMS and not _awaitable(result):
                return _goes_on(result, tap, running)
            tap.finish(running, result)
            return result
        finally:
            running.leave()

    return around


def _awaitable(result: Any) -> bool:
    """Return whether it is a generator that is awaited like a coroutine, as ours would not be."""
    return type(result) is GeneratorType and bool(result.gi_code.co_flags & inspect.CO_ITERABLE_COROUTINE)


def _goes_on(result: Any, tap: Tap, running: Running) -> Any:
    """Return what a plain function returned, so that the call ends when it does."""
    makers: dict[type, Maker] = {
        CoroutineType: _around_coroutine,
        GeneratorType: _around_generator,
        AsyncGeneratorType: _around_async_generator,
    }
    try:
        around = makers[type(result)](lambda: result, tap, lambda _args, _kwargs: running)
        around.__name__, around.__qualname__ = result.__name__, result.__qualname__
        return around()
    except RecursionError:  # no room for more; it has not begun
        return result


def _around_coroutine(function: Callable[..., Awaitable[Any]], tap: Tap, start: Start) -> Callable[..., Any]:
    async def around(*args: Any, **kwargs: Any) -> Any:
        running = start(args, kwargs)
        try:
            running.enter()
            result = await function(*args, **kwargs)
        except Exception as error:
            await tap.finish_async(running, None, error)
            raise
        except BaseException:
            tap.abandon(running)
            raise
        else:
            await tap.finish_async(running, result)
            return result
        finally:
            running.leave()

    return around


def _around_generator(function: Callable[..., Generator[Any, Any, Any]], tap: Tap, start: Start) -> Callable[..., Any]:
    def around(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = function(*args, **kwargs)
        running = start(args, kwargs)
        tap.expect_parts(running)
        resume: Callable[[Any], Any] = inner.send
        sent: Any = None
        complete = True
        try:
            while True:
                running.resume()
                try:
                    part = resume(sent)
                finally:
                    running.pause()
                    sent = None
                if running.parts is not None:
                    running.parts.add(part)
                try:
                    sent = yield part
                    resume = inner.send
                except BaseException as thrown:  # noqa: BLE001  (it belongs to the function inside)
                    sent, resume, complete = _as_thrown(thrown), inner.throw, not isinstance(thrown, GeneratorExit)
                finally:
                    part = None  # the caller's now
        except StopIteration as stop:
            tap.finish(running, complete=complete)
            return stop.value
        except Exception as error:
            tap.finish(running, None, error)
            raise
        except GeneratorExit:
            tap.finish(running, complete=False)
            raise
        except BaseException:
            tap.abandon(running)
            raise
        finally:
            running.leave()

    return around


def _around_async_generator(function: Callable[..., AsyncGenerator[Any, Any]], tap: Tap, start: Start) -> Callable[..., Any]:
    async def around(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = function(*args, **kwargs)
        running = start(args, kwargs)
        tap.expect_parts(running)
        resume: Callable[[Any], Awaitable[Any]] = _owned(inner)
        sent: Any = None
        complete = True
        try:
            while True:
                running.resume()
                try:
                    part = await resume(sent)
                finally:
                    running.pause()
                    sent = None
                if running.parts is not None:
                    running.parts.add(part)
                try:
                    sent = yield part
                    resume = inner.asend
                except BaseException as thrown:  # noqa: BLE001  (it belongs to the function inside)
                    sent, resume, complete = _as_thrown(thrown), inner.athrow, not isinstance(thrown, GeneratorExit)
                finally:
                    part = None  # the caller's now
        except StopAsyncIteration:
            if complete:
                await tap.finish_async(running)
            else:
                tap.finish(running, complete=False)
        except Exception as error:
            await tap.finish_async(running, None, error)
            raise
        except GeneratorExit:
            tap.finish(running, complete=False)  # nothing may be awaited here where it is collected without a loop
            raise
        except BaseException:
            tap.abandon(running)
            raise
        finally:
            running.leave()

    return around


def _as_thrown(error: BaseException) -> BaseException:
    """Return an exception that was thrown into a generator of ours as its thrower made it: without the place where it came in."""
    trace = error.__traceback__
    return error if trace is None else error.with_traceback(trace.tb_next)


def _owned(inner: AsyncGenerator[Any, Any]) -> Callable[[Any], Awaitable[Any]]:
    """Return what begins an async generator of which the event loop does not know: whoever closes ours closes it.

    A loop that ends closes all that it knows, side by side; and closing one twice at a time raises.
    """

    def begin(sent: Any) -> Awaitable[Any]:
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, _leave_to_owner)
        try:
            return inner.asend(sent)
        finally:
            sys.set_asyncgen_hooks(*hooks)

    return begin


def _leave_to_owner(inner: AsyncGenerator[Any, Any]) -> None:
    """Do nothing when it is collected: ours, collected with it, closes it."""
