"""SQLite across a fork: no connection may cross it.

A child that inherits an open file of SQLite takes the locks of its parent for its own and does not ask for any, so that the parent may remove the
journal that the child still writes to. And SQLite's own locks, where a thread holds them while another forks, stay locked in the child for ever.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol
from weakref import WeakSet

FORK_S: Final = 2.0
"""How long a fork waits for work that is under way with a file."""


class Opened(Protocol):
    """A database that may have open connections to an SQLite file."""

    @property
    def path(self) -> Path | None:
        """The file."""

    def let_go(self) -> None:
        """Close the connections that nobody uses at the moment."""


class ForkGate:
    """Lets a process fork while nobody works with SQLite, and closes idle connections first.

    A fork waits `FORK_S` at most; files that are still in use then cannot be used in the child.
    """

    def __init__(self) -> None:
        """Begin with nobody inside."""
        self._changed = threading.Condition(threading.Lock())
        self._inside: Counter[Path] = Counter()
        self._known: WeakSet[Opened] = WeakSet()
        self._forking = False
        self._lost: frozenset[tuple[int, int]] = frozenset()

    @contextlib.contextmanager
    def working(self, database: Opened, path: Path) -> Iterator[None]:
        """Let work with a file begin where no fork is under way, and a fork wait for it."""
        with self._changed:
            self._changed.wait_for(lambda: not self._forking)
            self._known.add(database)
            self._inside[path] += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside[path] -= 1
                self._changed.notify_all()

    def is_lost(self, path: Path) -> bool:
        """Return whether a file was in use when this process was forked, so that it cannot be used here."""
        return bool(self._lost) and _identity(path) in self._lost

    def before(self) -> None:
        """Wait until nobody works, let nobody begin, and close what is idle."""
        with self._changed:
            self._forking = True
            self._changed.wait_for(lambda: not any(self._inside.values()), FORK_S)
        for database in list(self._known):
            database.let_go()

    def after_in_parent(self) -> None:
        """Let work begin again."""
        with self._changed:
            self._forking = False
            self._changed.notify_all()

    def after_in_child(self) -> None:
        """Begin anew, without the files that were in use."""
        lost = self._lost | {found for path, count in self._inside.items() if count and (found := _identity(path)) is not None}
        self.__init__()  # type: ignore[misc]
        self._lost = lost


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from all others, by whatever name; None where it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


GATE: Final = ForkGate()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=GATE.before, after_in_parent=GATE.after_in_parent, after_in_child=GATE.after_in_child)
