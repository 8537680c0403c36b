"""Put the three readers' labels together as ../smollm_labels.jsonl: 150 rows of smollm_answers, statement by statement.

    python data/make/make_smollm_labels.py FOLDER

FOLDER holds what the readers wrote, labels1.jsonl to labels3.jsonl (not part of the project; ../SOURCES.md tells how they were made).
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from scorekit.judge.local import split_statements

DATA = Path(__file__).resolve().parent.parent
READERS = 3
COPIED = ("id", "kind", "topic", "language", "variant", "input", "output")
WRITTEN = ("verdicts", "why", "label", "failure", "note")

# Where one reader left the rule that the others kept; found by reading all labels again, before any score of a judge was looked at.
VERDICTS = {
    # an invented name offered as the answer is a wrong answer, which is "yes"
    ("q015", "short", 3): ("yes", "names a country as asked, an invented one"),
    ("q015", "short", 4): ("yes", "names a country as asked, an invented one"),
    ("q015", "short", 5): ("yes", "names a country as asked, an invented one"),
    # so is a senseless step offered as a step
    ("q037", "expert", 8): ("yes", "offered as a step, though washing hands is senseless"),
    ("q038", "detailed", 3): ("yes", "first step of the cure offered, a senseless one"),
    ("q048", "detailed", 10): ("yes", "offered as the first step, though circular"),
    ("q060", "detailed", 10): ("yes", "names a change as asked, a senseless one"),
    # only what is repeated word for word is "no"; said again in other words it is what it was the first time
    ("q025", "short", 5): ("unsure", "the same empty explanation in other words"),
    ("q048", "short", 6): ("unsure", "the same false background in other words"),
}
FAILURES = {("q083", "detailed"): "contradictory", ("q067", "expert"): "refuses"}


def read_lines(path: Path) -> list[dict]:
    """Return the objects of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def halves_of(questions: pd.DataFrame) -> dict[str, str]:
    """Deal the questions into two halves: of each kind in turn, English and other languages apart, in random order."""
    dealt = questions.sample(frac=1, random_state=np.random.default_rng(0))
    dealt["foreign"] = dealt["language"] != "en"
    order = dealt.sort_values(["kind", "foreign"], kind="stable")["id"].tolist()
    return {key: ("fit", "held_out")[place % 2] for place, key in enumerate(order)}


def main(folder: Path) -> None:
    """Write the rows in the order of smollm_answers."""
    written = {(row["id"], row["variant"]): row for i in range(READERS) for row in read_lines(folder / f"labels{i + 1}.jsonl")}
    for (key, variant, number), (verdict, why) in VERDICTS.items():
        row = written[key, variant]
        row["verdicts"][number - 1], row["why"][number - 1] = verdict, why
    for place, failure in FAILURES.items():
        written[place]["failure"] = failure
    answers = pd.DataFrame([row for row in read_lines(DATA / "smollm_answers.jsonl") if (row["id"], row["variant"]) in written])
    halves = halves_of(answers.drop_duplicates("id")[["id", "kind", "language"]])
    answers["statements"] = split_statements(answers)["statements"]
    with (DATA / "smollm_labels.jsonl").open("w", encoding="utf-8") as file:
        for answer in answers.to_dict("records"):
            labels = written[answer["id"], answer["variant"]]
            row = {name: answer[name] for name in (*COPIED, "statements")} | {name: labels[name] for name in WRITTEN}
            file.write(json.dumps(row | {"half": halves[answer["id"]]}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
