"""golden/llm_verdicts.json, as far as SCORERS.md keeps it: every row through the real client against a loopback server.

The file holds what npm @mastra/evals returned for scripted replies of a judge. Its scores are rounded to two places, ours are not. Where SCORERS.md
decides otherwise, the case stands in DEVIATIONS with the outcome and the reason.
"""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

import scorekit as sk
from scorekit.errors import OptionRangeError

ROWS = json.loads((Path(__file__).parent.parent / "golden" / "llm_verdicts.json").read_text(encoding="utf-8"))["rows"]
SCORERS = {
    "answer-relevancy": sk.score_relevancy,
    "toxicity": sk.score_toxicity,
    "faithfulness": sk.score_faithfulness,
    "hallucination": sk.score_hallucination,
}
INVALID, NOT_SCORABLE, REFUSED_OPTION = "reply_invalid", "not_scorable", "OptionRangeError"

WORD = "a word that is not yes, unsure or no is an invalid reply, not a no"
FOLDED = (
    "a verdict is read after trimming, case folding and dropping quotes and a final full stop; npm compares some of them letter by letter"
)
COUNT = "as many verdicts as statements, or the reply is invalid; npm divides by the verdicts that came"
NONE = "no statements from an output with text: not scorable; npm scores it 0, or 1 for toxicity"
NEGATIVE = "a scale below 0 is refused"
ZERO = "0 is a legal scale and gives 0; npm takes it for 1"
SCALE = "an option that is left out has its default; npm then multiplies by undefined"
READ = "the reply is read all the same: repaired, or the first complete JSON value taken"

# case -> (our outcome, why): an outcome is an error code, a score, or "formula": the score by SCORERS.md
DEVIATIONS = {
    **dict.fromkeys(
        ("maybe", "maybe-all", "empty-verdict", "ja", "sentence", "zero-width", "not-applicable", "punct", "short", "turkish"),
        (INVALID, WORD),
    ),
    **dict.fromkeys(("upper", "title", "pad", "pad-title", "pad-unsure", "nbsp", "quoted"), ("formula", FOLDED)),
    **dict.fromkeys(
        ("count:3stmts-1verdict", "count:1stmt-3verdicts", "malformed:preprocess-fenced", "malformed:dup-keys"), (INVALID, COUNT)
    ),
    "empty-list": (NOT_SCORABLE, NONE),
    "empty-output": (0.0, "an empty output says nothing: 0; npm gives toxicity 1"),
    **dict.fromkeys(("malformed:single-quotes", "malformed:bom", "malformed:trailing-comma", "malformed:two-objects"), ("formula", READ)),
    "malformed:truncated": (INVALID, "a list cut off in the middle is repaired to fewer verdicts than statements: invalid, never scored"),
}


def sample(scorer):
    return [pytest.param(row, id=f"{row['id']}-{row['case']}") for row in ROWS if row["scorer"] == scorer]


def verdicts_of(row):
    if "verdictCounts" in row:
        return [word for word, count in row["verdictCounts"].items() for _ in range(count)]
    return row["verdicts"]


def in_our_form(raw):
    """A scripted reply with our field names, and with the number of its statement in each verdict."""
    raw = (
        raw.replace(',"statement":"s"', "").replace("verdicts", "results").replace('"verdict"', '"result"').replace("'verdict'", "'result'")
    )
    count = iter(range(1, 1000))
    return re.sub(r"""\{(["'])result\1""", lambda match: f"{{{match[1]}statement{match[1]}:{next(count)},{match[1]}result{match[1]}", raw)


def script(body):
    """Answer each step of the row that the prompt is about."""
    prompt = body["messages"][1]["content"]
    row = BY_ID[re.search(r"\[([a-z-]+-\d+)\]", prompt)[1]]
    said = row.get("judge", {})
    if "break the output" in prompt.lower():
        if "preprocess" in said:
            return said["preprocess"]
        return json.dumps({"statements": said.get("pre", [f"s{n}" for n in range(len(verdicts_of(row)))])})
    if "Explain the score" in prompt:
        return '{"reason": "why"}'
    if "analyze" in said:
        return in_our_form(said["analyze"])
    return json.dumps({"results": [{"statement": n, "result": word, "reason": "r"} for n, word in enumerate(verdicts_of(row), 1)]})


BY_ID = {row["id"]: row for row in ROWS}


def score_row(row, loopback):
    from loopback import Reply

    loopback.when(lambda _: True, lambda body: Reply(script(body)))
    given = row.get("options", {})
    options = {name: given[key] for key, name in (("scale", "scale"), ("uncertaintyWeight", "uncertainty_weight")) if key in given}
    output = "" if row["case"] == "empty-output" else f"[{row['id']}] says something."
    df = pd.DataFrame({"input": [f"[{row['id']}]?"], "output": [output], "context": [f"[{row['id']}] context"]})
    judge = sk.Judge("m", base_url=loopback.url, cache=False)
    scored = SCORERS[row["scorer"]](df, judge=judge, **options).iloc[0]
    name = row["scorer"].removeprefix("answer-")
    return scored[f"{name}_score"] if pd.isna(scored[f"{name}_error"]) else scored[f"{name}_error"]


def formula(row):
    """The score that SCORERS.md gives for the verdicts."""
    words = [word.strip().strip("\"'").rstrip(".").casefold() for word in verdicts_of(row)]
    given = row.get("options", {})
    weight = given.get("uncertaintyWeight", 0.3) if row["scorer"] == "answer-relevancy" else 0.0
    return (words.count("yes") + weight * words.count("unsure")) / len(words) * given.get("scale", 1.0)


@pytest.mark.parametrize("row", [row for scorer in SCORERS for row in sample(scorer)])
def test_golden_verdicts_score_as_documented(row, loopback):
    given = row.get("options", {})
    if given.get("scale", 1) < 0:
        with pytest.raises(OptionRangeError):
            score_row(row, loopback)
        return
    found = score_row(row, loopback)
    if row["case"] in DEVIATIONS:
        expected, _why = DEVIATIONS[row["case"]]
        expected = formula(row) if expected == "formula" else expected
    elif given.get("scale") == 0:
        expected = 0.0
    elif row.get("score") == "NaN":
        expected = formula(row)
    else:
        expected = row.get("score", INVALID)  # npm raises where we keep a code in the row
    if isinstance(expected, str):
        assert found == expected
    else:
        assert found == pytest.approx(expected, abs=0.005 + 1e-9)
    if not isinstance(found, str) and row["case"] != "empty-output":
        assert loopback.calls == 3


@pytest.mark.parametrize(
    ("verdicts", "score"),
    [(["yes", "yes", "yes"], 1.0), (["yes", "no"], 0.5), (["unsure"] * 3, 0.3), (["yes", "unsure", "no"], 1.3 / 3)],
)
def test_relevancy_known_cases_are_exact(verdicts, score):
    from scorekit.testing import FakeJudge

    judge = FakeJudge(
        {
            "preprocess": {"statements": [str(n) for n in range(len(verdicts))]},
            "analyze": {"results": [{"statement": n, "result": word, "reason": "r"} for n, word in enumerate(verdicts, 1)]},
            "generate_reason": {"reason": "why"},
        }
    )
    scored = sk.score_relevancy(pd.DataFrame({"input": ["q"], "output": ["a"]}), judge=judge)
    assert scored["relevancy_score"].iloc[0] == pytest.approx(score, abs=1e-12)
