"""Write ../datasets.json: what each dataset is, how many rows it has, and the sha256 of its file.

    python data/make/make_index.py

Run it after a dataset was made anew; a test compares the sums with the files.
"""

import hashlib
import json
from pathlib import Path

DATASETS = {
    "smollm_answers": {
        "file": "smollm_answers.jsonl",
        "licence": "Apache-2.0",
        "description": (
            "120 questions in 7 languages (105 English, ten Japanese), each answered by SmolLM2-135M-Instruct under three system prompts "
            "(short, detailed, expert). A very small model: often wrong, repetitive or off the point, which is what scorers are for."
        ),
    },
    "smollm_labels": {
        "file": "smollm_labels.jsonl",
        "licence": "Apache-2.0",
        "description": (
            "150 rows of smollm_answers (50 questions, three variants) split into statements, read and labelled by an AI, not by a person: each "
            "statement yes, unsure or no for relevancy, each row pass, fail or unsure with a failure mode and a note. Lists are JSON text: "
            "read_steps(df, 'verdicts'). Half of the questions for fitting, half held out."
        ),
    },
}


def describe(folder: Path, name: str) -> dict[str, object]:
    """Return the index entry of one dataset."""
    content = (folder / DATASETS[name]["file"]).read_bytes()
    lines = [line for line in content.decode().split("\n") if line]
    return {
        "name": name,
        "file": DATASETS[name]["file"],
        "rows": len(lines),
        "columns": list(json.loads(lines[0])),
        "sha256": hashlib.sha256(content).hexdigest(),
        "licence": DATASETS[name]["licence"],
        "description": DATASETS[name]["description"],
    }


def main() -> None:
    """Describe every dataset and write the index."""
    folder = Path(__file__).resolve().parent.parent
    entries = [describe(folder, name) for name in DATASETS]
    (folder / "datasets.json").write_text(json.dumps(entries, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    for entry in entries:
        print(f"{entry['name']}: {entry['rows']} rows, sha256 {entry['sha256']}")


if __name__ == "__main__":
    main()
