"""The verbs of this site: `invoke --list` shows them here; `hostwright` is the same command, from anywhere."""

import sys

try:
    from hostwright.cli.tasks import namespace
except ImportError as error:
    print(
        f"this `invoke` belongs to {sys.executable}, which cannot import Hostwright ({error}): "
        "activate the environment that has it (. .venv/bin/activate), or call `hostwright`",
        file=sys.stderr,
    )
    sys.exit(2)

__all__ = ["namespace"]
