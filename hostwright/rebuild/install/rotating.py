"""Replacement of a host key from a seed (the installer's files). Others may have read this key on the network.

During the replacement, known_hosts has both keys, so that another run can complete an interrupted replacement.
"""

from __future__ import annotations

from contextlib import suppress

from hostwright.common.durations import Clock
from hostwright.common.errors import HostError, Unreachable
from hostwright.common.quoting import sh_file
from hostwright.transport import Options, Target
from hostwright.transport.identity.keys import HostKey
from hostwright.transport.identity.keyscan import scan_key
from hostwright.transport.identity.trusting import replace
from hostwright.transport.root.rootshell import RootShell

KEY, PID = "/etc/ssh/ssh_host_ed25519_key", "/run/sshd.pid"
STEP_TIMEOUT_S = 60.0
#: time limit in seconds until a restarted sshd presents the new host key. A restart usually takes 1 s.
SHOW_TIMEOUT_S = 60.0
POLL_S = 1.0


def rotate(
    shell: RootShell, target: Target, options: Options, seeded: HostKey, clock: Clock, *, key: str = KEY, pid: str = PID
) -> HostKey:
    """Generate a new host key on the host ``target``, record this key in place of ``seeded``, and return it.

    ``seeded`` is the key from the host's seed. Raises ``HostError`` if the host cannot generate or use a new key;
    ``seeded`` then remains recorded.
    """
    script = sh_file(__file__, "newkey.sh", key=key, seeded=seeded.line)
    output = shell.run(script, timeout_s=STEP_TIMEOUT_S, failure="it cannot generate its own host key")
    try:
        made = HostKey.parse(output.stdout.decode("ascii", "replace"))
    except ValueError as error:
        raise HostError(target.name, f"the host generated no host key: {error}") from error
    replace(target, options, [seeded, made])
    try:
        script = sh_file(__file__, "swapkey.sh", key=key, pid=pid)
        shell.run(script, timeout_s=STEP_TIMEOUT_S, failure="it cannot use its new host key")
        shows = _shows(target, options, made, clock)
    except HostError as error:
        raise HostError(target.name, f"{error.sentence}; {_both(seeded, made)}") from error
    if not shows:
        raise HostError(target.name, f"the host does not present its new host key {made}; {_both(seeded, made)}")
    replace(target, options, [made])
    return made


def _shows(target: Target, options: Options, made: HostKey, clock: Clock) -> bool:
    end_s = clock.now_s() + SHOW_TIMEOUT_S
    while clock.now_s() < end_s:
        with suppress(Unreachable):  # sshd does not accept connections while it restarts.
            if scan_key(target, options) == made:
                return True
        clock.sleep(POLL_S)
    return False


def _both(seeded: HostKey, made: HostKey) -> str:
    return (
        f"both keys, {seeded} and {made}, stay in known_hosts until the next rebuild of this host completes the change"
    )
