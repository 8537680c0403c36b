"""The version that a result is stored under: for the shipped measures that of scorekit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec

from scorekit.errors import ArgumentTypeError


@cache
def own_version() -> str | None:
    """Return scorekit's version; None where it runs without being installed."""
    try:
        return metadata.version("scorekit")
    except metadata.PackageNotFoundError:
        return None


@cache
def shipped_version(name: str) -> str | None:
    """Return the version of a shipped measure; None for any other name.

    Examples
    --------
    >>> shipped_version("tone") == own_version(), shipped_version("politeness"), shipped_version("options")
    (True, None, None)
    """
    home = f"scorekit.scorers.{name}"
    if not name.isidentifier() or find_spec(home) is None:
        return None
    return own_version() if hasattr(import_module(home), f"score_{name}") else None


def versions_of(names: Sequence[str], version: str | Mapping[str, str | None] | None) -> dict[str, str | None]:
    """Return the version of each scorer."""
    if isinstance(version, str):
        return dict.fromkeys(names, version)
    if version is not None and not isinstance(version, Mapping):
        raise ArgumentTypeError.from_value("version", version, "a text, or a mapping from scorers to texts")
    return {name: (version or {}).get(name, shipped_version(name)) for name in names}
