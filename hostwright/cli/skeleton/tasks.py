"""The verbs of this site: `invoke --list` shows them here; `hostwright` is the same command, from anywhere."""

from hostwright.cli.tasks import namespace

__all__ = ["namespace"]
