"""A judge's raw text to a reply: the ladder, what is refused, and the schema that is asked for."""

from typing import Annotated

import pytest
from pydantic import BaseModel, Field

from scorekit.judge.reading import ReplyInvalidError, read_reply, response_format, strict_schema
from scorekit.judge.replies import Verdicts


class Rated(BaseModel):
    score: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    reason: str


class Words(BaseModel):
    words: list[str]


GOOD = '{"score": 0.5, "reason": "so so"}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\ufeff {GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```",
        f"Sure! Here it is:\n```json\n{GOOD}\n```\nHope that helps, see [1].",
        f"Here is my verdict: {GOOD} as explained in [1] and {{2}}.",
        f"The set {{a, b}} is fine. {GOOD}",
        '<think>Maybe {"score": 1, "reason": "no"}?</think>\n' + GOOD,
        'I think {"score": 1, "reason": "no"}</think>' + GOOD,
        '{"score": 0.5, "reason": "so so",}',
        "{'score': 0.5, 'reason': 'so so'}",
    ],
)  # fmt: skip
def test_read_reply_of_a_usable_text_gives_the_reply(text):
    assert read_reply(text, Rated).value == Rated(score=0.5, reason="so so")


def test_read_reply_of_python_literals_gives_the_reply():
    class Flag(BaseModel):
        verdict: bool

    assert read_reply('{"verdict": True}', Flag).value == Flag(verdict=True)


def test_read_reply_with_a_fence_inside_a_reason_keeps_it():
    assert read_reply('{"score": 1, "reason": "uses ```python\\nx\\n``` well"}', Rated).value.reason == "uses ```python\nx\n``` well"


def test_read_reply_with_unescaped_quotes_is_repaired():
    assert read_reply('{"reason": "he said "hi" there", "score": 1}', Rated).value.reason == 'he said "hi" there'


def test_read_reply_text_validates_to_the_same_value_again():
    reading = read_reply("{'score': 0.5, 'reason': 'so so'}", Rated)
    assert Rated.model_validate_json(reading.text) == reading.value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "the reply was empty"),
        ("  \n", "the reply was empty"),
        ("I cannot help with that.", "holds no JSON object"),
        ("<think>hm", "reasoning only"),
        ('<think>so {"score": 1, "reason": "x"}', "reasoning only"),
        ('{"score": 0.5, "reason": "so s', "breaks off"),
        ('{"score": "about 0.8", "reason": "x"}', "score: .*valid number"),
        ('{"score": "8/10", "reason": "x"}', "score: .*valid number"),
        ('{"score": "", "reason": "x"}', "score: .*valid number"),
        ('{"score": null, "reason": "x"}', "score: .*valid number"),
        ('{"score": 1.2, "reason": "x"}', "less than or equal to 1"),
        ('{"score": NaN, "reason": "x"}', "numbers must be finite"),
        ("{'score': Infinity, 'reason': 'x'}", "numbers must be finite"),
        ('{"score": 0.5}', "reason: Field required"),
        ("{}", "score: Field required"),
        ("[1, 2]", "object|dictionary|Rated"),
        ("[" * 5000, "breaks off"),
        ('{"a":' * 3000, "breaks off"),
    ],
)  # fmt: skip
def test_read_reply_of_an_unusable_text_says_what_was_wrong(text, said):
    with pytest.raises(ReplyInvalidError, match=said):
        read_reply(text, Rated)


@pytest.mark.parametrize("end", range(1, len('{"words": ["a", "b", "c d"]}')))
def test_read_reply_never_completes_a_value_that_breaks_off(end):
    with pytest.raises(ReplyInvalidError):
        read_reply('{"words": ["a", "b", "c d"]}'[:end], Words)


@pytest.mark.parametrize("said", ["NaN", '"nan"', "-Infinity", '"inf"', "[1, NaN]", "1e999", "-1E+400", "[1, nan, 2],", "9" * 400])
def test_read_reply_of_numbers_that_are_not_finite_is_refused(said):
    class Loose(BaseModel):
        score: float | list[float]

    with pytest.raises(ReplyInvalidError, match=r"finite|valid number"):
        read_reply(f'{{"score": {said}}}', Loose)


def test_read_reply_with_the_word_nan_in_a_text_is_taken():
    assert read_reply('{"words": ["nan bread", "Infinity"]}', Words).value == Words(words=["nan bread", "Infinity"])
    assert read_reply("{'words': ['nan', 'x, inf, y'],}", Words).value == Words(words=["nan", "x, inf, y"])


def test_read_reply_of_too_few_verdicts_is_refused_with_the_counts():
    text = '{"results": [{"statement": 1, "result": "yes", "reason": "r"}]}'
    with pytest.raises(ReplyInvalidError, match=r"each of the 3 statements, numbered 1 to 3; got 1 numbered \[1\]"):
        read_reply(text, Verdicts, {"statements": ["a", "b", "c"]})


def test_read_reply_of_a_cut_list_of_verdicts_is_refused():
    text = '{"results": [{"statement": 1, "result": "yes", "reason": "r"}, {"statement": 2, "res'
    with pytest.raises(ReplyInvalidError, match="breaks off"):
        read_reply(text, Verdicts, {})


def test_read_reply_replaces_lone_surrogates():
    assert read_reply('{"words": ["a\\ud800b"]}', Words).value == Words(words=["a\ufffdb"])
    assert read_reply('{"words": ["a\ud800b"]}', Words).value == Words(words=["a\ufffdb"])


def test_strict_schema_closes_every_object_and_requires_every_property():
    schema, strict = strict_schema(Verdicts)
    verdict = schema["$defs"]["Verdict"]
    assert strict
    assert (schema["additionalProperties"], schema["required"]) == (False, ["results"])
    assert (verdict["additionalProperties"], verdict["required"]) == (False, ["statement", "result", "reason"])


def test_strict_schema_keeps_fields_called_title_and_default():
    class Book(BaseModel):
        title: str
        default: int

    assert list(strict_schema(Book)[0]["properties"]) == ["title", "default"]


def test_strict_schema_of_a_described_reference_writes_it_out():
    class Part(BaseModel):
        said: str

    class Whole(BaseModel):
        part: Part = Field(description="The part.")

    part = strict_schema(Whole)[0]["properties"]["part"]
    assert part == {
        "description": "The part.", "properties": {"said": {"type": "string"}}, "required": ["said"], "type": "object", "additionalProperties": False,
    }  # fmt: skip


def test_strict_schema_of_a_free_mapping_is_not_strict():
    class Free(BaseModel):
        counts: dict[str, int]

    assert strict_schema(Free)[1] is False
    assert response_format(Free)["json_schema"]["strict"] is False


def test_strict_schema_of_a_recursive_model_ends():
    class Node(BaseModel):
        name: str
        children: list["Node"] = Field(description="Below.")

    assert strict_schema(Node)[1]
