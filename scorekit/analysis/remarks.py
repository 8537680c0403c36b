"""Sentences about an agreement: what can be concluded, then what cannot, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from scorekit.analysis.labels import BINARY, MISSING
from scorekit.analysis.verdicts import unlabelled_counts

if TYPE_CHECKING:
    from scorekit.analysis.agreement import Agreement

WEAK, STRONG = 0.4, 0.6
"""A kappa surely below the first is called little, surely above the second well; Landis and Koch (1977) call these at most fair, and substantial."""

FEW: Final = 10
"""With fewer labelled rows of a class than this, how little is known of it is said."""

FAR: Final = 2.576
"""So many standard errors apart, as one random choice in a hundred is, labelled and other rows are said to differ."""


def sentences(found: Agreement) -> tuple[str, ...]:
    """Return in sentences what can be concluded, then what cannot, and why."""
    of_classes = _of_two if found.classes == BINARY else _of_several
    return (_conclusion(found), *_of_pass_rate(found), *of_classes(found), *_of_threshold(found), *_of_rows(found))


def _metrics(found: Agreement) -> dict[Any, Any]:
    """Return the rows of the table by their metric."""
    return found.table.set_index("metric").to_dict("index")


def _conclusion(found: Agreement) -> str:
    """Return the first sentence: whether the score agrees with the labels beyond chance."""
    metrics = _metrics(found)
    kappa, accuracy = metrics["kappa"], metrics["accuracy"]
    score, human = found.score, found.human
    n = "1 labelled row" if accuracy["n"] == 1 else f"{accuracy['n']:,} labelled rows"
    level = f"{found.confidence * 100:g} % interval"
    between = f"kappa {kappa['value']:.2f}, {level} {kappa['ci_low']:.2f} to {kappa['ci_high']:.2f}"
    if np.isnan(kappa["value"]):
        return f"Whether {score} agrees with {human} beyond chance cannot be concluded from {n}: {kappa['note']}."
    if np.isnan(kappa["ci_low"]):
        least = _percent(accuracy["ci_low"])
        return f"{score} agrees with {human} on all {n}; elsewhere they may agree on no more than {least} ({level} of the accuracy)."
    if kappa["ci_high"] < 0:
        return f"{score} agrees with {human} less than chance would ({between}; {n}): check which label means pass, and whether lower is better."
    if kappa["ci_low"] <= 0:
        share = _percent(accuracy["value"])
        return (
            f"It cannot be concluded from {n} that {score} agrees with {human} beyond chance ({between}), although they agree on {share}."
        )
    how = (
        "only a little more than chance would"
        if kappa["ci_high"] < WEAK
        else "well beyond chance"
        if kappa["ci_low"] >= STRONG
        else "beyond chance"
    )
    return f"{score} agrees with {human} {how}: on {_percent(accuracy['value'])} of {n} ({between})."


def _of_pass_rate(found: Agreement) -> list[str]:
    """Return what share of all rows is good, and whether the labelled rows can tell."""
    passed, rest = unlabelled_counts(found.codes)
    if not (len(found.pass_rate) and rest):
        return []
    methods: dict[Any, Any] = found.pass_rate.set_index("method").to_dict("index")
    labels, ppi = methods["labels only"], methods["PPI++"]
    n, near = labels["n_labelled"], int(found.matrix["pass"].sum())
    pooled = (near + passed) / (n + rest)
    texts = [
        (
            f"About {_percent(ppi['estimate'])} of all {n + rest:,} scored rows are good (PPI++, {_between(ppi)}); "
            f"the score alone passes {_percent(pooled)}, the labels alone say {_between(labels)}."
        )
    ]
    error = (pooled * (1 - pooled) * (1 / n + 1 / rest)) ** 0.5
    if abs(near / n - passed / rest) > FAR * error > 0:
        texts.append(
            f"The score passes {_percent(near / n)} of the labelled rows but {_percent(passed / rest)} of the others, which a random choice of rows to "
            "label hardly gives: do not trust these pass rates unless the choice was random."
        )
    return texts


def _of_two(found: Agreement) -> list[str]:
    """Return what too few rows of a class leave unknown, where the classes are pass and fail."""
    texts = []
    metrics = _metrics(found)
    for metric, name in (("tpr", "pass"), ("tnr", "fail")):
        row = metrics[metric]
        if not row["n"]:
            texts.append(
                f"No labelled row is a {name}: how the score treats those is unknown, and so are {metric.upper()}, J and Rogan-Gladen."
            )
        elif row["n"] < FEW:
            few = "1 labelled row is" if row["n"] == 1 else f"{row['n']} labelled rows are"
            texts.append(f"Only {few} a {name}, so that {metric.upper()} may be anything from {_between(row)}.")
    if metrics["tpr"]["value"] + metrics["tnr"]["value"] <= 1:
        texts.append(
            "TPR + TNR is 1 or less: at this threshold the score does no better than a coin. Check which label means pass: "
            "labels={1: 'fail', 0: 'pass'} turns them round."
        )
    return texts


def _of_several(found: Agreement) -> list[str]:
    """Return which classes only one of the two uses."""
    labelled, scored = found.matrix.sum(axis=1), found.matrix.sum(axis=0)
    pairs = ((found.human, labelled, scored), (found.score, scored, labelled))
    lonely = [(name, rater) for rater, own, other in pairs for name in found.classes if own[name] and not other[name]]
    return [f"Only {rater} uses the label {name}; if it means the same as another, say so with labels=." for name, rater in lonely]


def _of_threshold(found: Agreement) -> list[str]:
    """Return whether another threshold would be better on these rows."""
    if np.isnan(found.best_threshold) or found.best_threshold == found.threshold:
        return []
    j = found.curve.set_index("threshold")["j"]
    return [
        (
            f"On these rows Youden's J is {j[found.best_threshold]:.2f} at a threshold of {found.best_threshold:g}, and {j[found.threshold]:.2f} at "
            f"{found.threshold:g}. Chosen on them, it will do less well on others: confirm it with new labels."
        )
    ]


def _of_rows(found: Agreement) -> list[str]:
    """Return which labels are left out, and whether judges are mixed."""
    texts = []
    if found.counts["unsure"]:
        texts.append(f"Rows left out as unsure: {found.counts['unsure']:,}. unsure='fail' and unsure='pass' show how much hangs on them.")
    if wasted := int(((found.codes[0] != MISSING) & (found.codes[1] == MISSING)).sum()):
        texts.append(f"Rows left out that have a label but no score: {wasted:,}.")
    if len(found.judges) > 1:
        texts.append(f"The scores of {len(found.judges)} judges are mixed: the numbers describe none of them alone.")
    return texts


def _between(row: dict[str, Any]) -> str:
    """Return the ends of a row's interval."""
    return f"{_percent(row['ci_low'])} to {_percent(row['ci_high'])}"


def _percent(share: float) -> str:
    """Return a share in per cent, with a digit more where it would read as none or all without being that."""
    whole = round(share * 100)
    return f"{share * 100:.1f} %" if whole in (0, 100) and share not in (0.0, 1.0) else f"{whole} %"
