"""Look at a host: every question over one exec channel, the answers as facts."""

from __future__ import annotations

from collections.abc import Sequence

from hostwright.common.errors import ProtocolError
from hostwright.common.secret import Secret
from hostwright.plan import probing
from hostwright.plan.model import Facts, Probe
from hostwright.plan.planning import Desired
from hostwright.transport import Session
from hostwright.transport.become import check_alive, check_become


def observe(session: Session, desired: Desired, password: Secret | None) -> Facts:
    """All facts of a host that its desired state asks for, over one exec channel."""
    return ask(session, desired.host, desired.probes(), password)


def ask(
    session: Session,
    host: str,
    probes: Sequence[Probe],
    password: Secret | None,
    *,
    timeout_s: float = probing.OBSERVE_TIMEOUT_S,
) -> Facts:
    """The answers of a host to these questions, over one exec channel."""
    nonce = probing.new_nonce()
    output = session.run(
        "/bin/sh",
        stdin=probing.program(probes, nonce, password),
        timeout_s=timeout_s,
        cap_bytes=probing.cap_bytes(probes),
    )
    check_alive(host, output)
    check_become(host, output)
    if output.truncated:
        raise ProtocolError(host, "it sent far more than was asked for; its answers were thrown away")
    return probing.parse(probes, nonce, output.stdout, host)
