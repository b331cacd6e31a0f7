"""Hostwright provisions bare-metal GPU hosts with one exact, verified software stack over SSH."""

import sys

__version__ = "0.1.0"

# pip checks no version for a checkout. Python 2 must be able to parse these lines.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.stderr.write(
        "Hostwright needs Python 3.11 or newer, and {0} is {1}: "  # noqa: UP030
        "make its environment with a newer one (python3.11 -m venv .venv)\n".format(
            sys.executable, ".".join(map(str, sys.version_info[:3]))
        )
    )
    sys.exit(2)
