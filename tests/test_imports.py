"""What `import scorekit` loads, and that imports point one way (DESIGN: each room imports only from the rooms above it)."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import scorekit

ROOT = Path(scorekit.__file__).parent
ROOMS = [
    "errors", "columns", "texts", "languages", "sentences", "datasets", "judge", "progress", "pipeline", "drive", "declaration", "scorer", "scorers", "run", "estimate",
    "analysis", "evals", "monitor", "widgets", "testing", "pytest_plugin", "files", "cli",
]  # fmt: skip


def rooms_imported_by(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("scorekit."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.ImportFrom) and node.module == "scorekit":
            yield from (alias.name for alias in node.names if (ROOT / alias.name).exists() or (ROOT / f"{alias.name}.py").exists())


@pytest.mark.parametrize("path", [path for path in sorted(ROOT.rglob("*.py")) if path.parent != ROOT or path.stem[:2] != "__"], ids=str)
def test_module_imports_only_from_rooms_above_it(path):
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    below = [other for other in rooms_imported_by(path) if ROOMS.index(other) > ROOMS.index(room)]
    assert below == []


def loaded_after(code):
    listing = f"{code}\nimport sys; print(*sorted({{name.split('.')[0] for name in sys.modules}} | set(sys.modules)))"
    return set(subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True).stdout.split())


HEAVY = {"openai", "plotly", "ipywidgets", "scipy.stats", "jinja2", "sqlalchemy", "tqdm", "vaderSentiment", "anywidget", "httpx", "aiohttp"}


def test_import_scorekit_loads_nothing_heavy():
    loaded = loaded_after("import scorekit")
    assert loaded & HEAVY == set()
    assert {name for name in loaded if name.startswith("scorekit.")} == set()


def test_a_code_scorer_loads_no_judge_client():
    loaded = loaded_after("import scorekit, pandas as pd; scorekit.score_text_difference(pd.DataFrame({'input': ['a'], 'output': ['b']}))")
    assert loaded & (HEAVY - {"tqdm"}) == set()


def test_all_is_sorted_and_every_name_loads():
    assert scorekit.__all__ == sorted(scorekit.__all__)
    assert [name for name in scorekit.__all__ if not hasattr(scorekit, name)] == []


def test_all_names_are_imported_for_type_checkers_too():
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    typed = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scorekit")
        for alias in node.names
    ]
    assert sorted(typed) == scorekit.__all__


def test_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'score_relevance'"):
        scorekit.score_relevance  # noqa: B018
