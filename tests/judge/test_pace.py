"""Back-off, Retry-After, slots, slowing down and speeding up, limits."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from loopback import Reply
from pydantic import BaseModel

from scorekit.judge.client import Judge
from scorekit.judge.pace import Breaker, Bucket, Pace, Slots, backoff_s, retry_after_s
from scorekit.judge.replies import Request


class Said(BaseModel):
    said: str


def questions(count):
    return [Request(({"role": "user", "content": f"row {number} of many"},), Said, step="test.analyze") for number in range(count)]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (None, None),
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "100000"}, 60.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "150", "retry-after": "9"}, 0.15),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_retry_after_reads_seconds_and_dates(headers, expected):
    assert retry_after_s(headers) == expected


def test_retry_after_of_a_future_date_is_the_time_until_then():
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=10), usegmt=True)
    assert 8 < retry_after_s({"retry-after": date}) <= 10


def test_backoff_doubles_with_jitter_up_to_its_cap():
    for failures, most in [(1, 0.5), (2, 1.0), (3, 2.0), (6, 16.0), (7, 20.0), (100, 20.0)]:
        waits = [backoff_s(failures) for _ in range(50)]
        assert most / 2 <= min(waits) <= max(waits) <= most
        assert len(set(waits)) > 10


def test_slots_go_to_the_smallest_rank_then_to_who_came_first():
    started = []
    slots = Slots(1)
    for name, rank, order in [("a", 1, 0), ("b", 2, 1), ("c", 0, 2), ("d", 0, 3)]:
        slots.enter(rank, order, lambda name=name: started.append(name) or True)
    for _ in range(3):
        slots.leave()
    assert started == ["a", "c", "d", "b"]


def test_slots_skip_who_does_not_want_one_any_more():
    slots = Slots(1)
    slots.enter(0, 0, lambda: False)
    assert slots.used == 0


def test_slots_again_gives_the_slot_on_when_cancelled():
    async def main():
        slots = Slots(1)
        slots.enter(0, 0, lambda: True)
        waiting = asyncio.create_task(slots.again(0, 1))
        await asyncio.sleep(0)
        slots.leave()  # the turn is granted, but its task is cancelled before it runs
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return slots.used

    assert asyncio.run(main()) == 0


def test_pace_slows_down_only_when_most_of_a_window_is_limited():
    slots = Slots(20)
    pace = Pace(slots)
    for number in range(20):
        pace.saw(limited=number % 2 == 0, sent_at=0.0, now=1.0, retry_after=3.0)
    assert (slots.limit, pace.wait_s(1.0)) == (20, 0.0)
    for _ in range(2):
        pace.saw(limited=True, sent_at=0.0, now=1.0, retry_after=3.0)
    assert (slots.limit, pace.wait_s(1.0), pace.wait_s(5.0)) == (10, 3.0, 0.0)


def test_pace_ignores_answers_to_requests_sent_before_it_slowed_down():
    slots = Slots(20)
    pace = Pace(slots)
    for _ in range(20):
        pace.saw(limited=True, sent_at=0.0, now=1.0, retry_after=3.0)
    assert slots.limit == 10


def test_pace_grows_back_with_good_answers():
    slots = Slots(20)
    pace = Pace(slots)
    for _ in range(11):
        pace.saw(limited=True, sent_at=0.0, now=1.0, retry_after=0.0)
    limits = []
    for _ in range(100):
        pace.saw(limited=False, sent_at=2.0, now=3.0)
        limits.append(slots.limit)
    assert (limits[0], limits[-1]) == (10, 20)
    assert limits == sorted(limits)


@pytest.mark.parametrize("per_minute", [1, 30, 60, 600, 6000])
def test_bucket_gives_at_most_its_limit_in_any_minute(per_minute):
    bucket, now, taken = Bucket(per_minute), 0.0, []
    while now < 200:
        if (wait := bucket.wait_s(now)) > 0:
            now += wait + 1e-9
            continue
        bucket.take(1, now)
        taken.append(now)
    most = max(sum(1 for other in taken if begin <= other < begin + 60) for begin in taken[:: max(1, per_minute // 60)])
    assert 0.9 * per_minute <= most <= per_minute


def test_bucket_waits_off_a_debt():
    bucket = Bucket(6000)
    bucket.take(1000, 0.0)
    assert 8 < bucket.wait_s(0.0) < 10


def test_breaker_opens_after_equal_failures_and_closes_with_a_success():
    breaker = Breaker()
    for _ in range(Breaker.LIMIT):
        assert breaker.refusal(0.0) is None
        breaker.saw("wrong key", 0.0)
    assert (breaker.refusal(1.0), breaker.refusal(6.0)) == ("wrong key", None)
    breaker.saw("wrong key", 6.0)
    assert breaker.refusal(7.0) == "wrong key"
    breaker.saw(None, 12.0)
    breaker.saw("wrong key", 12.0)
    assert breaker.refusal(12.0) is None


# --- through the client


def test_ten_percent_429_with_retry_after_scores_every_row_in_time(loopback):
    loopback.latency_s = 0.05
    loopback.when(lambda _: loopback.calls % 10 == 0, Reply(status=429, headers={"Retry-After": "1"}))
    begun = time.monotonic()
    answers = Judge("m", base_url=loopback.url).ask(questions(100))
    assert [answer.error for answer in answers] == [None] * 100
    assert time.monotonic() - begun < 100 * 0.05 / 32 + 10
    assert loopback.statuses[429] >= 10


def test_retry_after_as_a_date_is_waited_for(loopback):
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    loopback.when("row", Reply(status=429, headers={"Retry-After": date}), times=1)
    begun = time.monotonic()
    answer = Judge("m", base_url=loopback.url).ask(questions(1))[0]
    assert (answer.error, answer.calls) == (None, 2)
    assert time.monotonic() - begun > 0.9


def test_429_of_one_row_holds_up_no_other(loopback):
    loopback.when("row 0 ", Reply(status=429, headers={"Retry-After": "2"}), times=1)
    arrived = []
    future = Judge("m", base_url=loopback.url, concurrency=2).submit(questions(60), on_answer=lambda index, _: arrived.append(index))
    future.result(20)
    assert (len(arrived), arrived[-1]) == (60, 0)


def test_429_for_ever_ends_at_the_row_deadline(loopback):
    loopback.when("row 0 ", Reply(status=429))
    begun = time.monotonic()
    answers = Judge("m", base_url=loopback.url, row_timeout_s=1.5).ask(questions(20))
    assert [answer.error for answer in answers] == ["judge_error"] + [None] * 19
    assert answers[0].reason.startswith(f"HTTP 429 Too Many Requests from {loopback.url}: injected Gave up after")
    assert time.monotonic() - begun < 4


def test_endpoint_with_a_rate_limit_of_its_own_answers_every_row(loopback):
    times = []

    def over(body):
        times[:] = [at for at in times if at > time.monotonic() - 0.5]
        if len(times) >= 10:
            return True
        times.append(time.monotonic())
        return False

    loopback.when(over, Reply(status=429, headers={"Retry-After": "0.5"}))
    judge = Judge("m", base_url=loopback.url, concurrency=32)
    assert [answer.error for answer in judge.ask(questions(60))] == [None] * 60


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 504, 529])
def test_passing_status_is_retried(loopback, status):
    loopback.when("row", Reply(status=status, headers={"Retry-After": "0"}), times=2)
    answer = Judge("m", base_url=loopback.url).ask(questions(1))[0]
    assert (answer.error, answer.calls) == (None, 3)


@pytest.mark.parametrize("status", [402, 405, 410, 413, 418, 451])
def test_other_4xx_is_not_retried(loopback, status):
    loopback.when("row", Reply(status=status))
    answer = Judge("m", base_url=loopback.url).ask(questions(1))[0]
    assert (answer.error, answer.calls) == ("input_too_long" if status == 413 else "judge_error", 1)


def test_connection_reset_is_retried(loopback):
    loopback.when("row", Reply(drop=True), times=1)
    answer = Judge("m", base_url=loopback.url).ask(questions(1))[0]
    assert (answer.error, answer.calls) == (None, 2)


def test_slow_answer_is_asked_for_again_then_times_out(loopback):
    loopback.when("row", Reply(hang=True), times=1)
    answer = Judge("m", base_url=loopback.url, timeout_s=1.5).ask(questions(1))[0]
    assert (answer.error, answer.calls) == (None, 2)


def test_queueing_does_not_count_as_the_rows_time(loopback):
    loopback.latency_s = 0.1
    answers = Judge("m", base_url=loopback.url, concurrency=1, timeout_s=1.5, row_timeout_s=1.5).ask(questions(20))
    assert [answer.error for answer in answers] == [None] * 20


def test_requests_per_minute_is_kept(loopback):
    judge = Judge("m", base_url=loopback.url, requests_per_minute=1200)  # 20 at once, then 20 a second
    begun = time.monotonic()
    judge.ask(questions(40))
    assert 0.8 < time.monotonic() - begun < 6


def test_tokens_per_minute_is_kept(loopback):
    judge = Judge("m", base_url=loopback.url, tokens_per_minute=1800)  # 16 tokens a call as counted by the endpoint
    begun = time.monotonic()
    judge.ask(questions(6))
    assert time.monotonic() - begun > 1.5
