"""Where a store is: URLs and paths of databases."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from scorekit.errors import OptionRangeError, UnknownOptionError

_SQLITE: Final = ("sqlite", "sqlite+pysqlite")
_POSTGRES: Final = ("postgresql", "postgres", "postgresql+psycopg")


def normal_url(place: str) -> str:
    """Return the URL of a place, complete: an SQLite file with its whole path, PostgreSQL with its driver.

    Raises
    ------
    UnknownOptionError
        When it is another database, or another driver.
    OptionRangeError
        When the URL cannot be read, or means a database in memory.

    Examples
    --------
    >>> normal_url("/data/scores.db"), normal_url("postgres://me@host/scores")
    ('sqlite:////data/scores.db', 'postgresql+psycopg://me@host/scores')
    """
    driver, mark, rest = place.partition("://")
    if mark and driver.lower() not in _SQLITE:
        return _postgres_url(place, driver)
    path, _, query = rest.removeprefix("/").partition("?") if mark else (place, "", "")
    path = os.fsdecode(unquote_to_bytes(path)) if mark else path
    if query or path.startswith("file:"):
        raise OptionRangeError.from_value("url", place, "the path of the SQLite file alone, without settings")
    if path.strip() in ("", ":memory:"):
        wanted = "a file such as 'sqlite:///scores.db': other threads and processes must see it, and a database in memory ends with its connection"
        raise OptionRangeError.from_value("url", place, wanted)
    return f"sqlite:///{quote(os.fsencode(Path(path).expanduser().absolute()), safe='/ :@+,=~()[]')}"


def _postgres_url(place: str, driver: str) -> str:
    """Return PostgreSQL's URL with its driver."""
    from sqlalchemy import make_url

    if driver.lower() not in _POSTGRES:
        raise UnknownOptionError.from_value("the database of url", driver, ["sqlite", "postgresql", "postgresql+psycopg"])
    try:
        url = make_url(place).set(drivername="postgresql+psycopg")
    except Exception:  # noqa: BLE001  (ArgumentError or ValueError; its text may hold the password)
        msg = "url cannot be read; it must look like 'postgresql://user:password@host/database', with special characters as %40."
        raise OptionRangeError(msg) from None
    return url.render_as_string(hide_password=False)


def file_of(url: str) -> Path | None:
    """Return the SQLite file that a complete URL means, or None."""
    return Path(os.fsdecode(unquote_to_bytes(url.removeprefix("sqlite:///")))) if url.startswith("sqlite:") else None


def hidden(url: str) -> str:
    """Return a URL without its password."""
    from sqlalchemy import make_url

    return url if url.startswith("sqlite:") else make_url(url).render_as_string(hide_password=True)
