"""The verb before all others: it makes a site, and is the only one that needs none."""

from __future__ import annotations

from invoke import Context, task

from hostwright.cli.tasks.options import ends


@task(
    help={"directory": "the directory; created if missing, and no existing file is overwritten"}, auto_shortflags=False
)
@ends
def init(c: Context, directory: str) -> int:
    """Create a site: a directory for your hosts and for your own stacks, roles and checks."""
    from hostwright.cli.verbs import init as verb

    return verb.init(directory)
