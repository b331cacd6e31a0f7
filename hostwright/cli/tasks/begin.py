"""The verb before all others: it makes a site, and is the only one that needs none."""

from __future__ import annotations

from invoke import Context, task

from hostwright.cli.tasks.options import ends


@task(help={"directory": "a directory, made where it is missing; no file is overwritten"}, auto_shortflags=False)
@ends
def init(c: Context, directory: str) -> int:
    """Make a site: a directory for your hosts, and for the stacks, roles and checks that are yours."""
    from hostwright.cli.verbs import init as verb

    return verb.init(directory)
