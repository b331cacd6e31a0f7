"""The verbs before all others: they make a site and set up the shell, and are the only ones that need no site."""

from __future__ import annotations

from hostwright.cli.tasks.options import verb
from hostwright.common.request import Request

TITLE = "Begin"


@verb(
    directory="the directory; created if missing, and no existing file is overwritten",
    stack="the stack of its hosts, one of `hostwright stacks` (default: asked for at a terminal)",
)
def init(_: Request, directory: str, stack: str = "") -> int:
    """Create a site: a directory for your hosts and for your own stacks, roles and checks.

    hostwright init ~/fleet
    hostwright init ~/fleet --stack NAME
    """
    from hostwright.cli.sitefiles import make_site

    make_site(directory, stack)
    return 0


@verb(shell="bash, zsh or fish")  # noqa: S604 - the name of a shell, none is started
def completion(_: Request, shell: str) -> int:
    """Print what a shell needs to complete verbs, options, hosts, groups, roles, stacks and runs.

    hostwright completion zsh
    """
    from hostwright.cli.shell.completion.completing import SHELLS, script
    from hostwright.common.errors import InputError
    from hostwright.common.input.nearest import suggestion

    if shell not in SHELLS:
        raise InputError(f"there is no completion for {shell!r}; {suggestion(shell, SHELLS)}", "completion")
    print(script(shell), end="")
    return 0
