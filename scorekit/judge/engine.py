"""The engine behind a Judge: equal questions asked once, replies read and kept, failures turned into codes.

One engine per judge settings and process; it runs on the background loop, `Engine.submit` aside.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import InvalidStateError
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from scorekit.judge.asks import Ask, Flight, Outcome, Stop
from scorekit.judge.cache import Entry, Store
from scorekit.judge.capabilities import Capabilities, Features
from scorekit.judge.endpoint import RETRIED, Completion, Endpoint, Failure
from scorekit.judge.pace import Breaker, Bucket, Clock, Pace, Slots, backoff_s
from scorekit.judge.reading import ReplyInvalidError, read_reply, response_format, schema_text
from scorekit.judge.replies import Answer, Message, Request, Text
from scorekit.judge.settings import JudgeSettings, sent_model
from scorekit.judge.usage import UNKNOWN, Budget, Usage, prices
from scorekit.texts import without_surrogates

if TYPE_CHECKING:
    from scorekit.judge.loop import Background

MOST_FORMS_TRIED: Final = 8
CHARACTERS_A_TOKEN: Final = 4
SHOWN_REPLY: Final = 200
"""How many characters of a useless reply a row's reason shows."""

CANCELLED: Final = "Cancelled before the judge had answered."
ROOM_NAMES: Final = ("max_tokens", "max_completion_tokens")


class Engine:
    """Asks one judge; see the module."""

    def __init__(self, settings: JudgeSettings, url: str, key: str | None, client: Any, store: Store | None, home: Background) -> None:
        """Make the slots, limits and counters; open nothing."""
        self.settings = settings
        self.url = url
        self.key = key
        self.model = sent_model(settings.model, url)
        self.store = store
        self.usage = Usage(settings.model)
        price = UNKNOWN if settings.max_cost_usd is None else prices(self.model, url)
        self.budget = Budget(settings.max_tokens, settings.max_cost_usd, price)
        self._loop = home.loop
        self._endpoint = Endpoint(settings, url, key, client)
        self._slots = Slots(settings.concurrency)
        self._pace = Pace(self._slots)
        self._breaker = Breaker()
        self._requests = None if settings.requests_per_minute is None else Bucket(settings.requests_per_minute)
        self._tokens = None if settings.tokens_per_minute is None else Bucket(settings.tokens_per_minute)
        learned = ("capabilities", url, self.model, settings.temperature, settings.seed)
        self._capabilities = home.keep(learned, Capabilities)
        self._of_text = home.keep((*learned, "text"), lambda: Capabilities("text"))
        self._flights: dict[str, Flight] = {}
        self._order = count()
        self._spent = asyncio.Event()
        self._key_parts = self._fixed_key_parts()
        home.closers.append(self._endpoint.close)

    # --- in the caller's thread

    def submit(self, requests: Sequence[Request], rank: int, on_answer: Callable[[int, Answer], None] | None) -> Ask:
        """Start asking."""
        ask = Ask(requests, on_answer)
        if not requests:
            ask.set_result([])
            return ask
        loop = self._loop
        ask.on_cancel = lambda: _call(loop, self._drop, ask)
        keys = [self.request_key(request) for request in requests]
        loop.call_soon_threadsafe(self._enqueue, ask, keys, rank)
        return ask

    def request_key(self, request: Request) -> str:
        """Return the key of a request: sha256 of the canonical JSON of everything that can change the reply."""
        before, between, after = self._key_parts
        messages = json.dumps([dict(message) for message in request.messages], sort_keys=True, separators=(",", ":"))
        schema = "null" if _is_text(request) else schema_text(request.reply)
        canonical = f'{before}{messages}{between}{request.repeat},"schema":{schema}{after}'
        return hashlib.sha256(canonical.encode()).hexdigest()

    def _fixed_key_parts(self) -> tuple[str, str, str]:
        """Return the parts of a key's canonical JSON that are the same for all requests."""
        settings = {"extra_body": dict(self.settings.extra_body), "seed": self.settings.seed, "temperature": self.settings.temperature}
        return (
            f'{{"endpoint":{json.dumps(self._endpoint.shown)},"messages":',
            f',"model":{json.dumps(self.model)},"repeat":',
            f',"settings":{json.dumps(settings, sort_keys=True, separators=(",", ":"))}}}',
        )

    # --- on the loop: who waits for what

    def _enqueue(self, ask: Ask, keys: Sequence[str], rank: int) -> None:
        """Add an ask's questions; one that is under way already is shared."""
        if ask.done():
            return
        entered = []
        for index, key in enumerate(keys):
            flight = self._flights.get(key)
            if flight is None:
                flight = Flight(key, ask.requests[index], rank, next(self._order), Clock(self.settings.row_timeout_s))
                self._flights[key] = flight
                entered.append(flight)
            elif rank < flight.rank and flight.task is None:
                flight.rank = rank
                entered.append(flight)
            flight.waiters.append((ask, index))
        for flight in entered:
            self._slots.enter(flight.rank, flight.order, lambda flight=flight: self._start(flight))  # type: ignore[misc]

    def _start(self, flight: Flight) -> bool:
        """Begin a question now that it has a slot; refuse the slot where nobody waits or it has begun."""
        if flight.task is not None:
            return False
        if not flight.wanted:
            self._forget(flight)
            return False
        flight.holds_slot = True
        flight.task = self._loop.create_task(self._fly(flight))
        return True

    def _drop(self, ask: Ask) -> None:
        """Forget a cancelled ask: questions that nobody else waits for are ended."""
        for flight in list(self._flights.values()):
            if any(waiting is ask for waiting, _ in flight.waiters):
                flight.waiters = [(waiting, index) for waiting, index in flight.waiters if waiting is not ask]
                if not flight.waiters:
                    self._forget(flight)
                    if flight.task is not None:
                        flight.task.cancel()

    def _forget(self, flight: Flight) -> None:
        if self._flights.get(flight.key) is flight:
            del self._flights[flight.key]

    async def _fly(self, flight: Flight) -> None:
        """Answer a question and tell all who wait."""
        outcome = Outcome(error="cancelled", reason=CANCELLED)
        try:
            try:
                with contextlib.suppress(asyncio.CancelledError):
                    outcome = await self._outcome(flight)
            finally:
                self._forget(flight)
                if flight.holds_slot:
                    flight.holds_slot = False
                    self._slots.leave()
            self._deliver(flight, outcome)
        except Exception as error:  # noqa: BLE001  (a bug, in a validator for example: it belongs to whoever waits)
            for ask, _ in flight.waiters:
                with contextlib.suppress(InvalidStateError):
                    ask.set_exception(error)

    def _deliver(self, flight: Flight, outcome: Outcome) -> None:
        """Give each waiter an answer of its own; the first carries what it cost."""
        used = self.usage.of(flight.request.step)
        used.calls += flight.calls
        used.retried += max(flight.calls - 1, 0)
        used.input_tokens += flight.input_tokens
        used.cheap_input_tokens += flight.cheap_input_tokens
        used.output_tokens += flight.output_tokens
        used.seconds += flight.seconds
        for first, (ask, index) in zip((True, *(False for _ in flight.waiters)), flight.waiters, strict=False):
            answer = self._answer(ask.requests[index], outcome, flight.text)
            if first:
                answer.calls, answer.seconds = flight.calls, flight.seconds
                answer.input_tokens, answer.output_tokens = flight.input_tokens, flight.output_tokens
            answer.cached = answer.error is None and (outcome.cached or not first)
            counters = self.usage.of(ask.requests[index].step)
            counters.cached += answer.cached
            counters.errors += answer.error is not None
            ask.take(index, answer)

    @staticmethod
    def _answer(request: Request, outcome: Outcome, text: str | None) -> Answer:
        """Return an answer with its own copy of the reply, checked in the request's own context."""
        if outcome.reply is None:
            return Answer(error=outcome.error, reason=outcome.reason, text=text)
        try:
            value = request.reply.model_validate_json(outcome.reply, context=request.context)
        except ValidationError as error:
            reason = f"The reply to an equal question does not fit this row: {error.errors()[0]['msg']}."
            return Answer(error="reply_invalid", reason=reason, text=text)
        said = value.text if isinstance(value, Text) else outcome.reply
        return Answer(value=value, text=text if text is not None else said)

    # --- on the loop: one question

    async def _outcome(self, flight: Flight) -> Outcome:
        """Answer a question from the cache, else from the judge."""
        request, unusable = flight.request, False
        if self.store is not None and (entry := await self.store.get(flight.key)) is not None:
            try:
                request.reply.model_validate_json(entry.reply, context=request.context)
            except ValidationError:
                unusable = True  # the reply model has changed its mind: ask again
            else:
                return Outcome(reply=entry.reply, cached=True)
        try:
            reply = await self._converse(flight)
        except Stop as stop:
            return stop.outcome
        except Failure as failure:
            return Outcome(error=failure.code, reason=self._told(flight, failure))
        if self.store is not None:
            entry = Entry(flight.key, time.time(), self.model, request.step, reply, flight.input_tokens, flight.output_tokens)
            await self.store.put(entry, replace=unusable)
        return Outcome(reply=reply)

    async def _converse(self, flight: Flight) -> str:
        """Ask; ask once more where the reply cannot be used, and once with more room where it was cut. Return the reply's JSON text."""
        request = flight.request
        messages: list[Message] = [{**message, "content": without_surrogates(message["content"])} for message in request.messages]
        room: dict[str, int] = {}
        asked_again = False
        while True:
            try:
                said = await self._complete(flight, messages, room)
            except Failure as failure:
                if room and failure.kind in ("form", "too_long"):
                    raise Stop("reply_truncated", f"The reply was cut off, and twice the room is refused: {failure.reason}") from None
                raise
            flight.text = said.text
            if said.refusal or said.finish == "content_filter":
                why = (
                    f"The {'model' if _is_text(request) else 'judge'} refused: {said.refusal}"
                    if said.refusal
                    else "The endpoint's content filter stopped the reply."
                )
                raise Stop("reply_refused", _short(why))
            if _is_text(request):
                return _as_text(said)
            if said.finish == "length":
                if room:
                    raise Stop("reply_truncated", f"The reply was cut off, with twice the room too: {_shown(said.text)}")
                room = self._more_room(said)
                continue
            try:
                return read_reply(said.text, request.reply, request.context).text
            except ReplyInvalidError as error:
                if asked_again:
                    raise Stop("reply_invalid", f"{_short(str(error))}; the reply was {_shown(said.text)}") from None
                asked_again = True
                messages = [*messages, *_ask_again(said.text, str(error), schema_text(request.reply))]

    def _more_room(self, said: Completion) -> dict[str, int]:
        """Return the setting that gives a cut reply twice its room."""
        for name in ROOM_NAMES:
            if isinstance(most := self.settings.extra_body.get(name), int):
                return {name: most * 2}
        used = int(said.output_tokens) or max(len(said.text or "") // CHARACTERS_A_TOKEN, 1024)
        return {"max_completion_tokens" if "api.openai.com" in self.url else "max_tokens": used * 2}

    async def _complete(self, flight: Flight, messages: Sequence[Message], room: dict[str, int]) -> Completion:
        """Get one completion in the strongest form that the endpoint takes; a weaker one counts only once it has succeeded."""
        known = self._of_text if _is_text(flight.request) else self._capabilities
        schema = schema_text(flight.request.reply)
        await self._endpoint.ready()
        await known.first_goes_ahead()
        with known.probing():
            waiting, tried = [known.features(schema)], set[Features]()
            first: Failure | None = None
            about = ""
            while waiting and len(tried) < MOST_FORMS_TRIED:
                features = waiting.pop(0)
                if features in tried:
                    continue
                tried.add(features)
                try:
                    said = await self._call(flight, self._body(flight.request, messages, features) | room)
                except Failure as failure:
                    if failure.kind != "form":
                        raise
                    first = first or failure
                    known.suspect()
                    if failure.about != about:  # another cause than before
                        about = failure.about
                        waiting = known.alternatives(schema, features, about) + waiting
                else:
                    known.learn(schema, features)
                    return said
            assert first is not None  # noqa: S101  (the first form is always tried)
            raise first

    def _body(self, request: Request, messages: Sequence[Message], features: Features) -> dict[str, Any]:
        """Return a request's body."""
        body: dict[str, Any] = {"model": self.model, "messages": messages}
        if features.form == "json_schema":
            body["response_format"] = response_format(request.reply)
        elif features.form != "text":
            body["messages"] = _with_schema(messages, schema_text(request.reply))
            if features.form == "json_object":
                body["response_format"] = {"type": "json_object"}
        if features.temperature and self.settings.temperature is not None:
            body["temperature"] = self.settings.temperature
        if features.seed and self.settings.seed is not None:
            body["seed"] = self.settings.seed + request.repeat
        return body | dict(self.settings.extra_body)

    async def _call(self, flight: Flight, body: dict[str, Any]) -> Completion:
        """Send one request until it is answered, retries are used up, or the row's time is."""
        loop, settings, clock = self._loop, self.settings, flight.clock
        size = sum(len(message["content"]) for message in body["messages"]) / CHARACTERS_A_TOKEN
        failures = limited = 0
        while True:
            await self._turn(flight, size)
            reserved = self.budget.open(size)
            said: Completion | None = None
            sent_at = loop.time()
            try:
                said = await self._endpoint.post(body, min(settings.timeout_s, max(clock.left_s, 0.001)))
            except Failure as failure:
                now = loop.time()
                if failure.status is not None or failure.kind == "everyone":
                    self._breaker.saw(failure.reason if failure.kind == "everyone" else None, now)
                self._pace.saw(limited=failure.kind == "rate", sent_at=sent_at, now=now, retry_after=failure.retry_after_s)
                if failure.kind not in RETRIED:
                    raise
                limited += failure.kind == "rate"
                failures += failure.kind != "rate"
                wait_s = failure.retry_after_s
                wait_s = backoff_s(limited if failure.kind == "rate" else failures) if wait_s is None else wait_s * _jitter(flight)
                clock.spent_s += now - sent_at
                if failures > settings.retries or clock.left_s <= wait_s:
                    if failure.kind == "connection":  # nobody is there: the other rows need not find out one by one
                        self._breaker.saw(failure.reason, now)
                    raise
                clock.spent_s += wait_s
            else:
                now = loop.time()
                said.seconds = now - sent_at
                clock.spent_s += said.seconds
                self._breaker.saw(None, now)
                self._pace.saw(limited=False, sent_at=sent_at, now=now)
                return said
            finally:
                self._count(flight, size, said, loop.time() - sent_at, reserved)
            await self._rest(flight, wait_s)

    async def _turn(self, flight: Flight, size: float) -> None:
        """Wait until a request may be sent; none of this counts as the row's time."""
        loop = self._loop
        while True:
            now = loop.time()
            if (refusal := self._breaker.refusal(now)) is not None:
                raise Stop("judge_error", f"Not asked, since no request succeeds: {refusal}")
            wait_s = self._pace.wait_s(now)
            for bucket in (self._requests, self._tokens):
                wait_s = max(wait_s, bucket.wait_s(now) if bucket is not None else 0.0)
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            elif self.budget.limited and flight.calls == 0 and not self.budget.fits(size):
                if self.budget.idle:
                    raise Stop("budget_reached", f"Not asked, to keep within {self.budget.told(size)}")
                self._spent.clear()
                await self._spent.wait()
            else:
                break
        if self._requests is not None:
            self._requests.take(1, now)
        if self._tokens is not None:
            self._tokens.take(size + self.budget.mean_output, now)

    def _count(self, flight: Flight, size: float, said: Completion | None, seconds: float, reserved: tuple[float, float]) -> None:
        """Count a call, answered or not."""
        flight.calls += 1
        flight.seconds += seconds
        used = None
        if said is not None:
            flight.input_tokens += said.input_tokens
            flight.cheap_input_tokens += said.cheap_input_tokens
            flight.output_tokens += said.output_tokens
            guessed = (size, 0.0, len(said.text or "") / CHARACTERS_A_TOKEN)
            used = (said.input_tokens, said.cheap_input_tokens, said.output_tokens) if said.counted else guessed
        if self._tokens is not None:
            expected = size + self.budget.mean_output
            self._tokens.take((used[0] + used[2] if used is not None else 0.0) - expected, self._loop.time())
        self.budget.close(reserved, used)
        self._spent.set()

    async def _rest(self, flight: Flight, seconds: float) -> None:
        """Leave the slot to others, wait, and take one again."""
        flight.holds_slot = False
        self._slots.leave()
        with self._capabilities.stepping_aside():
            await asyncio.sleep(seconds)
            await self._slots.again(flight.rank, flight.order)
        flight.holds_slot = True

    def _told(self, flight: Flight, failure: Failure) -> str:
        """Return a failure as a row's reason."""
        tries = "" if flight.calls <= 1 else f" Gave up after {flight.calls} calls and {flight.clock.spent_s:.3g} s."
        return f"{failure.reason}{tries}"


def _is_text(request: Request) -> bool:
    """Return whether plain text is asked for."""
    return issubclass(request.reply, Text)


def _as_text(said: Completion) -> str:
    """Return what was said as the JSON of a `Text`; a text that was cut off is one, nothing at all is none."""
    if said.text is None or (said.finish == "length" and not said.text.strip()):
        if said.finish == "length":
            raise Stop("reply_truncated", "The reply was cut off before it had any text.")
        raise Stop("reply_invalid", f"The reply has no text (finish_reason {said.finish!r}).")
    return Text(
        text=without_surrogates(said.text),
        finish_reason=said.finish or None,
        input_tokens=said.input_tokens if said.counted else None,
        output_tokens=said.output_tokens if said.counted else None,
        seconds=said.seconds,
    ).model_dump_json()


def _ask_again(text: str | None, wrong: str, schema: str) -> tuple[Message, ...]:
    """Return the messages that show the judge what was wrong with its reply, and the schema, which some servers ignore."""
    ask: Message = {
        "role": "user",
        "content": f"Your reply could not be used: {without_surrogates(wrong)}.\nReply again, with one JSON object that satisfies this JSON "
        f"schema, and nothing else:\n{schema}",
    }
    return ({"role": "assistant", "content": without_surrogates(text)}, ask) if text else (ask,)


def _with_schema(messages: Sequence[Message], schema: str) -> list[Message]:
    """Return messages that ask for a JSON schema in words."""
    words = f"Reply with one JSON object that satisfies this JSON schema, and nothing else:\n{schema}"
    if messages and messages[0].get("role") == "system":
        return [{**messages[0], "content": f"{messages[0]['content']}\n\n{words}"}, *messages[1:]]
    return [{"role": "system", "content": words}, *messages]


def _jitter(flight: Flight) -> float:
    """Return a factor from 1 to 1.1 that spreads those who were told to wait equally long."""
    return 1 + (flight.order % 11) / 100


def _short(text: str, most: int = 300) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _shown(text: str | None) -> str:
    """Return the beginning of a useless reply, quoted."""
    return repr(_short(text or "", SHOWN_REPLY))


def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: object) -> None:
    """Call on the loop, unless it has ended."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *arguments)
