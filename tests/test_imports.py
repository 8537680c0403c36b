"""What `import scorekit` loads, and that imports point one way (DESIGN: each room imports only from the rooms above it)."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import scorekit

ROOT = Path(scorekit.__file__).parent
ROOMS = [
    "errors", "columns", "texts", "languages", "sentences", "datasets", "judge", "progress", "trace", "pipeline", "drive", "declaration", "scorer", "scorers", "run",
    "estimate", "analysis", "evals", "monitor", "widgets", "files", "terminal", "cli_playground", "cli_gates", "cli_compare", "cli_store", "cli", "pytest_checks", "pytest_plugin", "testing",
]  # fmt: skip
"""DESIGN's rooms in its order, with those that it does not name (languages, sentences, progress, trace, pipeline, drive, declaration, estimate, files, terminal, cli_playground, cli_gates, cli_compare, cli_store, pytest_checks) in their places."""

FOR_TYPES_ALONE = {("declaration", "scorer")}
"""Imports that would point the other way, were they not made for type checkers alone."""

MODULES = [path for path in sorted(ROOT.rglob("*.py")) if path.parent != ROOT or path.stem[:2] != "__"]
FRONT = "scorekit"
"""What `import scorekit` alone counts as: the whole package, for cli and the rooms below it."""


def rooms_imported_by(source, package):
    """The rooms that a module's source imports from, wherever in it; ``package`` is where its relative imports begin, such as scorekit.judge."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            names += [f"{base}.{scorekit._HOMES.get(alias.name, alias.name)}" if base == "scorekit" else base for alias in node.names]
    return {[*name.split("."), FRONT][1] for name in names if name.split(".")[0] == "scorekit"}


def room_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_every_module_has_a_room():
    assert {room_of(path) for path in MODULES} - set(ROOMS) == set()


def test_contributing_lists_the_rooms_in_order():
    text = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = text[text.index("`errors`") : text.index(": each imports only")]
    assert [name.rstrip("/") for name in re.findall(r"`([\w/]+)`", listed)] == ROOMS


@pytest.mark.parametrize("path", MODULES, ids=[path.relative_to(ROOT).as_posix() for path in MODULES])
def test_module_imports_only_from_rooms_above_it(path):
    package = ".".join(["scorekit", *path.relative_to(ROOT).parent.parts])
    order = {FRONT: ROOMS.index("cli")} | {room: place for place, room in enumerate(ROOMS)}
    imported = rooms_imported_by(path.read_text(encoding="utf-8"), package)
    below = [room for room in sorted(imported) if order.get(room, len(ROOMS)) > order[room_of(path)]]
    assert [room for room in below if (room_of(path), room) not in FOR_TYPES_ALONE] == []


@pytest.mark.parametrize(
    ("source", "rooms"),
    [
        ("import scorekit.run as run, json", {"run"}),
        ("import scorekit", {FRONT}),
        ("from scorekit.judge.client import Judge", {"judge"}),
        ("from scorekit import errors, figure_scores", {"errors", "widgets"}),
        ("from . import cache", {"judge"}),
        ("from .cache import Store", {"judge"}),
        ("from .. import cli", {"cli"}),
        ("from ..widgets.figures import figure_scores", {"widgets"}),
        ("def late():\n    from scorekit.cli import main", {"cli"}),
        ("import scorekitten, pandas", set()),
    ],
)  # fmt: skip
def test_rooms_imported_by_sees_every_form_of_import(source, rooms):
    assert rooms_imported_by(source, "scorekit.judge") == rooms


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
