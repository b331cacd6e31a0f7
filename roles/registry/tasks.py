"""The verb ``registry.trust``. What it needs is imported when it is run."""

from __future__ import annotations

from invoke import Collection, Context, task

from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.tasks.options import READ, ends, helps


@task(
    help=helps(*READ, "ask_become_pass", "accept_new", host="the host that has the registry"),
    iterable=["inventory"],
    auto_shortflags=False,
)
@ends
def trust(
    c: Context,  # noqa: ARG001 - Invoke's
    host: str = "",
    inventory: list[str] | None = None,
    ask_become_pass: bool = False,
    accept_new: bool = False,
) -> int:
    """Read the authority of a registry from its host, and write it to the inventory for all hosts that pull from it."""
    from hostwright.standard.roles.registry import trusting

    return trusting.trust(Selection(host, tuple(inventory or ())), ConnectionOptions(ask_become_pass, accept_new))


namespace = Collection("registry", trust)
