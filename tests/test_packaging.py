"""What is packed: the wheel's files, the sdist, the metadata; and that an installed scorekit works away from the checkout."""

import importlib.metadata
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import scorekit

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DATASETS = [entry["file"] for entry in json.loads((ROOT / "data" / "datasets.json").read_text(encoding="utf-8"))]
DATA = sorted(["SOURCES.md", "datasets.json", *DATASETS])
VIEWS = {f"scorekit/widgets/{name}" for name in ("explorer.css", "explorer.js", "parts.js", "side_by_side.js")}
"""What the views send to the browser."""


@pytest.fixture(scope="module")
def installed():
    """The installed distribution."""
    try:
        return importlib.metadata.distribution("scorekit")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("scorekit is not installed, only on the path")


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """The names in the wheel and in the sdist, made by the build backend itself; what the folder holds beside them is left out."""
    builder = pytest.importorskip("hatchling.builders.wheel", reason="hatchling, which packs, is not installed here")
    from hatchling.builders.sdist import SdistBuilder

    folder = str(tmp_path_factory.mktemp("dist"))
    wheel, sdist = (next(kind(str(ROOT)).build(directory=folder)) for kind in (builder.WheelBuilder, SdistBuilder))
    with zipfile.ZipFile(wheel) as archive, tarfile.open(sdist) as source:
        return set(archive.namelist()), {name.split("/", 1)[1] for name in source.getnames()}


def away(code, tmp_path):
    """Run code in another folder, with nothing of the checkout on the path but what is installed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout


def test_pyproject_names_each_data_file_for_the_wheel():
    wanted = {f"data/{name}": f"scorekit/data/{name}" for name in DATA}
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"] == wanted


def test_wheel_holds_the_package_its_views_and_the_data_files_alone(packed):
    names = {name for name in packed[0] if ".dist-info/" not in name}
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "scorekit").rglob("*.py")}
    assert names == modules | VIEWS | {"scorekit/py.typed"} | {f"scorekit/data/{name}" for name in DATA}


def test_sdist_holds_what_its_tests_read(packed):
    wanted = {
        ".ci/run", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "benchmarks/judge.py", "data/make/make_index.py", "docs/figure_scores.png",
        "notebooks/01_first_scores.ipynb", "pyproject.toml", "scorekit/py.typed", "tests/golden/llm_verdicts.json", "tests/test_packaging.py",
    }  # fmt: skip
    assert wanted - packed[1] == set()


def test_installed_files_hold_the_data(installed):
    files = {file.as_posix() for file in installed.files or ()}
    if "scorekit/__init__.py" not in files:
        pytest.skip("an editable install reads the checkout")
    assert {name for name in files if name.startswith("scorekit/data/")} == {f"scorekit/data/{name}" for name in DATA}
    assert files >= VIEWS | {"scorekit/py.typed"}


def test_installed_metadata_has_name_version_extras_and_licence(installed):
    metadata = installed.metadata
    assert (metadata["Name"], metadata["Version"], metadata["License-Expression"]) == ("scorekit", scorekit.__version__, "Apache-2.0")
    assert set(metadata.get_all("Provides-Extra")) == {"parquet", "prices", "postgres", "all", "test", "dev"}


def test_installed_entry_point_is_the_command_line(installed):
    from scorekit.cli import main

    assert [point.load() for point in installed.entry_points if point.group == "console_scripts" and point.name == "scorekit"] == [main]


def test_installed_scorekit_loads_its_data_away_from_the_checkout(installed, tmp_path):
    code = "import scorekit, pathlib; print(len(scorekit.load_dataset('smollm_answers')), pathlib.Path(scorekit.__file__).with_name('py.typed').exists())"
    assert away(code, tmp_path).split() == ["360", "True"]


def test_classifiers_name_the_python_that_ci_runs(installed):
    named = [
        name.rsplit(" ", 1)[1] for name in PROJECT["project"]["classifiers"] if name.startswith("Programming Language :: Python :: 3.")
    ]
    assert (named, PROJECT["project"]["requires-python"]) == (["3.11"], ">=3.11")


def test_pre_commit_runs_local_hooks_alone():
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert [line.split("repo:")[1].strip() for line in text.splitlines() if "repo:" in line] == ["local"]
    assert [line.split("id:")[1].strip() for line in text.splitlines() if "id:" in line] == ["ruff-check", "ruff-format", "mypy"]
