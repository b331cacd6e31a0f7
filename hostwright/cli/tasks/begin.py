"""Verbs that create a site and set up the shell. No other verbs work without a site."""

from __future__ import annotations

from hostwright.cli.tasks.options import verb
from hostwright.common.request import Request

TITLE = "Begin"


@verb(
    directory="the directory, created if missing; existing files are not overwritten",
    stack="the stack of its hosts, one of `hostwright stacks` (default: prompt at a terminal)",
)
def init(_: Request, directory: str, stack: str = "") -> int:
    """Create a site directory for your hosts, stacks, roles and checks.

    hostwright init ~/fleet
    hostwright init ~/fleet --stack NAME
    """
    from hostwright.cli.sitefiles import make_site

    make_site(directory, stack)
    return 0


@verb(shell="bash, zsh or fish")  # noqa: S604 - the name of a shell, none is started
def completion(_: Request, shell: str) -> int:
    """Print the shell code that completes verbs, options, hosts, roles and stacks.

    hostwright completion zsh
    """
    from hostwright.cli.shell.completion.completing import SHELLS, script
    from hostwright.common.errors import InputError
    from hostwright.common.input.nearest import suggestion

    if shell not in SHELLS:
        raise InputError(f"unknown shell {shell!r}; {suggestion(shell, SHELLS)}", "completion")
    print(script(shell), end="")
    return 0
