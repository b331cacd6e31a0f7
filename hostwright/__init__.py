"""Hostwright: bare-metal GPU hosts, brought to one exact, verified software stack over SSH."""

import sys

__version__ = "0.1.0"

if sys.version_info < (3, 11):  # noqa: UP036 - a checkout is run by whatever python3 is, where pip would have refused
    version = ".".join(map(str, sys.version_info[:3]))
    print(
        f"Hostwright needs Python 3.11 or newer, and {sys.executable} is {version}: "
        "make its environment with a newer one (python3.11 -m venv .venv)",
        file=sys.stderr,
    )
    sys.exit(2)
