"""Hostwright provisions bare-metal GPU hosts with one exact, verified software stack over SSH."""

import sys

__version__ = "0.1.0"

# In a git checkout, pip does not check the Python version. Python 2 must be able to parse the lines below.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.stderr.write(
        "Hostwright needs Python 3.11 or newer, and {0} is {1}: "  # noqa: UP030
        "make its environment with a newer one (python3.11 -m venv .venv)\n".format(
            sys.executable, ".".join(map(str, sys.version_info[:3]))
        )
    )
    sys.exit(2)
