"""Pairs of a comparison: which points are drawn, what a search costs nobody to read twice, and where two texts differ."""

import difflib
import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scorekit.analysis.compare import compare
from scorekit.widgets.pairs import MOST_MEETINGS, POINTS, Pairs, checked_filters, word_diff
from scorekit.widgets.side_by_side import side_by_side

# ipywidgets 8.1.0 to 8.1.3 call a method that traitlets has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:Deprecated in traitlets 4.1:DeprecationWarning")


def compared(count, **options):
    """As many pairs with random scores."""
    rng = np.random.default_rng(0)
    items = [f"q{i}" for i in range(count)]
    df = pd.DataFrame({"id": items * 2, "prompt": ["a"] * count + ["b"] * count, "tone_score": rng.random(2 * count).round(2)})
    return compare(df, variant="prompt", item="id", resamples=1000, **options)


# --- points


@pytest.mark.parametrize(("count", "drawn"), [(POINTS, POINTS), (POINTS + 1, POINTS), (3 * POINTS, POINTS)])
def test_scatter_draws_5000_points_at_most_and_says_of_how_many(count, drawn):
    view = side_by_side(compared(count))
    scatter = view.scatter
    positions = scatter["positions"]
    assert scatter["total"] == count
    assert len(positions) == len(set(positions)) == drawn
    assert positions == sorted(positions)
    assert 0 <= positions[0] <= positions[-1] < count
    assert scatter["x"] == view.found.rows["tone_baseline"].iloc[positions].tolist()
    assert scatter["y"] == view.found.rows["tone_variant"].iloc[positions].tolist()
    assert scatter["outcomes"] == view.found.rows["tone_outcome"].iloc[positions].tolist()


def test_points_that_are_drawn_are_a_choice_from_all_pairs_and_the_same_in_each_view():
    found = compared(3 * POINTS)
    points = Pairs(found, "tone", "b").points
    assert points.tolist() == Pairs(found, "tone", "b").points.tolist()
    # A third of each tenth, but for chance: a standard deviation is 15 of 500.
    assert np.abs(np.histogram(points, bins=10, range=(0, 3 * POINTS))[0] - 500).max() < 90


def test_filters_and_numbers_are_of_all_pairs_and_not_of_those_drawn():
    view = side_by_side(compared(2 * POINTS))
    view.filters = {"brush": [0, 0.5, 0, 1]}
    rows = view.found.rows
    assert view.shown["numbers"]["n"] == int((rows["tone_baseline"] <= 0.5).sum())
    assert view.shown["numbers"]["n"] > POINTS


def test_pairs_without_a_difference_are_none():
    df = pd.DataFrame({"id": list("xyz") * 2, "prompt": list("aaabbb"), "tone_score": [0.5, np.nan, 0.2, 0.1, 0.3, np.nan]})
    pairs = Pairs(compare(df, variant="prompt", item="id"), "tone", "b")
    assert (len(pairs), pairs.places.tolist(), pairs.delta.tolist()) == (1, [0], [-0.4])


# --- what is filtered


@pytest.mark.parametrize("empty", [{}, {"text": ""}, {"brush": None}, {"outcome": "", "vote": None}])
def test_empty_filters_are_left_out(empty):
    assert checked_filters(empty) == {}


def test_filters_are_json_whatever_they_were_given_as():
    given_as = {"brush": np.array([1, 0, 0.25, np.inf], dtype=np.float32), "text": "x\ud800", "outcome": "win"}
    found = checked_filters(given_as, high=3.0)
    assert json.dumps(found) == '{"brush": [0.0, 1.0, 0.25, 3.0], "text": "x\\ufffd", "outcome": "win"}'


# --- two texts


def joined(pieces):
    return "".join(text for text, _ in pieces)


def marked(pieces):
    return [text for text, differs in pieces if differs]


TEXTS = st.one_of(
    st.text(alphabet="ab .,\n", max_size=60),
    st.text(alphabet="我喜欢吃。 かなa", max_size=40),
    st.lists(st.sampled_from(["the", "egg", "boil", " ", "\n\n", ".", "\ud800", "e\u0301", "🙂", "한국어"]), max_size=40).map("".join),
    st.text(max_size=40),
)


@settings(deadline=None)
@given(TEXTS, TEXTS)
@example("", "")
@example("a b", "")
@example(" a", "a ")
@example("\ud800x", "x\udfff")
@example("a a a b", "a a b")
def test_pieces_join_to_the_texts_and_what_is_not_marked_is_equal(first, second):
    sides = word_diff(first, second)
    assert [joined(side) for side in sides] == [first, second]
    plain = ["".join(text for text, differs in side if not differs) for side in sides]
    assert plain[0] == plain[1]
    for side in sides:
        assert all(text for text, _ in side)
        assert all(one[1] is not other[1] for one, other in pairwise(side))


@settings(deadline=None)
@given(TEXTS)
def test_equal_texts_have_no_mark(text):
    assert word_diff(text, text) == (([[text, False]], [[text, False]]) if text else ([], []))


@settings(deadline=None)
@given(TEXTS)
def test_text_beside_none_is_marked_as_a_whole(text):
    assert word_diff(text, "") == ([[text, True]] if text else [], [])


@pytest.mark.parametrize(
    ("first", "second", "left", "right"),
    [
        ("Boil the egg.", "Fry the egg.", ["Boil"], ["Fry"]),
        ("one two three", "one three", [" two"], []),
        ("a cat, a dog", "a cat; a dog", [","], [";"]),
        ("line\nline two", "line\n\nline two", ["line"], ["\nline"]),
        ("Case", "case", ["Case"], ["case"]),
        ("snake_case2 x", "snake_case3 x", ["snake_case2"], ["snake_case3"]),
        ("我喜欢吃苹果。", "我不喜欢吃梨。", ["苹果"], ["不", "梨"]),
        ("東京に行く", "京都に行く", ["東"], ["都"]),
        ("Tokyo東京", "Tokyo大阪", ["東京"], ["大阪"]),
        ("\U00020000\U00020001", "\U00020000\U00020002", ["\U00020001"], ["\U00020002"]),
        ("나는 사과를", "나는 배를", ["사과를"], ["배를"]),
        ("x \ud800 y", "x \ud801 y", ["\ud800"], ["\ud801"]),
    ],
)
def test_marks_are_the_words_that_the_other_text_lacks(first, second, left, right):
    assert tuple(map(marked, word_diff(first, second))) == (left, right)


def prose(seed, words=3300):
    """A text about as long as the view shows, with the frequencies of words that prose has."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, 2001)
    return " ".join(f"w{word}" for word in rng.choice(2000, words, p=shares / shares.sum()))


def test_long_prose_is_lined_up_word_by_word():
    first = prose(0)
    words = first.split(" ")
    changed = [*words[:100], "new", *words[101:2000], *words[2010:3000], "more", *words[3000:]]
    left, right = word_diff(first, " ".join(changed))
    assert marked(left) == [words[100], "".join(f" {word}" for word in words[2000:2010])]
    assert marked(right) == ["new", " more"]


def test_long_prose_with_a_tenth_of_its_words_changed_keeps_the_others():
    words = prose(1).split(" ")
    changed = np.random.default_rng(0).random(len(words)) < 0.1
    other = [f"new{place}" if new else word for place, (word, new) in enumerate(zip(words, changed, strict=True))]
    left, right = word_diff(" ".join(words), " ".join(other))
    assert " ".join(marked(left)).split() == [word for word, new in zip(words, changed, strict=True) if new]
    assert " ".join(marked(right)).split() == [word for word in other if word.startswith("new")]


REPEATED = {
    "one letter": ("a " * 10_000, "b " * 10_000),
    "turned": ("a b " * 5_000, "b a " * 5_000),
    "signs": ("!?" * 10_000, "?!" * 10_000),
    "among others": (" ".join(f"x t{i}" for i in range(3000)), " ".join(f"x u{i}" for i in range(3000))),
}


@pytest.mark.parametrize("texts", REPEATED.values(), ids=REPEATED.keys())
def test_long_texts_of_few_words_are_not_lined_up_at_any_price(texts, monkeypatch):
    """Lining up the first two of these took minutes: the kernel stood still."""
    looked_at = []
    matcher = difflib.SequenceMatcher

    def counted(isjunk, first, second, *, autojunk):
        made = matcher(isjunk, first, second, autojunk=autojunk)
        looked_at.append(sum(len(made.b2j.get(word, ())) for word in first))
        return made

    monkeypatch.setattr("scorekit.widgets.pairs.SequenceMatcher", counted)
    sides = word_diff(*texts)
    assert tuple(map(joined, sides)) == texts
    assert sum(looked_at) <= MOST_MEETINGS
    assert marked(sides[0])


def test_ends_that_are_equal_are_not_marked_where_the_middle_is_too_much():
    left, right = word_diff("Begin here. " + "a b " * 5_000 + "The end.", "Begin here. " + "b a " * 5_000 + "The end.")
    assert (left[0][0][:11], left[0][1], right[-1][1]) == ("Begin here.", False, False)
    assert right[-1][0].endswith("The end.")
