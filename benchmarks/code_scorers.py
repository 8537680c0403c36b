"""How fast the code scorers are beside the obvious alternatives, in one run: ``python benchmarks/code_scorers.py``.

Ours is always the whole call on a frame, reasons included, unless a line says otherwise. Ours and the alternative take turns; what is printed are
medians of the rounds, and the median of the rounds' ratios. Texts are windows of about 200 characters from the shipped answers of a small
model ("prose"), the output being the input with every fifth word replaced; and made-up reviews ("dense": every third word or so carries
sentiment). ``--rows``, ``--rounds`` and ``--million`` change the amounts; a value below its aim is marked with "!".
"""

import argparse
import difflib
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import cydifflib
import numpy as np
import pandas as pd
from afinn import Afinn
from rapidfuzz import process
from rapidfuzz.distance import Indel
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from scorekit.scorers.matching_pool import usable_cores
from scorekit.scorers.text_difference import score_text_difference, text_lengths, twice_lcs
from scorekit.scorers.tone import score_tone
from scorekit.scorers.vader import vader_sentiment
from scorekit.texts import TEXT

DATA = Path(__file__).parents[1] / "data" / "smollm_answers.jsonl"
SUBJECTS = [
    "The food",
    "Our room",
    "This phone",
    "The staff",
    "My order",
    "The battery",
    "The movie",
    "Her voice",
    "The app",
    "The support",
]
FEELINGS = [
    "terrible",
    "awful",
    "boring",
    "broken",
    "disappointing",
    "rude",
    "horrible",
    "useless",
    "sad",
    "annoying",
    "great",
    "good",
    "wonderful",
    "amazing",
    "friendly",
    "happy",
    "excellent",
    "beautiful",
    "love",
    "nice",
]
MODIFIERS = ["very", "really", "not", "never", "extremely", "so", "quite", "hardly", "isn't", "absolutely", "somewhat"]


def prose(count, seed=7, size=200):
    """Return inputs and outputs: windows of real answers, and the same with every fifth word replaced."""
    rng = random.Random(seed)
    answers = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    words = [word for answer in answers if answer["language"] == "en" for word in answer["output"].split()]
    inputs, outputs = [], []
    for _ in range(count):
        start = end = rng.randrange(len(words) - size)
        while sum(map(len, words[start:end])) + end - start < size:
            end += 1
        inputs.append(" ".join(words[start:end]))
        outputs.append(" ".join(rng.choice(words) if rng.random() < 0.2 else word for word in words[start:end]))
    return inputs, outputs


def reviews(count, seed=11):
    """Return texts full of sentiment, boosters and negations."""
    rng = random.Random(seed)

    def clause():
        modifier, other = rng.choice(["the", *MODIFIERS]), rng.choice(["", *MODIFIERS])
        joint = rng.choice(["and", "but", "yet"])
        return f"{rng.choice(SUBJECTS)} was {modifier} {rng.choice(FEELINGS)} {joint} {other} {rng.choice(FEELINGS)}{rng.choice('.!?.')}"

    return [" ".join(clause() for _ in range(rng.randint(3, 6))) for _ in range(count)]


def count_words(inputs, outputs):
    """The bare loop: word changes and nothing else."""
    counts = []
    for a, b in zip(inputs, outputs, strict=True):
        x, y = a.split(), b.split()
        if x == y:
            counts.append(0 if a == b else 1)
        elif not x or not y:
            counts.append(max(len(x), len(y)))
        else:
            counts.append(max(len(x), len(y)) - sum((Counter(x) & Counter(y)).values()))
    return counts


def count_spans(matcher, inputs, outputs):
    return [
        sum(tag != "equal" for tag, *_ in matcher(None, a, b, autojunk=False).get_opcodes()) for a, b in zip(inputs, outputs, strict=True)
    ]


def exact_ratio(rows):
    """The ratio part of the scorer: from the columns that the step gets to the ratios."""
    inputs, outputs = rows["input"].tolist(), rows["output"].tolist()
    a, b = text_lengths(inputs), text_lengths(outputs)
    return np.divide(twice_lcs(inputs, outputs, a, b), a + b, out=np.ones(len(rows)), where=a + b > 0)


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(rounds, ours, n_ours, other, n_other):
    """Return both rates, in items a second, and the ratio of ours to the other, as medians of rounds in which they take turns."""
    rates = [(n_ours / seconds(ours), n_other / seconds(other)) for _ in range(rounds)]
    return *(statistics.median(column) for column in zip(*rates, strict=True)), statistics.median(a / b for a, b in rates)


def line(what, unit, ours, other, rate, alternative, aim=None):
    mark = "" if aim is None else f" (aim {aim:g}){'' if rate >= aim else ' !'}"
    print(f"| {what} | {ours:,.0f} {unit}/s | {alternative} | {other:,.0f} {unit}/s | {rate:.2f}{mark} |", flush=True)


def frame_of(inputs, outputs):
    return pd.DataFrame({"input": inputs, "output": outputs})


def text_difference_lines(rounds, rows):
    inputs, outputs = prose(rows)
    frame, few = frame_of(inputs, outputs), 300
    step_rows = frame.astype(TEXT)  # as a step gets them

    def words():
        return score_text_difference(frame, changes="words")

    assert words()["text_difference_changes"].tolist() == count_words(inputs, outputs)
    found = compare(rounds, words, rows, lambda: count_words(inputs, outputs), rows)
    line('text difference, changes="words"', "pairs", *found, "bare loop that only counts words", 0.7)

    found = compare(
        rounds, lambda: exact_ratio(step_rows), rows, lambda: process.cpdist(inputs, outputs, scorer=Indel.normalized_similarity), rows
    )
    line("its ratio part alone", "pairs", *found, "bare rapidfuzz cpdist", 0.5)

    def apply():
        return frame.apply(lambda row: Indel.normalized_similarity(row["input"], row["output"]), axis=1)

    found = compare(rounds, lambda: exact_ratio(step_rows), rows, apply, rows)
    line("its ratio part alone", "pairs", *found, "df.apply with rapidfuzz")

    for size, name in ((1_000, "one process"), (2 * rows, f"all {usable_cores()} cores")):
        a, b = prose(size, seed=size)
        many = frame_of(a, b)
        assert score_text_difference(many.head(few))["text_difference_changes"].tolist() == count_spans(
            difflib.SequenceMatcher, a[:few], b[:few]
        )
        for matcher, amount, aim in ((difflib, few, 8), (cydifflib, 1_000, None)):
            found = compare(
                rounds,
                lambda many=many: score_text_difference(many),
                size,
                lambda a=a, b=b, matcher=matcher, amount=amount: count_spans(matcher.SequenceMatcher, a[:amount], b[:amount]),
                amount,
            )
            line(f"text difference, spans, {size:,} rows ({name})", "pairs", *found, f"loop over {matcher.__name__}", aim)


def tone_lines(rounds, rows):
    analyzer, afinn = SentimentIntensityAnalyzer(), Afinn()
    for name, (inputs, outputs), aim in (
        ("prose", prose(rows // 4, seed=3), 2),
        ("dense", (reviews(rows // 4), reviews(rows // 4, seed=12)), 3),
    ):
        texts, frame = inputs + outputs, frame_of(inputs, outputs)
        assert [vader_sentiment(text)[0] for text in texts] == [analyzer.polarity_scores(text)["compound"] for text in texts]

        def loop(texts=texts):
            return [analyzer.polarity_scores(text)["compound"] for text in texts]

        found = compare(rounds, lambda frame=frame: score_tone(frame), len(texts), loop, len(texts))
        line(f"tone, VADER, {name}", "texts", *found, "loop over polarity_scores, compounds equal", aim)
        found = compare(rounds, lambda texts=texts: list(map(vader_sentiment, texts)), len(texts), loop, len(texts))
        line(f"its sentiments alone, {name}", "texts", *found, "loop over polarity_scores, compounds equal", aim)
    few = texts[:500]
    found = compare(rounds, lambda: score_tone(frame, lexicon="afinn"), len(texts), lambda: list(map(afinn.score, few)), len(few))
    line("tone, AFINN, dense", "texts", *found, "loop over Afinn().score (sums only)")


def peak_of(scorer, rows):
    """Return a frame's and a call's peak memory in MB, and its seconds, measured in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--peak", scorer, "--million", str(rows)], capture_output=True, text=True, check=True)
    return map(float, done.stdout.split())


def measure_peak(scorer, rows):
    inputs, outputs = prose(2_000, size=40)
    names = range(rows // len(inputs) + 1)
    frame = frame_of([f"{text} {i}" for i in names for text in inputs][:rows], [f"{text} {i}" for i in names for text in outputs][:rows])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    call = {
        "spans": score_text_difference,
        "words": lambda df: score_text_difference(df, changes="words"),
        "vader": score_tone,
        "afinn": lambda df: score_tone(df, lexicon="afinn"),
    }[scorer]
    took = seconds(lambda: call(frame))
    print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, took)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--rows", type=int, default=20_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--million", type=int, default=1_000_000, help="rows of the memory measurement; 0 leaves it out")
    options.add_argument("--peak", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    os.environ["SCOREKIT_PROGRESS"] = "0"
    if chosen.peak:
        measure_peak(chosen.peak, chosen.million)
        return
    print("| ours: the whole call, reasons included | ours | alternative | alternative | ours / alternative |")
    print("|---|---|---|---|---|")
    text_difference_lines(chosen.rounds, chosen.rows)
    tone_lines(chosen.rounds, chosen.rows)
    if chosen.million:
        print(f"\n| {chosen.million:,} rows, two texts of about 45 characters | MB with the frame alone | peak MB | MB added | rows/s |")
        print("|---|---|---|---|---|")
        for scorer in ("words", "spans", "vader", "afinn"):
            before, peak, took = peak_of(scorer, chosen.million)
            print(f"| {scorer} | {before:,.0f} | {peak:,.0f} | {peak - before:,.0f} | {chosen.million / took:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
