"""``KnownHostsCommand``: a program of the user's that prints lines as in ``known_hosts``."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

from hostwright.transport.exchange import Deadline
from hostwright.transport.identity.hostkeys import KnownHost, KnownHosts
from hostwright.transport.identity.keys import HostKey
from hostwright.transport.routing.sshconfig import Endpoint


def known_by_command(
    endpoint: Endpoint, purpose: str, name: str, key: HostKey | None, deadline: Deadline
) -> Iterator[KnownHost]:
    """The lines for a name that the command prints. Raises ``ValueError`` if it fails, and ``InputError`` for a token
    that cannot be filled in."""
    if not endpoint.trust.command:
        return
    values = {
        "H": name,
        "I": purpose,
        "t": key.key_type if key else "NONE",
        "f": key.fingerprint if key else "NONE",
        "K": key.line.split()[1] if key else "NONE",
    }
    program, *arguments = shlex.split(endpoint.trust.command)
    if not Path(program).is_absolute():
        raise ValueError(f"KnownHostsCommand in ssh_config must be an absolute path, not {program!r}")
    try:
        ran = subprocess.run(
            [program, *(endpoint.tokens.filled(argument, values) for argument in arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=max(deadline.left_s(), 0.001),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"KnownHostsCommand {program} cannot be run: {error}") from error
    if ran.returncode:
        raise ValueError(f"KnownHostsCommand {program} ended with status {ran.returncode}")
    yield from KnownHosts.parse(Path("KnownHostsCommand"), ran.stdout).lookup(name)
