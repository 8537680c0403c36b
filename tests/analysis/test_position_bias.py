"""position_bias: how often the place decided, with Wilson's interval."""

import pandas as pd
import pytest

from scorekit.analysis.position_bias import position_bias
from scorekit.errors import ArgumentTypeError, MissingColumnError, OptionRangeError


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (["a", "b", "a", "tie"], ["b", "a", "a", "b"], (0.25, 0.25, 0.25, 4)),
        (["a", None, "a"], ["b", "a", None], (1.0, 0.0, 0.0, 1)),
    ],
)
def test_position_bias_counts_rows_with_two_verdicts(first, second, expected):
    bias = position_bias(pd.DataFrame({"preference_first_order": first, "preference_second_order": second}))
    assert (bias.first, bias.last, bias.agreed, bias.n) == expected


def test_position_bias_interval_is_wilson_s():
    df = pd.DataFrame({"p_first_order": ["a"] * 9 + ["b"], "p_second_order": ["b"] * 9 + ["b"]})
    bias = position_bias(df, "p_score")
    assert (round(bias.ci_low, 3), round(bias.ci_high, 3)) == (0.596, 0.982)


def test_position_bias_without_rows_is_nan():
    bias = position_bias(pd.DataFrame({"preference_first_order": [None], "preference_second_order": ["a"]}))
    assert pd.isna([bias.first, bias.ci_low, bias.ci_high, bias.last, bias.agreed]).all()
    assert bias.n == 0


def test_position_bias_of_an_unscored_frame_or_a_wrong_confidence_raises():
    with pytest.raises(MissingColumnError, match="position_bias needs a column 'preference_first_order'"):
        position_bias(pd.DataFrame({"input": ["q"]}))
    with pytest.raises(ArgumentTypeError, match="position_bias: the first argument"):
        position_bias([1])
    with pytest.raises(OptionRangeError, match="confidence"):
        position_bias(pd.DataFrame({"preference_first_order": ["a"], "preference_second_order": ["a"]}), confidence=95)


def test_position_bias_of_a_name_that_is_no_text_raises():
    with pytest.raises(ArgumentTypeError, match="name must be a scorer's name, not int"):
        position_bias(pd.DataFrame({"a": [1]}), 3)
