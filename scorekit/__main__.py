"""``python -m scorekit``: the command line."""

import sys

from scorekit.cli import main

if __name__ == "__main__":
    sys.exit(main())
