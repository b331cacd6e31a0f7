"""The paramiko policy that verifies a server's host key and records a new key."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import paramiko

from hostwright.common.command import Command
from hostwright.common.errors import InputError, Unreachable
from hostwright.common.places import refused
from hostwright.transport.exchange import Deadline
from hostwright.transport.identity import hostkeys
from hostwright.transport.identity.certificates import Certificate
from hostwright.transport.identity.hostkeys import ANOTHER_KNOWN_HOSTS, HostKeyMismatch, Known, KnownHosts
from hostwright.transport.identity.judging import Judgement
from hostwright.transport.identity.keys import HostKey
from hostwright.transport.identity.negotiating import Transport
from hostwright.transport.routing.sshconfig import Endpoint

if TYPE_CHECKING:
    from hostwright.transport.login.cache import FileCache


import shlex
import subprocess
from pathlib import Path

from hostwright.transport.identity.hostkeys import KnownHost


def known_by_command(
    endpoint: Endpoint, purpose: str, name: str, key: HostKey | None, deadline: Deadline
) -> Iterator[KnownHost]:
    """Yield the ``known_hosts`` lines for the server ``name`` from the command in the setting KnownHostsCommand.

    Raises ``ValueError`` if the command fails, and ``InputError`` if a token in the command has no value.
    """
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
        raise ValueError(f"ssh_config: KnownHostsCommand {program!r} is not an absolute path; write the absolute path")
    try:
        ran = subprocess.run(
            [program, *(endpoint.tokens.filled(argument, values) for argument in arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=max(deadline.left_s(), 0.001),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"ssh_config: KnownHostsCommand '{program}' cannot be run: {error}") from error
    if ran.returncode:
        raise ValueError(f"ssh_config: KnownHostsCommand '{program}' failed with exit status {ran.returncode}")
    yield from KnownHosts.parse(Path("KnownHostsCommand"), ran.stdout).lookup(name)


class HostKeyCheck(paramiko.MissingHostKeyPolicy):
    """Verifies the host key of a server, after the key exchange and before any credential is sent."""

    def __init__(
        self,
        host: str,
        endpoint: Endpoint,
        files: FileCache[KnownHosts],
        deadline: Deadline,
        *,
        peer: str,
        accept_new: bool,
        jump: bool,
    ):
        self._host, self._endpoint, self._files, self._deadline = host, endpoint, files, deadline
        self._peer, self._accept_new, self._jump = peer, accept_new, jump

    def known(self, purpose: str, key: HostKey | None = None) -> Known:
        """Return the ``known_hosts`` lines about the server, also those of KnownHostsCommand.

        Raises ``OSError`` for a file that cannot be read, and ``Unreachable`` if KnownHostsCommand fails.
        """
        endpoint = self._endpoint
        paths = (*endpoint.known_hosts, *endpoint.system_known_hosts)
        known = hostkeys.look_up(endpoint.host_key_name, endpoint.portless_name, paths, self._files, endpoint.revoking)
        try:
            printed = tuple(known_by_command(endpoint, purpose, known.name, key, self._deadline))
        except (ValueError, InputError) as error:
            raise Unreachable(self._host, str(error)) from error
        return replace(known, entries=(*known.entries, *printed))

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:  # noqa: ARG002
        """Raise ``HostKeyMismatch`` or ``Unreachable`` unless the server's key is accepted."""
        transport = client.get_transport()
        if not isinstance(transport, Transport):
            raise TypeError("the transport of this connection does not keep the server's key")
        shown, certificate, reasons = transport.shown, None, list[str]()
        try:
            certificate = transport.certificate()
        except ValueError as error:
            reasons.append(f"its certificate is rejected: {error}")
        known = self.known("HOSTNAME", shown)
        judgement = Judgement(self._host, self._endpoint, known, shown, certificate, self._jump, reasons)
        if judgement.accepted():
            self._check_address(shown, certificate)
        elif refusal := self._refusal(known):
            lead = "trust" if refusal == self._comparing() and not self._jump else ""
            raise Unreachable(self._host, self._unknown(judgement, refusal), lead=lead)
        else:
            self._remember(known, shown)

    def _check_address(self, shown: HostKey, certificate: Certificate | None) -> None:
        """Raise an error if another key is recorded for the server's IP address (CheckHostIP)."""
        peer, trust = self._peer, self._endpoint.trust
        if not (trust.address_too and peer) or certificate or peer == self._endpoint.address:
            return
        if ipaddress.ip_address(peer.partition("%")[0]).is_loopback:
            return
        paths = (*self._endpoint.known_hosts, *self._endpoint.system_known_hosts)
        known = hostkeys.find(peer, self._endpoint.port, paths, self._files)
        expected = known.expected(shown.key_type)
        if expected and not hostkeys.has(known.entries, shown.blob):
            raise HostKeyMismatch(
                self._host,
                f"the key of {self._endpoint.address} is known, but {expected.where} has a different key for its IP "
                f"address {peer} (CheckHostIP); compare the fingerprint on the server's console, and remove an "
                "outdated line",
                offered=shown,
                known=known.entries,
            )

    def _refusal(self, known: Known) -> str:
        return next(self._refusals(known), "")

    def _refusals(self, known: Known) -> Iterator[str]:
        authority, files = known.by_authority, self._endpoint.known_hosts
        if authority:
            yield f"{authority.where} has a @cert-authority for it, so only a certificate or a recorded key is accepted"
        if not self._accept_new:
            yield self._comparing()
        if self._endpoint.trust.strict:
            yield "ssh_config sets StrictHostKeyChecking yes, so --accept-new does not accept the key"
        if self._endpoint.trust.dns:
            yield "ssh_config sets VerifyHostKeyDNS, which Hostwright does not support; log in once with ssh"
        if not files:
            yield "ssh_config sets no file to record the key (UserKnownHostsFile none); set a file"
        elif files[0].exists() and not files[0].is_file():
            yield f"{files[0]} is not a regular file; set another UserKnownHostsFile to record the key"

    def _comparing(self) -> str:
        trust = "" if self._jump else f"with {Command('trust', hosts=self._host)}, "
        return (
            f"If its console shows this fingerprint, accept the key {trust}with --accept-new, or log in once with ssh"
        )

    def _unknown(self, judgement: Judgement, refusal: str) -> str:
        paths = (*self._endpoint.known_hosts, *self._endpoint.system_known_hosts)
        files = ", ".join(str(path) for path in paths) or "no file"
        why = "".join(f"; {reason}" for reason in dict.fromkeys(judgement.reasons))
        return (
            f"the host key of {judgement.place} is not known: it presents {judgement.key}, and none of {files} has "
            f"this key for {judgement.known.name}{why}. {refusal}"
        )

    def _remember(self, known: Known, key: HostKey) -> None:
        path = self._endpoint.known_hosts[0]
        try:
            other = hostkeys.remember(path, known.name, key.key_type, key.blob, hashed=self._endpoint.trust.hashed)
        except OSError as error:
            sentence = f"the new host key cannot be written to {path}: {refused(error, ANOTHER_KNOWN_HOSTS)}"
            raise Unreachable(self._host, sentence) from error
        if other:
            raise HostKeyMismatch(
                self._host,
                f"{self._endpoint.address}:{self._endpoint.port} presents the key {key}, but another connection has "
                f"just recorded {other.key_type} {other.fingerprint} in {other.where}. Compare both keys with the one "
                "on the host's console",
                offered=key,
                known=(other,),
            )
