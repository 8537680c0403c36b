"""What live scoring stored, for tests that look at it."""

import scorekit as sk


def stored(store):
    """All rows, in the order in which the calls ended, once everything is stored."""
    assert sk.live.flush(30), sk.live.stats()
    return store.read()


def outputs(store):
    return stored(store)["output"].tolist()


def inputs(store):
    return stored(store)["input"].tolist()
