"""How well and how fast does the local judge tell which statements are about the question?

    python benchmarks/local_judge.py          speed, agreement with the held-out half of the labels, ten Japanese pairs
    python benchmarks/local_judge.py --fit    fit the models again and print the constants of scorekit/judge/encoder.py

The labels are those of data/smollm_labels.jsonl: 150 outputs on 50 questions, each statement "yes", "unsure" or "no" for relevancy, read by
an AI (data/SOURCES.md tells how). 25 of the questions, the half "fit", are for fitting and for every choice about the judge; agreement is told
for the other 25, the half "held_out". Beside the first half the models are fitted on local_judge_training.jsonl: statements in eleven languages
on questions of neither half or of the first, most of them written for this file, labelled by an AI reader too.
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

from scorekit.judge.encoder import UNSURE_FROM, YES_FROM, features, nearness, probability, relevance
from scorekit.judge.local import compare, match_statements, split_statements

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

HERE: Final = Path(__file__).parent
DATA: Final = HERE.parent / "data"
VERDICTS: Final = ("yes", "unsure", "no")
STRAYS_SEEN: Final = 0.9
"""How much of what the training file has off the subject is to be called "no": real outputs hold advertisements, those of the labels do not."""
RESAMPLES: Final = 5_000


def read_lines(path: Path) -> pd.DataFrame:
    """Return a JSONL file as a frame."""
    with path.open(encoding="utf-8") as lines:
        return pd.DataFrame([json.loads(line) for line in lines])


def labelled(half: str) -> pd.DataFrame:
    """Return the labelled outputs of one half: ``input``, ``statements``, ``verdicts`` and more."""
    rows = read_lines(DATA / "smollm_labels.jsonl")
    return rows[rows["half"] == half].reset_index(drop=True)


def read_training() -> pd.DataFrame:
    """Return the training statements in the same form, those on one question as one output: some on the subject, some off it."""
    lines = read_lines(HERE / "local_judge_training.jsonl").rename(columns={"question": "input"})
    rows = lines.groupby("input", sort=False)[["statement", "result"]].agg(list).reset_index()
    return rows.rename(columns={"statement": "statements", "result": "verdicts"})


def flat(rows: pd.DataFrame, column: str) -> NDArray[Any]:
    """Return a column once for each statement of its row."""
    return rows[column].repeat(rows["statements"].str.len()).to_numpy()


def codes_of(verdicts: Iterable[Any]) -> NDArray[np.int64]:
    """Return verdicts as 0 (yes), 1 (unsure), 2 (no)."""
    return np.array([VERDICTS.index(verdict) for verdict in verdicts], dtype=np.int64)


def labels_of(rows: pd.DataFrame) -> NDArray[np.int64]:
    """Return the readers' verdicts, one a statement."""
    return codes_of(rows["verdicts"].explode())


def kappa(labels: NDArray[np.int64], verdicts: NDArray[np.int64]) -> float:
    """Return Cohen's kappa; sklearn's is the same and too slow to ask 5,000 times (checked against it below)."""
    share = np.bincount(labels * 3 + verdicts, minlength=9).reshape(3, 3) / len(labels)
    chance = share.sum(axis=1) @ share.sum(axis=0)
    return float((np.trace(share) - chance) / (1 - chance)) if chance < 1 else 0.0


def judged(values: NDArray[np.float64], cuts: tuple[float, float]) -> NDArray[np.int64]:
    """Return the verdicts' codes by two cuts: unsure from the first, yes from the second."""
    return np.where(values >= cuts[1], 0, np.where(values >= cuts[0], 1, 2)).astype(np.int64)


def best_cuts(values: NDArray[np.float64], labels: NDArray[np.int64], unsure_from: float | None = None) -> tuple[float, float]:
    """Return the two cuts of the largest kappa among the percentiles of the values; the lower one may be given."""
    grid = np.unique(np.quantile(values, np.linspace(0.02, 0.98, 97)))
    lows = grid if unsure_from is None else [unsure_from]
    cuts = [(float(low), float(high)) for low in lows for high in grid if high >= low]
    return max(cuts, key=lambda pair: kappa(labels, judged(values, pair)))


class Fit:
    """The two models and the two cuts, fitted on the rows of the labels and of the training file."""

    def __init__(self, rows: pd.DataFrame, training: pd.DataFrame) -> None:
        parts = [part for part in (rows, training) if len(part)]
        columns = np.concatenate([features(compare(part)) for part in parts])
        labels = np.concatenate([labels_of(part) for part in parts])
        self.models = []
        for target in (labels != 2, labels == 0):
            model = LogisticRegression(C=3.0, max_iter=1_000).fit(columns, target)
            self.models.append((float(model.intercept_[0]), *map(float, model.coef_[0])))
        off = labels_of(training) == 2 if len(training) else np.zeros(0, dtype=bool)
        unsure_from = float(np.quantile(self.relevance(training)[off], STRAYS_SEEN)) if off.any() else None
        self.cuts = best_cuts(self.relevance(rows), labels_of(rows), unsure_from)

    def relevance(self, rows: pd.DataFrame) -> NDArray[np.float64]:
        """Return 0.5 P(same subject) + P(answer) of each statement."""
        columns = features(compare(rows))
        return 0.5 * probability(columns, self.models[0]) + probability(columns, self.models[1])


def print_folds(rows: pd.DataFrame, training: pd.DataFrame, name: str, repeats: int = 5) -> None:
    """Print agreement on the half "fit" where each question is judged by a fit without it; the judge's rules are left out."""
    labels, questions = labels_of(rows), flat(rows, "input")
    values, found = np.zeros(len(labels)), labels.copy()
    figures = []
    for seed in range(repeats):
        for known, unknown in GroupKFold(8, shuffle=True, random_state=seed).split(rows, groups=rows["input"]):
            held = rows.iloc[unknown]
            fold = Fit(rows.iloc[known], training[~training["input"].isin(held["input"])])
            places = np.isin(questions, held["input"])
            values[places] = fold.relevance(held)
            found[places] = judged(values[places], fold.cuts)
        aucs = (roc_auc_score(labels == 0, values), roc_auc_score(labels != 2, values))
        figures.append((np.mean(found == labels), kappa(labels, found), *aucs))
    accuracy, agreement, yes, about = np.mean(figures, axis=0)
    print(f"{name}: accuracy {accuracy:.3f}, kappa {agreement:.3f}, AUC yes {yes:.3f}, AUC not no {about:.3f}")


def fit() -> None:
    """Fit on the half "fit" and the training file, cross-validate over questions, print the constants."""
    rows, training = labelled("fit"), read_training()
    assert not set(training["input"]) & set(labelled("held_out")["input"])
    print(
        f"{len(labels_of(rows))} labelled statements on {rows['input'].nunique()} questions, {len(labels_of(training))} more for training"
    )
    print("8 folds over questions, mean of 5 shuffles")
    print_folds(rows, training, "  with the training file")
    print_folds(rows, training.iloc[:0], "  without it")
    overlap = compare(rows).containment
    print(
        f"  word overlap: AUC yes {roc_auc_score(labels_of(rows) == 0, overlap):.3f}, AUC not no {roc_auc_score(labels_of(rows) != 2, overlap):.3f}"
    )
    fitted = Fit(rows, training)
    for name, model in zip(("SAME_SUBJECT", "ANSWER"), fitted.models, strict=True):
        print(f"{name}: Final = ({', '.join(f'{weight:.3f}' for weight in model)})")
    print(f"YES_FROM: Final = {fitted.cuts[1]:.3f}\nUNSURE_FROM: Final = {fitted.cuts[0]:.3f}")


def verdicts_of(rows: pd.DataFrame) -> NDArray[np.int64]:
    """Return the local judge's verdicts, one a statement."""
    return codes_of(verdict["result"] for verdict in match_statements(rows)["results"].explode())


def values_of(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Return the local judge's relevance of each statement, where a rule decided moved to the nearest end of its verdict's range."""
    floors, ceilings = np.array([YES_FROM, UNSURE_FROM, 0.0]), np.array([1.5, np.nextafter(YES_FROM, 0), np.nextafter(UNSURE_FROM, 0)])
    verdicts = verdicts_of(rows)
    return np.clip(relevance(compare(rows)), floors[verdicts], ceilings[verdicts])


def resampled(questions: NDArray[Any], seed: int = 0) -> Iterable[NDArray[np.int64]]:
    """Yield the places of the statements of as many questions as there are, drawn with replacement."""
    random = np.random.default_rng(seed)
    places = [np.flatnonzero(questions == question) for question in dict.fromkeys(questions)]
    for _ in range(RESAMPLES):
        yield np.concatenate([places[i] for i in random.integers(len(places), size=len(places))])


def print_speed(repeats: int = 3) -> None:
    """Print statements a second over the shipped answers, split and judged."""
    answers = read_lines(DATA / "smollm_answers.jsonl")[["input", "output"]].astype("string")
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
    """Print agreement with the held-out half of the labels, beside two baselines, and the paired differences from word overlap."""
    known, rows = labelled("fit"), labelled("held_out")
    labels, overlap, ours = labels_of(rows), compare(rows).containment, verdicts_of(rows)
    overlap_cuts = best_cuts(compare(known).containment, labels_of(known))
    majority = np.bincount(labels_of(known)).argmax()
    table = {
        f'always "{VERDICTS[majority]}"': (np.full(len(labels), majority), np.zeros(len(labels))),
        "word overlap": (judged(overlap, overlap_cuts), overlap),
        "local judge": (ours, values_of(rows)),
    }
    print(f"\nAgreement with {len(labels)} held-out statements on {rows['input'].nunique()} questions")
    print(f"  {'':14} {'accuracy':>8} {'kappa':>7} {'AUC yes':>8} {'AUC not no':>10}")
    for name, (verdicts, values) in table.items():
        yes, about = roc_auc_score(labels == 0, values), roc_auc_score(labels != 2, values)
        assert abs(kappa(labels, verdicts) - np.nan_to_num(cohen_kappa_score(labels, verdicts))) < 1e-12
        print(f"  {name:14} {np.mean(labels == verdicts):8.3f} {kappa(labels, verdicts):7.3f} {yes:8.3f} {about:10.3f}")
    print(f"\nAUC of the local judge minus that of word overlap, with 95 % of {RESAMPLES:,} resamples over questions")
    for name, target in (("yes", labels == 0), ("not no", labels != 2)):
        differences = [
            roc_auc_score(target[places], values[places]) - roc_auc_score(target[places], overlap[places])
            for places in resampled(flat(rows, "input"))
        ]
        low, high = np.quantile(differences, [0.025, 0.975])
        print(f"  {name:8}{roc_auc_score(target, values) - roc_auc_score(target, overlap):6.3f}  [{low:.3f}, {high:.3f}]")
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
