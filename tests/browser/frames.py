"""The frames of these tests, made in the notebook's kernel (``from browser.frames import plain``) and in the tests alike."""

from __future__ import annotations

import json
from typing import Final

import numpy as np
import pandas as pd

BAD: Final = "<img src=x onerror=window.hacked=1>"
"""What would run as markup; short enough to be a value to filter by."""

WORSE: Final = f"</script></textarea>{BAD}"
VERDICTS: Final = ("yes", "unsure", "no")


def plain() -> pd.DataFrame:
    """Return 60 rows: ``tone`` three times 0.025, 0.075 ... 0.975 but for the last three rows, which have errors; ``relevancy`` 0, 0.25 ... 1 in turn."""
    places = np.arange(60)
    tone = (places % 20 + 0.5) / 20
    tone[57:] = np.nan
    errors = [None] * 57 + ["judge_timeout", "missing_input", "missing_input"]
    statements = [json.dumps([f"statement {part} of {place}" for part in (1, 2, 3)]) for place in places]
    results = json.dumps(
        [{"statement": part, "result": verdict, "reason": f"because {verdict}"} for part, verdict in enumerate(VERDICTS, 1)]
    )
    return pd.DataFrame(
        {
            "input": [f"question {place}" for place in places],
            "output": [f"answer {place}" for place in places],
            "variant": ["b" if place % 3 == 0 else "a" for place in places],
            "tone_score": tone,
            "tone_error": pd.array(errors, dtype="string"),
            "relevancy_score": places % 5 / 4,
            "relevancy_reason": [f"reason of {place}" for place in places],
            "relevancy_statements": statements,
            "relevancy_results": results,
        }
    )


def labelled() -> pd.DataFrame:
    """Return `plain` with labels of 40 rows: fail below row 20, pass from there on."""
    return plain().assign(label=pd.array(["fail"] * 20 + ["pass"] * 20 + [None] * 20, dtype="string"))


def hostile() -> pd.DataFrame:
    """Return four rows with markup wherever a frame can have a text: cells, names of columns and of a score, index, groups, reasons, codes, tags."""
    return pd.DataFrame(
        {
            "input": [WORSE, "plain question", WORSE, "q"],
            "output": [WORSE, WORSE, "plain answer", WORSE],
            "context": json.dumps([WORSE]),
            BAD: [BAD, f"{BAD} ", BAD, "other"],
            f"{BAD}x": WORSE * 4,
            "tone_score": [0.1, 0.2, np.nan, 0.9],
            "tone_reason": WORSE,
            "tone_error": pd.array([None, None, BAD, None], dtype="string"),
            "tone_judge": WORSE,
            "tone_analyze_prompt": WORSE,
            "tone_statements": json.dumps([WORSE, "s"]),
            "tone_results": json.dumps(
                [{"statement": 1, "result": WORSE, "reason": WORSE}, {"statement": 2, "result": "no", "reason": BAD}]
            ),
            f"{BAD}y_score": [0.5, 0.4, 0.3, 0.2],
            f"{BAD}y_reason": WORSE,
            "label": pd.array(["fail", BAD, "pass", "fail"], dtype="string"),
            "note": WORSE,
            "tags": json.dumps([BAD, f"{BAD}2"]),
        },
        index=pd.Index([WORSE, "1", f"{WORSE}2", "3"]),
    )
