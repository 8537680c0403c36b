"""Scores with reasons for the outputs of LLM applications, as columns of a pandas DataFrame.

``df.pipe(score_relevancy)`` adds a score, a reason and the step results to each row; `summarize` and `figure_scores` show where the outputs fail.
Everything public is named here and loads when first used, so that importing scorekit stays cheap.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from scorekit.analysis.agreement import Agreement, agreement
    from scorekit.analysis.compare import compare
    from scorekit.analysis.comparison import Comparison
    from scorekit.analysis.position_bias import PositionBias, position_bias
    from scorekit.analysis.self_check import self_check
    from scorekit.analysis.summary import summarize
    from scorekit.analysis.trend import trend
    from scorekit.columns import bands, read_steps, unnest
    from scorekit.datasets import list_datasets, load_dataset
    from scorekit.errors import ScorekitError
    from scorekit.estimate import estimate
    from scorekit.evals.generate import generate
    from scorekit.evals.result import EvalResult
    from scorekit.evals.run_evals import run_evals
    from scorekit.judge.client import Judge
    from scorekit.judge.local import LocalJudge, LocalJudgeWarning
    from scorekit.judge.prompts import Prompt
    from scorekit.monitor.calls import LiveCall
    from scorekit.monitor.channel import LiveStats
    from scorekit.monitor.live import live
    from scorekit.monitor.sampling import Sampled, sampled
    from scorekit.monitor.score_stored import score_stored
    from scorekit.monitor.store import ScoreStore
    from scorekit.run import ScoreResult, run_one, score
    from scorekit.scorer import Scorer
    from scorekit.scorers.faithfulness import score_faithfulness
    from scorekit.scorers.hallucination import score_hallucination
    from scorekit.scorers.preference import score_preference
    from scorekit.scorers.relevancy import score_relevancy
    from scorekit.scorers.text_difference import score_text_difference
    from scorekit.scorers.tone import score_tone
    from scorekit.scorers.toxicity import score_toxicity
    from scorekit.trace import StepRun
    from scorekit.widgets.explorer import Explorer, explore
    from scorekit.widgets.export import export_html
    from scorekit.widgets.figure_agreement import figure_agreement
    from scorekit.widgets.figure_compare import figure_compare
    from scorekit.widgets.figure_trend import figure_trend
    from scorekit.widgets.figures import figure_scores, figure_statements
    from scorekit.widgets.playground import Playground, playground
    from scorekit.widgets.side_by_side import SideBySide, side_by_side

__version__ = "0.1.0"

__all__ = [
    "Agreement",
    "Comparison",
    "EvalResult",
    "Explorer",
    "Judge",
    "LiveCall",
    "LiveStats",
    "LocalJudge",
    "LocalJudgeWarning",
    "Playground",
    "PositionBias",
    "Prompt",
    "Sampled",
    "ScoreResult",
    "ScoreStore",
    "ScorekitError",
    "Scorer",
    "SideBySide",
    "StepRun",
    "agreement",
    "bands",
    "compare",
    "estimate",
    "explore",
    "export_html",
    "figure_agreement",
    "figure_compare",
    "figure_scores",
    "figure_statements",
    "figure_trend",
    "generate",
    "list_datasets",
    "live",
    "load_dataset",
    "playground",
    "position_bias",
    "read_steps",
    "run_evals",
    "run_one",
    "sampled",
    "score",
    "score_faithfulness",
    "score_hallucination",
    "score_preference",
    "score_relevancy",
    "score_stored",
    "score_text_difference",
    "score_tone",
    "score_toxicity",
    "self_check",
    "side_by_side",
    "summarize",
    "trend",
    "unnest",
]

_HOMES = {
    "Agreement": "analysis.agreement",
    "Comparison": "analysis.comparison",
    "EvalResult": "evals.result",
    "Explorer": "widgets.explorer",
    "Judge": "judge.client",
    "LiveCall": "monitor.calls",
    "LiveStats": "monitor.channel",
    "LocalJudge": "judge.local",
    "LocalJudgeWarning": "judge.local",
    "Playground": "widgets.playground",
    "PositionBias": "analysis.position_bias",
    "Prompt": "judge.prompts",
    "Sampled": "monitor.sampling",
    "ScoreResult": "run",
    "ScoreStore": "monitor.store",
    "ScorekitError": "errors",
    "Scorer": "scorer",
    "SideBySide": "widgets.side_by_side",
    "StepRun": "trace",
    "agreement": "analysis.agreement",
    "bands": "columns",
    "compare": "analysis.compare",
    "estimate": "estimate",
    "explore": "widgets.explorer",
    "export_html": "widgets.export",
    "figure_agreement": "widgets.figure_agreement",
    "figure_compare": "widgets.figure_compare",
    "figure_scores": "widgets.figures",
    "figure_statements": "widgets.figures",
    "figure_trend": "widgets.figure_trend",
    "generate": "evals.generate",
    "list_datasets": "datasets",
    "live": "monitor.live",
    "load_dataset": "datasets",
    "playground": "widgets.playground",
    "position_bias": "analysis.position_bias",
    "read_steps": "columns",
    "run_evals": "evals.run_evals",
    "run_one": "run",
    "sampled": "monitor.sampling",
    "score": "run",
    "score_faithfulness": "scorers.faithfulness",
    "score_hallucination": "scorers.hallucination",
    "score_preference": "scorers.preference",
    "score_relevancy": "scorers.relevancy",
    "score_stored": "monitor.score_stored",
    "score_text_difference": "scorers.text_difference",
    "score_tone": "scorers.tone",
    "score_toxicity": "scorers.toxicity",
    "self_check": "analysis.self_check",
    "side_by_side": "widgets.side_by_side",
    "summarize": "analysis.summary",
    "trend": "analysis.trend",
    "unnest": "columns",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    if name not in _HOMES:
        msg = f"module 'scorekit' has no attribute {name!r}"
        raise AttributeError(msg)
    found = getattr(_import_module(f"scorekit.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return [*__all__, "__version__"]
