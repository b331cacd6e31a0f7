"""``trust`` records new host keys of reinstalled hosts after confirmation. ``forget`` deletes recorded host keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hostwright.apply.rollout.rollout import Interrupted, Results, on_each
from hostwright.common.errors import HostError, InputError, Mistakes
from hostwright.common.interruption import on_interrupt
from hostwright.plan.targets import TargetHost, Targets
from hostwright.rebuild.install.sources import Confirmed, Sources, confirm, read_console_command
from hostwright.transport.identity.hostkeys import KnownHost
from hostwright.transport.identity.keys import HostKey
from hostwright.transport.identity.keyscan import scan_key
from hostwright.transport.identity.trusting import Replaced, known, refuse_revoked, replace

LEFT_SETTLED = "interrupted. The changes shown above are complete; the keys of all other hosts are unchanged"


@dataclass(frozen=True, slots=True)
class OfferedKey:
    """The host key that a host presents, and the recorded keys of this host."""

    host: str
    offered: HostKey
    before: tuple[KnownHost, ...]
    confirmed: Confirmed | None = None

    @property
    def as_known(self) -> bool:
        """Whether the presented key is already recorded."""
        return any(entry.blob == self.offered.blob for entry in self.before)


@dataclass(frozen=True, slots=True)
class Told:
    """Result of ``trust`` or ``forget`` for one host."""

    result: str  #: one of ``trusted``, ``known`` (the key was already recorded) and ``forgotten``
    replaced: Replaced  #: recorded keys before and after the change, and the changed files
    source: str = ""  #: source that confirmed the new host key; empty unless ``result`` is ``trusted``

    def to_json(self) -> dict[str, Any]:
        """Return the host's result as JSON values."""
        before = [{**_key(key.key_type, key.fingerprint), "where": key.where} for key in self.replaced.before]
        return {
            "host": self.replaced.host,
            "result": self.result,
            "before": before,
            "now": [_key(key.key_type, key.fingerprint) for key in self.replaced.now],
            "source": self.source,
            "files": [str(path) for path in self.replaced.files],
        }


@dataclass(frozen=True, slots=True)
class KeyResults:
    """Results of ``trust`` or ``forget`` by host, and errors of hosts without a result."""

    told: tuple[Told, ...]
    errors: tuple[HostError, ...]


def trust(
    targets: Targets,
    *,
    fingerprint: str = "",
    ask: Callable[[str], str] | None = None,
    tell: Callable[[Told], None] = lambda _: None,
) -> KeyResults:
    """Replace the recorded key of each host by the key that the host presents, if a source confirms the new key.

    ``fingerprint`` is the new key's fingerprint, for a single host. ``ask`` asks the operator. ``tell`` is called with
    each result as soon as the key is recorded.
    """
    if fingerprint and len(targets) != 1:
        raise InputError(
            f"is for a single host, but --hosts selects {len(targets)} hosts; trust one host at a time", "--fingerprint"
        )
    by_name, commands = targets.by_name, read_console_commands(targets)

    def look(name: str) -> OfferedKey:
        return _look(by_name[name], Sources(fingerprint, commands[name]))

    try:
        looked = on_each(tuple(by_name), look, stop=lambda: None)
    except Interrupted as stop:
        stop.ended = KeyResults((), stop.results.errors)
        raise
    # Each key may need an answer of the operator, so the hosts are processed one after another.
    return _one_by_one(
        [partial(_settle, by_name[offered_key.host], offered_key, ask) for offered_key in looked.values],
        tell,
        looked.errors,
    )


def forget(targets: Targets, *, tell: Callable[[Told], None] = lambda _: None) -> KeyResults:
    """Delete the recorded keys of hosts from known_hosts, and call ``tell`` with each result. No host is contacted."""
    read_console_commands(targets)
    return _one_by_one([partial(_forget, target) for target in targets], tell)


def _one_by_one(
    works: Sequence[Callable[[], Told]], tell: Callable[[Told], None], before: Sequence[HostError] = ()
) -> KeyResults:
    """Raises ``Interrupted`` with the results so far if the operator presses Ctrl-C."""
    told, errors = list[Told](), list(before)
    for work in works:
        try:
            told.append(work())
        except HostError as error:
            errors.append(error)
        except KeyboardInterrupt:
            stop = Interrupted(Results((), tuple(errors)))
            stop.ended = KeyResults(tuple(told), tuple(errors))
            if told:
                stop.add_note(LEFT_SETTLED)
            raise stop from None
        else:
            with on_interrupt(LEFT_SETTLED):
                tell(told[-1])
    return KeyResults(tuple(told), tuple(errors))


def read_console_commands(targets: Targets) -> dict[str, str]:
    """Return host → command that prints the host's public keys, read from the console.

    Raises ``InputErrors`` with all invalid settings.
    """
    mistakes, commands = Mistakes(), dict[str, str]()
    for name, target in targets.by_name.items():
        with mistakes:
            commands[name] = read_console_command(target.host)
    mistakes.refuse()
    return commands


def _look(target: TargetHost, sources: Sources) -> OfferedKey:
    _refuse_local(target)
    before = known(target.host, target.options)
    looked = OfferedKey(target.name, scan_key(target.host, target.options), before)
    refuse_revoked(target.host, target.options, [looked.offered])
    unasked = looked.as_known or not sources.console
    if unasked and not sources.fingerprint:
        return looked
    return OfferedKey(target.name, looked.offered, before, confirm(target.host, looked.offered, before, sources))


def _refuse_local(target: TargetHost) -> None:
    if target.host.local:
        raise HostError(
            target.name, "the host is this machine (ansible_connection: local), which has no recorded host key"
        )


def _forget(target: TargetHost) -> Told:
    _refuse_local(target)
    return Told("forgotten", replace(target.host, target.options, ()))


def _settle(target: TargetHost, looked: OfferedKey, ask: Callable[[str], str] | None) -> Told:
    if looked.as_known:
        return Told("known", Replaced(target.name, looked.before, (looked.offered,), ()))
    confirmed = looked.confirmed or confirm(target.host, looked.offered, looked.before, Sources(ask=ask))
    return Told("trusted", replace(target.host, target.options, confirmed.keys), confirmed.source)


def _key(key_type: str, fingerprint: str) -> dict[str, str]:
    return {"key_type": key_type, "fingerprint": fingerprint}
