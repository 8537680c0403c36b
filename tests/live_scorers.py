"""Scorers that live scoring meets: they raise, hang, or end their process, for outputs that ask for it. A module, so that other processes can import it."""

import os
import signal
import time

import pandas as pd

import scorekit as sk


def length(rows):
    return rows["output"].str.len().astype("float64")


LENGTH = sk.Scorer("length", needs=("output",), generate_score=length)


def raising(df):
    """Raises where an output says so: the whole call, as a bug does."""
    if df["output"].astype(str).str.contains("raise").any():
        msg = "this output says raise"
        raise ValueError(msg)
    return df.assign(raising_score=df["output"].astype(str).str.len().astype("float64"))


def deadly(df):
    """Ends its process where an output says so, as a crash in a C library does."""
    if df["output"].astype(str).str.contains("die").any():
        os.kill(os.getpid(), signal.SIGKILL)
    return df.assign(deadly_score=1.0)


def slow(df):
    time.sleep(0.05 * bool(len(df)))
    return df.assign(slow_score=1.0)


def hanging(df):
    while len(df):
        time.sleep(0.05)
    return df.assign(hanging_score=pd.Series(dtype="float64"))


def where(df):
    """The process that it runs in."""
    return df.assign(where_score=float(os.getpid()))


def silent(df):
    """Gives no score and does not say why."""
    return df.assign(silent_score=float("nan"))


def leaving(df):
    """Ends its thread where an output says so, as sys.exit does."""
    if df["output"].astype(str).str.contains("leave").any():
        raise SystemExit(3)
    return df.assign(leaving_score=1.0)


def worded(df):
    """Gives a word for a score where an output says so."""
    return df.assign(worded_score=["high" if text == "word" else 1.0 for text in df["output"]])
