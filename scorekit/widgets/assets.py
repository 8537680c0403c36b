"""The scripts and the style of the views, read from the files beside this one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent


def script(name: str) -> str:
    """Return a view's script behind what all views share."""
    return "\n".join((HERE / part).read_text(encoding="utf-8") for part in ("parts.js", name))


def style() -> str:
    """Return the style of all views."""
    return (HERE / "explorer.css").read_text(encoding="utf-8")
