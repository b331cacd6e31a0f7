"""A host key of its own for a host that was installed with the key of a seed, which others may have read on the wire.

Both keys are known while the host changes from one to the other: it can be reached wherever that is interrupted, and
doing it again ends with one. Several runs may do it at once: the host makes one key for all of them.
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
SHOW_TIMEOUT_S = 60.0  #: until sshd, which begins anew, shows its new key: it takes a second
POLL_S = 1.0


def rotate(
    shell: RootShell, target: Target, options: Options, seeded: HostKey, clock: Clock, *, key: str = KEY, pid: str = PID
) -> HostKey:
    """Make a new host key on the host, in the place of its seed's, and record it as the only one; that key.

    Raises ``HostError``: before anything is recorded, or with both keys known and what to do.
    """
    script = sh_file(__file__, "newkey.sh", key=key, seeded=seeded.line)
    output = shell.run(script, timeout_s=STEP_TIMEOUT_S, failure="it cannot make a host key of its own")
    try:
        made = HostKey.parse(output.stdout.decode("ascii", "replace"))
    except ValueError as error:
        raise HostError(target.name, f"it made no host key of its own: {error}") from error
    replace(target, options, [seeded, made])
    try:
        script = sh_file(__file__, "swapkey.sh", key=key, pid=pid)
        shell.run(script, timeout_s=STEP_TIMEOUT_S, failure="it cannot use its new host key")
        shows = _shows(target, options, made, clock)
    except HostError as error:
        raise HostError(target.name, f"{error.sentence}; {_both(seeded, made)}") from error
    if not shows:
        raise HostError(target.name, f"it does not show its new host key {made}; {_both(seeded, made)}")
    replace(target, options, [made])
    return made


def _shows(target: Target, options: Options, made: HostKey, clock: Clock) -> bool:
    """Wait until the host shows the new key; whether it did."""
    end_s = clock.now_s() + SHOW_TIMEOUT_S
    while clock.now_s() < end_s:
        with suppress(Unreachable):  # while sshd begins anew nobody listens
            if scan_key(target, options) == made:
                return True
        clock.sleep(POLL_S)
    return False


def _both(seeded: HostKey, made: HostKey) -> str:
    return f"both stay in known_hosts, {seeded} and {made}, until the next rebuild of this host finishes this"
