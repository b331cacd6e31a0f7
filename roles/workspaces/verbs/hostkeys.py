"""The SSH host key of a box, as people compare it with the one that their ssh shows."""

from __future__ import annotations

from hostwright.cli.verb import Connections, HostKey, TargetHost
from hostwright.roles import HostError, sh
from hostwright.standard.roles.workspaces.declared.workspace import Workspace

_TIMEOUT_S = 30.0


def host_key_of(target: TargetHost, space: Workspace) -> HostKey:
    """The key with which a box answers, read by the login user: its public half is for everybody.

    Raises ``HostError`` where the host does not answer or has no such key, as before the box is made.
    """
    with Connections().connect(target) as shell:
        output = shell.as_login_user(sh("cat -- %s", f"{space.state}/host_key.pub"), timeout_s=_TIMEOUT_S)
    try:
        return HostKey.parse(output.stdout.decode("utf-8", "replace"))
    except ValueError:
        sentence = f"the box {space.name} has no SSH host key there yet: it gets one when it is made"
        raise HostError(target.name, sentence) from None


def key_lines(space: Workspace, key: HostKey) -> tuple[str, str]:
    """A box's key by its fingerprint, and what a person does whose ssh knows another one at this place."""
    return (
        f"host key of {space.name}: {key}; where ssh warns that the key has changed and shows this one:",
        f"ssh-keygen -R '[127.0.0.1]:{space.port}'",
    )
