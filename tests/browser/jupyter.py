"""A Jupyter server on 127.0.0.1, and one of its notebooks in headless Chromium: what the tests, benchmarks/explore.py and docs/make_pictures.py use.

Nothing here is imported before it is used, so that a machine without playwright, JupyterLab or Chromium can say what it lacks.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, BrowserContext, Locator, Page, WebSocket

TESTS: Final = Path(__file__).parent.parent
ROOT: Final = TESTS.parent
START_S: Final = 90
WAIT_MS: Final = 15_000
OPEN_MS: Final = 90_000
"""How long a server may take to start, something to show, and a notebook to open: much longer than they do, because CI machines are slow and shared."""

CHROMIUM_FLAGS: Final = (
    "--no-sandbox",  # Chromium's own sandbox does not start for root, which is whom CI runs as
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--font-render-hinting=none",
)

PANEL: Final = "const app = window.jupyterapp, panel = app && app.shell.currentWidget;"
"""The notebook in front; `JupyterApp.expose_app_in_browser` makes ``window.jupyterapp``."""

READY: Final = f"""() => {{ {PANEL}
  const kernel = panel && panel.context && panel.context.isReady && panel.sessionContext.session && panel.sessionContext.session.kernel;
  return Boolean(kernel && kernel.status === 'idle' && kernel.connectionStatus === 'connected'); }}"""

FILL: Final = f"""(sources) => {{ {PANEL}
  const cells = panel.content.model.sharedModel;
  cells.transact(() => {{
    cells.deleteCellRange(0, cells.cells.length);
    cells.insertCells(0, sources.map((source) => ({{ cell_type: 'code', source, metadata: {{}}, outputs: [] }})));
  }}); }}"""

RUN: Final = f"""async (place) => {{ {PANEL}
  panel.content.deselectAll();
  panel.content.activeCellIndex = place;
  await app.commands.execute('notebook:run-cell');
  return panel.content.widgets[place].model.outputs.toJSON(); }}"""

RESTART: Final = f"async () => {{ {PANEL} await panel.sessionContext.session.kernel.restart(); }}"

PALE: Final = """(root) => {
  const parse = (colour) => { const [r, g, b, a] = colour.match(/[\\d.]+(?:e-?\\d+)?/g).map(Number); const whole = colour.startsWith("color(") ? 255 : 1; return [r * whole, g * whole, b * whole, a ?? 1]; };
  const over = ([r, g, b, a], under) => [r, g, b].map((v, i) => v * a + under[i] * (1 - a));
  const ground = (element) => element === null ? [255, 255, 255] : over(parse(getComputedStyle(element).backgroundColor), ground(element.parentElement));
  const light = (colour) => { const [r, g, b] = colour.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const found = {};
  for (const element of root.querySelectorAll("*")) {
    const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!text || element.closest(":disabled, option, style, script, [hidden]") || !element.checkVisibility()) continue;
    const under = ground(element), [one, other] = [light(over(parse(getComputedStyle(element).color), under)), light(under)];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) found[`${element.tagName} ${element.className} ${element.textContent.slice(0, 30)}`] = Number(ratio.toFixed(2));
  }
  return found; }"""
"""Each text of an element whose contrast with what is behind it is below what WCAG 2 asks of small text; what is disabled is let off, as there."""

CELLS: Final = f"""() => {{ {PANEL}
  const cells = Array.from(panel.content.model.cells).map((cell) => [cell.type, cell.sharedModel.getSource(), cell.executionCount ?? null]);
  return {{ cells, mode: panel.content.mode, active: panel.content.activeCellIndex }}; }}"""


def missing() -> str:
    """Return what this machine lacks for tests in a browser; nothing where all is there."""
    lacking = [name for name in ("playwright", "jupyterlab", "notebook") if find_spec(name) is None]
    if lacking:
        return f"not installed: {', '.join(lacking)} (pip install '.[test]')"
    return "" if shutil.which("chromium") else "there is no 'chromium' on the PATH (apt-get install chromium)"


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Start the system's Chromium; playwright's own need not be downloaded."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(CHROMIUM_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@dataclass(frozen=True)
class Server:
    """A Jupyter server.

    Attributes
    ----------
    url
        Where it is, without a slash at the end.
    folder
        Where its notebooks lie; kernels start there.
    """

    url: str
    folder: Path


@contextlib.contextmanager
def serve() -> Iterator[Server]:
    """Start a server that has JupyterLab and Notebook 7, with folders and settings of its own, and end it with all its kernels."""
    with tempfile.TemporaryDirectory(prefix="scorekit-jupyter-", ignore_cleanup_errors=True) as temporary:
        home = Path(temporary)
        folder = home / "notebooks"
        settings = home / "config" / "labconfig"
        for made in (folder, settings):
            made.mkdir(parents=True)
        # The offer of Jupyter news lies over the lower right corner and takes the clicks there.
        off = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
        (settings / "page_config.json").write_text(json.dumps(off), encoding="utf-8")
        port = _free_port()
        # The server of Notebook 7 has JupyterLab too, under /lab.
        command = [
            sys.executable, "-m", "notebook", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0",
            f"--ServerApp.root_dir={folder}", "--IdentityProvider.token=", "--ServerApp.password=", "--ServerApp.disable_check_xsrf=True",
            "--LabApp.expose_app_in_browser=True", "--JupyterNotebookApp.expose_app_in_browser=True", "--LabApp.news_url=",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            # Where the tests are killed before they can end it, it ends itself, first its idle kernels.
            "--ServerApp.shutdown_no_activity_timeout=300", "--MappingKernelManager.cull_idle_timeout=300", "--MappingKernelManager.cull_interval=60",
            "--MappingKernelManager.cull_connected=True",
        ]  # fmt: skip
        with (home / "server.log").open("wb") as log:
            process = subprocess.Popen(command, env=_environment(home), stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                _wait(process, f"http://127.0.0.1:{port}", home / "server.log")
                yield Server(f"http://127.0.0.1:{port}", folder)
            finally:
                _end(process)


def _free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(home: Path) -> dict[str, str]:
    """Return the server's environment: no judge of the machine's, no settings of its user's, and this checkout's scorekit."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "SCOREKIT_", "JUPYTER_"))}
    folders = {
        "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime", "IPYTHONDIR": "ipython",
        "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces", "SCOREKIT_CACHE": "replies.sqlite3",
    }  # fmt: skip
    paths = [str(ROOT), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **ours,
        **{name: str(home / there) for name, there in folders.items()},
        "JUPYTER_PLATFORM_DIRS": "1",
        "PYTHONPATH": os.pathsep.join(paths),
    }


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Wait until the server answers; raise what it wrote where it does not."""
    end = time.monotonic() + START_S
    while True:
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"Jupyter did not start:\n{log.read_text(encoding='utf-8', errors='replace')}")
        try:
            with urllib.request.urlopen(f"{url}/api/status", timeout=5):
                return
        except OSError:
            time.sleep(0.1)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a server and its kernels, which are all in one process group or end with it."""
    for stop in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, stop)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
            return


class CellError(Exception):
    """A cell of a notebook raised an error."""


@dataclass
class Notebook:
    """A notebook in the browser, opened once and filled with other cells by each test; its kernel stays.

    Attributes
    ----------
    page
        The browser's page.
    troubles
        Errors that the page threw or wrote to its console.
    heard
        Sizes in bytes of the messages that came from the kernel, before any compression of the connection.
    bundles
        How many of them carried plotly.js.
    """

    page: Page
    troubles: list[str] = field(default_factory=list)
    heard: list[int] = field(default_factory=list)
    bundles: int = 0

    @classmethod
    def open(cls, context: Browser | BrowserContext, server: Server, name: str, *, app: str = "lab/tree", **options: Any) -> Notebook:
        """Open a new notebook and wait for its kernel.

        Parameters
        ----------
        context
            Where the page is made.
        server
            Who serves it.
        name
            Of the file, without its ending.
        app
            ``"lab/tree"`` for JupyterLab, ``"notebooks"`` for Notebook 7.
        **options
            Of playwright's ``new_page``.
        """
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        empty = {"cells": [], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
        (server.folder / f"{name}.ipynb").write_text(json.dumps(empty), encoding="utf-8")
        notebook = cls(context.new_page(**options))
        notebook.page.set_default_timeout(WAIT_MS)
        watch(notebook.page, notebook.troubles)
        notebook.page.on("websocket", notebook._listen)
        reset = "?reset" if app.startswith("lab") else ""  # JupyterLab would open what was open before; Notebook 7 knows no such thing
        notebook.page.goto(f"{server.url}/{app}/{name}.ipynb{reset}", wait_until="domcontentloaded")
        notebook.page.locator(".jp-NotebookPanel .jp-Notebook").wait_for(timeout=OPEN_MS)
        notebook.wait()
        return notebook

    def _listen(self, socket: WebSocket) -> None:
        """Take down what the kernel sends."""
        if "/channels" in socket.url:
            socket.on("framereceived", self._hear)

    def _hear(self, payload: str | bytes) -> None:
        """Take down one message."""
        message = payload.encode() if isinstance(payload, str) else payload
        self.heard.append(len(message))
        self.bundles += len(message) > 1_000_000 and b"nsewdrag" in message  # a class that plotly.js gives

    def wait(self) -> None:
        """Wait until the kernel is idle: what is run before that can get lost."""
        self.page.wait_for_function(READY, timeout=OPEN_MS)

    def fill(self, *sources: str) -> None:
        """Put these code cells in the place of all that are there."""
        self.page.evaluate(FILL, list(sources))

    def run(self, place: int) -> str:
        """Run a cell and return what it prints and gives as text.

        Raises
        ------
        CellError
            What the cell raised.
        """
        outputs = self.page.evaluate(RUN, place)
        for output in outputs:
            if output["output_type"] == "error":
                raise CellError(f"{output['ename']}: {output['evalue']}")
        texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
        return "".join(text if isinstance(text, str) else "".join(text) for text in texts)

    def show(self, *sources: str) -> Locator:
        """Fill the notebook with cells, run the first and return its output."""
        self.fill(*sources)
        self.run(0)
        return self.output(0)

    def output(self, place: int) -> Locator:
        """Return a cell's output. Texts are looked for in outputs alone: the code has them too."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(place).locator(".jp-OutputArea-output")

    def restart(self) -> None:
        """Restart the kernel, which forgets all names."""
        self.page.evaluate(RESTART)
        self.wait()

    def use_theme(self, name: str) -> None:
        """Change the colours of JupyterLab: ``"Light"`` or ``"Dark"``."""
        self.page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", f"JupyterLab {name}")
        expect(self.page.locator("body")).to_have_attribute("data-jp-theme-light", str(name == "Light").lower())

    def state(self) -> dict[str, Any]:
        """Return the ``cells`` (kind, source, how often run), the ``mode`` (command or edit) and which cell is ``active``."""
        found: dict[str, Any] = self.page.evaluate(CELLS)
        return found


PLATFORM = "Failed to execute 'removeChild' on 'Node': The node to be removed is not a child of this node."
"""What JupyterLab's React throws now and then, on a busy machine, while its own toolbars are laid out anew; our views never call removeChild."""


def watch(page: Page, troubles: list[str]) -> None:
    """Collect what the page throws and the errors that it writes to its console, but for `PLATFORM`."""
    page.on("pageerror", lambda error: troubles.append(f"page error: {error}") if PLATFORM not in str(error) else None)
    page.on("console", lambda message: troubles.append(f"console: {message.text}") if message.type == "error" else None)


def drag(page: Page, box: Locator, start: tuple[float, float], *stops: tuple[float, float], steps: int = 6) -> None:
    """Press the mouse in a box and move it, in shares of the box from its upper left corner; a drag is many small moves, as by hand."""
    box.scroll_into_view_if_needed()
    found = box.bounding_box()
    if found is None:
        raise AssertionError(f"not on the screen: {box}")
    points = [(found["x"] + found["width"] * x, found["y"] + found["height"] * y) for x, y in (start, *stops)]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=steps)
    page.mouse.up()


def pale(shown: Locator) -> dict[str, float]:
    """Return the texts that are hard to read, with their contrast."""
    found: dict[str, float] = shown.evaluate(PALE)
    return found


def expect(shown: Any) -> Any:
    """Return playwright's assertions about what is shown, which wait until they hold."""
    from playwright.sync_api import expect as assertions

    assertions.set_options(timeout=WAIT_MS)
    return assertions(shown)


def wait_for(holds: Callable[[], bool], what: str, *, timeout_s: float = 15.0) -> None:
    """Wait for what is not on the page."""
    end = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"after {timeout_s:.0f} s still waiting for {what}")
        time.sleep(0.05)
