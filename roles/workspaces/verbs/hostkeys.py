"""SSH host key of a user's SSH container, for comparison with the key that ssh reports."""

from __future__ import annotations

from hostwright.cli.verb import Connections, HostKey, TargetHost
from hostwright.roles import HostError, sh
from hostwright.standard.roles.workspaces.declared.workspace import Workspace

_TIMEOUT_S = 30.0


def host_key_of(target: TargetHost, space: Workspace) -> HostKey:
    """Return the public host key of the user's SSH container ``space``.

    The login user reads the key. Raises ``HostError`` if the host does not respond or has no such key.
    """
    with Connections().connect(target) as shell:
        output = shell.as_login_user(sh("cat -- %s", f"{space.state}/host_key.pub"), timeout_s=_TIMEOUT_S)
    try:
        return HostKey.parse(output.stdout.decode("utf-8", "replace"))
    except ValueError:
        sentence = f"workspace {space.name} has no SSH host key yet; provision its host to create it"
        raise HostError(target.name, sentence) from None


def key_lines(space: Workspace, key: HostKey) -> tuple[str, str]:
    """Return the fingerprint of ``key``, and a command for users with another stored key."""
    return (
        f"host key of {space.name}: {key}; if ssh warns that the key has changed and shows this key, run:",
        f"ssh-keygen -R '[127.0.0.1]:{space.port}'",
    )
