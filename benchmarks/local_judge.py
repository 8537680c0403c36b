"""How well and how fast does the local judge tell which statements are about the question?

    python benchmarks/local_judge.py          speed, agreement with 60 labelled statements, ten Japanese pairs
    python benchmarks/local_judge.py --fit    fit the models again and print the constants of scorekit/judge/encoder.py

The labels follow the definition of relevancy in ``score_relevancy``: "yes" addresses what was asked, true or not; "unsure" is related matter
that does not; "no" is neither, an error message, or the question again. An AI reader (Claude) labelled all statements by hand, before any was scored. About half
of the English ones are outputs of SmolLM2-135M as found in data/smollm_answers.jsonl, the others were written for this file. No question
is in both the training and the evaluation file.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score, confusion_matrix, roc_auc_score
from sklearn.model_selection import GroupKFold

from scorekit.judge.encoder import Nearness, features, nearness, probability, relevance
from scorekit.judge.local import match_statements, split_statements
from scorekit.languages import guess_language

if TYPE_CHECKING:
    from numpy.typing import NDArray

HERE: Final = Path(__file__).parent
DATA: Final = HERE.parent / "data" / "smollm_answers.jsonl"
VERDICTS: Final = ("yes", "unsure", "no")


def read_lines(path: Path) -> pd.DataFrame:
    """Return a JSONL file as a frame."""
    with path.open(encoding="utf-8") as lines:
        return pd.DataFrame([json.loads(line) for line in lines])


def nearness_of(labelled: pd.DataFrame) -> Nearness:
    """Compare each labelled statement with its question."""
    questions = labelled["question"].tolist()
    return nearness(questions, labelled["statement"].tolist(), [guess_language(question) for question in questions])


def codes_of(results: Any) -> NDArray[np.int64]:
    """Return verdicts as 0 (yes), 1 (unsure), 2 (no)."""
    return np.array([VERDICTS.index(result) for result in results], dtype=np.int64)


def kappa(labels: NDArray[np.int64], verdicts: NDArray[np.int64]) -> float:
    """Return Cohen's kappa; sklearn's is the same and too slow to ask 5,000 times (checked against it below)."""
    share = np.bincount(labels * 3 + verdicts, minlength=9).reshape(3, 3) / len(labels)
    chance = share.sum(axis=1) @ share.sum(axis=0)
    return float((np.trace(share) - chance) / (1 - chance)) if chance < 1 else 0.0


def judged(values: NDArray[np.float64], cuts: tuple[float, float]) -> NDArray[np.int64]:
    """Return the verdicts' codes by two cuts: unsure from the first, yes from the second."""
    return np.where(values >= cuts[1], 0, np.where(values >= cuts[0], 1, 2)).astype(np.int64)


def best_cuts(values: NDArray[np.float64], labels: NDArray[np.int64]) -> tuple[float, float]:
    """Return the two cuts of the largest kappa among the percentiles of the values."""
    grid = np.unique(np.quantile(values, np.linspace(0.02, 0.98, 97)))
    cuts = [(float(low), float(high)) for i, low in enumerate(grid) for high in grid[i:]]
    return max(cuts, key=lambda pair: kappa(labels, judged(values, pair)))


def fit_models(columns: NDArray[np.float64], labelled: pd.DataFrame) -> list[tuple[float, ...]]:
    """Return intercept and weights of P(same subject) and of P(answer)."""
    models = []
    for target in ("same_subject", "answer"):
        model = LogisticRegression(C=1.0, max_iter=1_000).fit(columns, labelled[target])
        models.append((float(model.intercept_[0]), *map(float, model.coef_[0])))
    return models


def relevance_by(models: list[tuple[float, ...]], columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 0.5 P(same subject) + P(answer) by the given models."""
    return 0.5 * probability(columns, models[0]) + probability(columns, models[1])


def fit() -> None:
    """Fit on the training statements, cross-validate over questions, print the constants."""
    training = read_lines(HERE / "local_judge_training.jsonl")
    columns, labels = features(nearness_of(training)), codes_of(training["result"])
    models = fit_models(columns, training)
    unsure_from, yes_from = best_cuts(relevance_by(models, columns), labels)
    held_out = np.empty(len(training), dtype=np.int64)
    for known, unknown in GroupKFold(10).split(columns, groups=training["question"]):
        fold = fit_models(columns[known], training.iloc[known])
        cuts = best_cuts(relevance_by(fold, columns[known]), labels[known])
        held_out[unknown] = judged(relevance_by(fold, columns[unknown]), cuts)
    print(f"{len(training)} statements on {training['question'].nunique()} questions")
    print(f"10-fold over questions: accuracy {np.mean(held_out == labels):.3f}, kappa {kappa(labels, held_out):.3f}")
    for name, model in zip(("SAME_SUBJECT", "ANSWER"), models, strict=True):
        print(f"{name}: Final = ({', '.join(f'{weight:.3f}' for weight in model)})")
    print(f"YES_FROM: Final = {yes_from:.3f}\nUNSURE_FROM: Final = {unsure_from:.3f}")


def verdicts_of(labelled: pd.DataFrame) -> NDArray[np.int64]:
    """Return the local judge's verdicts, asked as a scorer asks it: one row a question."""
    rows = labelled.groupby("question", sort=False)["statement"].agg(list).reset_index()
    results = match_statements(rows.rename(columns={"question": "input", "statement": "statements"}))["results"]
    found = {
        (question, statement): verdict["result"]
        for question, statements, verdicts in zip(rows["question"], rows["statement"], results, strict=True)
        for statement, verdict in zip(statements, verdicts, strict=True)
    }
    return codes_of(found[pair] for pair in zip(labelled["question"], labelled["statement"], strict=True))


def print_speed(repeats: int = 3) -> None:
    """Print statements a second over the shipped answers, split and judged."""
    answers = read_lines(DATA)[["input", "output"]].astype("string")
    began = time.perf_counter()
    statements = split_statements(answers)["statements"]
    split_s = time.perf_counter() - began
    rows = answers.assign(statements=statements)
    count = int(statements.str.len().sum())
    distinct = statements.explode().dropna().nunique()
    match_statements(rows.iloc[:1])  # load the encoder outside the clock
    wall, cpu = [], []
    for _ in range(repeats):
        began, began_cpu = time.perf_counter(), time.process_time()
        match_statements(rows)
        wall.append(time.perf_counter() - began)
        cpu.append(time.process_time() - began_cpu)
    print(f"Speed, one thread: {len(rows)} rows, {count} statements ({distinct} distinct), median of {repeats}")
    print(f"  split    {count / split_s:10,.0f} statements/s")
    print(f"  judge    {count / np.median(wall):10,.0f} statements/s of wall time, {count / np.median(cpu):,.0f} of CPU time")


def print_agreement() -> None:
    """Print agreement with the 60 labels, beside two baselines."""
    training, labelled = read_lines(HERE / "local_judge_training.jsonl"), read_lines(HERE / "local_judge_labels.jsonl")
    labels, near = codes_of(labelled["result"]), nearness_of(labelled)
    trained = nearness_of(training)
    overlap_cuts = best_cuts(trained.containment, codes_of(training["result"]))
    majority = np.bincount(codes_of(training["result"])).argmax()
    ours = verdicts_of(labelled)
    table = {
        f'always "{VERDICTS[majority]}"': (np.full(len(labels), majority), np.zeros(len(labels))),
        "word overlap": (judged(near.containment, overlap_cuts), near.containment),
        "local judge": (ours, relevance(near)),
    }
    print(f"\nAgreement with {len(labels)} labelled statements on {labelled['question'].nunique()} questions")
    print(f"  {'':14} {'accuracy':>8} {'kappa':>7} {'AUC yes':>8} {'AUC not no':>10}")
    for name, (verdicts, values) in table.items():
        yes, about = roc_auc_score(labels == 0, values), roc_auc_score(labels != 2, values)
        assert abs(kappa(labels, verdicts) - np.nan_to_num(cohen_kappa_score(labels, verdicts))) < 1e-12
        print(f"  {name:14} {np.mean(labels == verdicts):8.3f} {kappa(labels, verdicts):7.3f} {yes:8.3f} {about:10.3f}")
    print("\nLocal judge: labels in rows, verdicts in columns")
    print(f"  {'':8}" + "".join(f"{verdict:>8}" for verdict in VERDICTS))
    for verdict, counts in zip(VERDICTS, confusion_matrix(labels, ours, labels=[0, 1, 2]), strict=True):
        print(f"  {verdict:8}" + "".join(f"{count:8}" for count in counts))


def print_japanese() -> None:
    """Print the ten Japanese pairs: relevance of the statement on the topic and of the one off it."""
    pairs = read_lines(HERE / "japanese_pairs.jsonl")
    questions = pairs["question"].tolist()
    values = {side: relevance(nearness(questions, pairs[side].tolist(), ["ja"] * len(pairs))) for side in ("on_topic", "off_topic")}
    print("\nJapanese pairs: relevance (0 to 1.5) on topic, off topic")
    for question, on_topic, off_topic in zip(questions, values["on_topic"], values["off_topic"], strict=True):
        print(f"  {on_topic:5.2f} {off_topic:6.2f}  {'above' if on_topic > off_topic else 'BELOW'}  {question}")
    print(f"  on topic above off topic: {int(np.sum(values['on_topic'] > values['off_topic']))} of {len(pairs)}")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="fit the models and print the constants")
    if parser.parse_args().fit:
        fit()
        return
    print_speed()
    print_agreement()
    print_japanese()


if __name__ == "__main__":
    main()
