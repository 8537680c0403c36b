"""The other process as this one sees it: started, spoken to through two pipes, ended."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
import threading
from multiprocessing.spawn import get_executable
from typing import IO, TYPE_CHECKING, Any, Final

from scorekit.monitor.scoring import LOG

if TYPE_CHECKING:
    from collections.abc import Callable

START: Final = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from scorekit.monitor.child import main; main(int(sys.argv[2]), int(sys.argv[3]))"
LAST_STANDARD: Final = 2
"""The descriptor of standard error."""

STUCK_S: Final = 0.5
"""How long the end waits for a message that is being sent."""


def _pipe() -> tuple[int, int]:
    """Return a pipe whose ends are not taken for standard input and output, which a daemon may have closed."""
    ends = os.pipe()
    if min(ends) > LAST_STANDARD:
        return ends
    import fcntl

    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, LAST_STANDARD + 1) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]


def write_whole(end: int, data: bytes) -> None:
    """Write all of something into a pipe."""
    left = memoryview(data)
    while left:
        left = left[os.write(end, left) :]


class Launched:
    """A process that runs `scorekit.monitor.child`.

    Parameters
    ----------
    report
        Called with each message that it sends, in a thread of its own.

    Raises
    ------
    OSError
        When it cannot be started.
    """

    def __init__(self, report: Callable[[tuple[Any, ...]], None]) -> None:
        """Start it: executed, never forked, since a fork beside threads may hold their locks for ever.

        It gets a session of its own, since the terminal signals all processes of one.
        """
        there, self._out = _pipe()
        self._in, back = _pipe()
        paths = json.dumps([path for path in sys.path if isinstance(path, str)])
        try:
            words = [get_executable(), "-c", START, paths, str(there), str(back)]
            self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=(there, back), start_new_session=True)
        except OSError:
            os.close(self._out)
            os.close(self._in)
            raise
        finally:
            os.close(there)
            os.close(back)
        self.was_ready = False
        self._ended = False
        self._sending = threading.Lock()
        self._reader = threading.Thread(target=self._read, args=(report,), name="scorekit-live-reader", daemon=True)
        self._reader.start()

    @property
    def alive(self) -> bool:
        """Whether it runs and is heard."""
        return not self._ended and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def send(self, *message: Any) -> None:
        """Send a message, whole.

        Raises
        ------
        OSError
            When it is gone.
        """
        data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        with self._sending:
            write_whole(self._out, data)

    def end(self, timeout_s: float) -> None:
        """Close the pipe, which tells it to finish what it has; kill it where that takes too long, or where it no longer reads."""
        if self._sending.acquire(timeout=STUCK_S):
            if self._out >= 0:
                os.close(self._out)
            self._out = -1
            self._sending.release()
        else:
            self._process.kill()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(STUCK_S)  # its last reports count

    def let_go(self) -> None:
        """In a forked child: close the copies of the pipes' ends, or the process would not see its parent end."""
        for end in (self._out, self._in):
            if end >= 0:
                with contextlib.suppress(OSError):
                    os.close(end)

    def _read(self, report: Callable[[tuple[Any, ...]], None]) -> None:
        """Pass on what it says until it ends."""
        source: IO[bytes]
        try:
            with open(self._in, "rb", closefd=False) as source:
                while True:
                    message = pickle.load(source)  # noqa: S301  (from our own process)
                    self.was_ready = True
                    if message[0] != "ready":
                        report(message)
        except (EOFError, OSError, pickle.UnpicklingError):
            pass
        except Exception:  # noqa: BLE001  (nobody stands behind this thread)
            LOG.exception("A report of the process for live scoring cannot be read.")
        finally:
            self._ended = True
            end, self._in = self._in, -1
            os.close(end)
