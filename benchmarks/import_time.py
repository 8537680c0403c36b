"""What `import scorekit` costs beside `import pandas`, in one run: ``python benchmarks/import_time.py``.

Each line is a Python process of its own, run in turn with the others; CPU (user and system, of the process and its threads, with the start
of Python taken off) and wall time are medians over the runs. A ratio above its aim is marked with "!".
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

AIM = 1.3
CODE = {
    "(Python itself)": "",
    "import pandas": "import pandas",
    "import scorekit": "import scorekit",
    "import scorekit, first score_text_difference": (
        "import scorekit, pandas as pd; scorekit.score_text_difference(pd.DataFrame({'input': ['a b'], 'output': ['a c']}))"
    ),
}


def once(code):
    """Run code in a new process; return its CPU and wall seconds."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    wall = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, cwd="/")
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, code
    return used.ru_utime + used.ru_stime, time.perf_counter() - wall


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    for code in CODE.values():
        once(code)  # byte code, and files in memory
    found = {name: [] for name in CODE}
    for _ in range(options.runs):
        for name, code in CODE.items():
            found[name].append(once(code))
    cpu = {name: statistics.median(run[0] for run in runs) for name, runs in found.items()}
    wall = {name: statistics.median(run[1] for run in runs) for name, runs in found.items()}
    start, peer = "(Python itself)", "import pandas"
    print(f"medians of {options.runs} runs, without the {cpu[start] * 1e3:.0f} ms CPU of starting Python")
    print(f"| | CPU ms | wall ms | CPU : import pandas (aim at most {AIM}) |\n|---|---|---|---|")
    for name in CODE:
        if name == start:
            continue
        ratio = (cpu[name] - cpu[start]) / (cpu[peer] - cpu[start])
        mark = " !" if ratio > AIM and name == "import scorekit" else ""
        print(f"| `{name}` | {(cpu[name] - cpu[start]) * 1e3:.0f} | {(wall[name] - wall[start]) * 1e3:.0f} | {ratio:.2f}{mark} |")


if __name__ == "__main__":
    main()
