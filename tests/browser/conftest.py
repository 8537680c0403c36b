"""One Jupyter server, one Chromium and one notebook for all tests of this folder; without them the tests skip, or fail where CI asks for them."""

import os

import pytest

from browser.jupyter import WAIT_MS, Notebook, chromium, missing, serve

WANTED = os.environ.get("SCOREKIT_BROWSER_TESTS") == "1"
"""Whether a skip is a failure; read here, because the tests' environment has no SCOREKIT_*."""

SIZE = {"width": 1300, "height": 1100}


@pytest.fixture(scope="package")
def browser():
    """Chromium. It ends with this folder: playwright runs an event loop in the main thread, beside which other tests could run none."""
    if lacking := missing():
        (pytest.fail if WANTED else pytest.skip)(f"no tests in a browser: {lacking}")
    with chromium() as started:
        yield started


@pytest.fixture(scope="package")
def server(browser):
    """A Jupyter server."""
    with serve() as started:
        yield started


@pytest.fixture(scope="package")
def lab(browser, server):
    """A notebook in JupyterLab."""
    return Notebook.open(browser, server, "tests", viewport=SIZE)


@pytest.fixture
def notebook(lab):
    """The notebook, for one test: it fills it with its cells, and must leave no error on the page."""
    lab.troubles.clear()
    yield lab
    assert lab.troubles == []


@pytest.fixture
def offline(browser):
    """A page of a browser context that has no network."""
    context = browser.new_context(viewport=SIZE, offline=True)
    context.set_default_timeout(WAIT_MS)
    yield context.new_page()
    context.close()
