"""The verb before all others: it makes a site, and is the only one that needs none."""

from __future__ import annotations

from hostwright.cli.tasks.options import Given, verb


@verb(directory="the directory; created if missing, and no existing file is overwritten")
def init(_: Given, directory: str) -> int:
    """Create a site: a directory for your hosts and for your own stacks, roles and checks."""
    from hostwright.cli.verbs import init as made

    return made.init(directory)
