"""The verbs ``images.…``. What they need is imported when one is run."""

from __future__ import annotations

from invoke import Collection, Context, task

from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.tasks.options import REACHED, ends, helps


@task(
    help=helps(
        *REACHED,
        "check",
        "canary",
        "batch",
        "max_fail",
        archive="a file of `docker save`, gzipped or not, or an OCI layout as a tar archive",
        registry="send it to one host, which puts it into the registry of these hosts; the others fetch it there",
    ),
    iterable=["inventory"],
    auto_shortflags=False,
)
@ends
def push(
    c: Context,  # noqa: ARG001 - Invoke's
    hosts: str = "",
    archive: str = "",
    registry: bool = False,
    inventory: list[str] | None = None,
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    check: bool = False,
    canary: str = "",
    batch: str = "",
    max_fail: str = "",
) -> int:
    """Bring the images of an archive to the Docker of hosts that lack them."""
    from hostwright.apply.rollout.options import ChangeOptions, RolloutOptions
    from hostwright.standard.roles.container.images import pushing

    return pushing.push(
        Selection(hosts, tuple(inventory or ())),
        ConnectionOptions(ask_become_pass, accept_new),
        ChangeOptions(rollout=RolloutOptions(canary, batch, max_fail)),
        archive,
        registry=registry,
        check=check,
        as_json=json,
    )


@task(
    help=helps(
        *REACHED,
        older="note images that are older than this many days",
        scan="with --no-scan: do not look for known vulnerabilities where trivy or grype is at hand",
    ),
    iterable=["inventory"],
    auto_shortflags=False,
)
@ends
def audit(
    c: Context,  # noqa: ARG001 - Invoke's
    hosts: str = "all",
    older: int = 90,
    scan: bool = True,
    inventory: list[str] | None = None,
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
) -> int:
    """Show which images and containers hosts have, by digest and age, and their known vulnerabilities."""
    from hostwright.standard.roles.container.images import verbs

    return verbs.audit(
        Selection(hosts, tuple(inventory or ())),
        ConnectionOptions(ask_become_pass, accept_new),
        older,
        scan=scan,
        as_json=json,
    )


@task(
    help=helps(
        *(name for name in REACHED if name != "json"),
        *("check", "drain", "force", "canary", "batch", "max_fail"),
        again="build once more on a day on which the images were built already",
    ),
    iterable=["inventory"],
    auto_shortflags=False,
)
@ends
def rebuild(
    c: Context,  # noqa: ARG001 - Invoke's
    hosts: str = "",
    again: bool = False,
    inventory: list[str] | None = None,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    check: bool = False,
    drain: bool = False,
    force: bool = False,
    canary: str = "",
    batch: str = "",
    max_fail: str = "",
) -> int:
    """Build the images of SSH boxes again with today's updates, and make the boxes anew; files and host keys stay."""
    from hostwright.apply.rollout.options import ChangeOptions, RolloutOptions
    from hostwright.standard.roles.workspaces.verbs import rebuilding  # whose images they are

    return rebuilding.rebuild(
        Selection(hosts, tuple(inventory or ())),
        ConnectionOptions(ask_become_pass, accept_new),
        ChangeOptions(drain=drain, rollout=RolloutOptions(canary, batch, max_fail)),
        again=again,
        force=force,
        check=check,
    )


namespace = Collection("images", push, audit, rebuild)
