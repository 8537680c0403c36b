"""What a generator gives, kept while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scorekit.monitor.snapshots import cell_of, json_of

if TYPE_CHECKING:
    from scorekit.monitor.channel import Cell


class Parts:
    """What a generator gave so far.

    Parameters
    ----------
    values
        Keep the parts for hooks.
    cells
        Keep what each part is at the moment, for the store.
    """

    __slots__ = ("_cells", "_values")

    def __init__(self, *, values: bool, cells: bool) -> None:
        """Begin with none."""
        self._values: list[Any] | None = [] if values else None
        self._cells: list[Cell] | None = [] if cells else None

    def add(self, part: Any) -> None:
        """Keep a part."""
        if self._values is not None:
            self._values.append(part)
        if self._cells is not None:
            self._cells.append(cell_of(part))

    def result(self) -> Any:
        """Return the joined text where all parts are texts, else the list of them; None where they are not kept."""
        if self._values is None or not all(isinstance(part, str) for part in self._values):
            return self._values
        return "".join(self._values)

    def cell(self) -> Cell:
        """Return the same as it was; None where it is not kept."""
        if self._cells is None:
            return None
        texts = [cell for cell in self._cells if isinstance(cell, str)]
        if len(texts) == len(self._cells):
            return "".join(texts)
        return b"[" + b", ".join([cell if isinstance(cell, bytes) else json_of(cell) for cell in self._cells]) + b"]"
