"""Signatures of saved plans with ssh-keygen: ``plan --out`` creates them, ``provision --plan`` requires them.

``hostwright_plan_key`` is the key of the machine that saves plans; ``hostwright_plan_signers`` is a file of trusted
keys (ssh-keygen(1), ALLOWED SIGNERS). A namespace limits a signature to this purpose.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hostwright.common.command import Command
from hostwright.common.errors import InputError
from hostwright.common.input.validation import describe, unknown_name
from hostwright.common.text import printable, shown_limit
from hostwright.common.userpaths import expanded
from hostwright.inventory import Host

KEY, SIGNERS = "hostwright_plan_key", "hostwright_plan_signers"
NAMESPACE = "hostwright-plan"
SUFFIX = ".sig"
TIMEOUT_S = 300.0  #: time limit in seconds of ssh-keygen, which may wait for a passphrase or the touch of a key
SHOWN = 200  #: maximum number of characters of ssh-keygen's output in a message
PRINCIPALS = 16  #: maximum number of principals to try for one signing key


@dataclass(frozen=True, slots=True)
class Signing:
    """The key with which this machine signs plans, and the files of trusted signers.

    Every file of ``signers`` must accept a signature.
    """

    key: Path | None = None
    signers: tuple[Path, ...] = ()


def signing_of(hosts: Iterable[Host], root: Path) -> Signing:
    """Return the settings for signed plans in the variables of ``hosts``.

    Relative paths are below the site's ``root``. Raises ``InputError`` if a setting is invalid, or if the hosts have
    several keys.
    """
    keys: dict[Path, str] = {}
    signers: dict[Path, str] = {}
    for host in hosts:
        read_signing(host)
        for name, paths in ((KEY, keys), (SIGNERS, signers)):
            if text := host.get(name):
                paths.setdefault(root / expanded(text), host.vars[name].origin.exact)
    if len(keys) > 1:
        several = " and ".join(map(str, keys))
        raise InputError(
            f"{KEY}: these hosts have several keys ({several}), but a plan file has one signature; set one key for all "
            "hosts"
        )
    for path, place in signers.items():
        if not path.is_file():
            raise InputError(f"{SIGNERS}: the file {path} does not exist", place)
    return Signing(next(iter(keys), None), tuple(signers))


def read_signing(host: Host) -> None:
    """Check a host's variables about signed plans. Raises ``InputError`` for an unknown or invalid variable."""
    for name in (name for name in host.vars if name.startswith("hostwright_plan")):
        value = host.get(name)
        if name not in (KEY, SIGNERS):
            raise InputError(f"{name}: {unknown_name(name, (KEY, SIGNERS))}", host.vars[name].origin.exact)
        if value is not None and (not isinstance(value, str) or not value.strip() or "\0" in value):
            raise InputError(f"{name}: found {describe(value)}, expected a file's path", host.vars[name].origin.exact)


def check_can_sign(signing: Signing, path: Path) -> None:
    """Raise ``InputError``, before any host is probed, if plans in ``path`` cannot be signed as the site requires."""
    if signing.key is None:
        if signing.signers:
            raise InputError(f"{SIGNERS} requires signed plans, but this machine has no key; set {KEY}", str(path))
        return
    # A symbolic link may lead to a device, as /dev/stdout does.
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise InputError(f"is not a regular file, which signed plans need ({KEY}); name a regular file", str(path))
    if not signing.key.is_file() and not signing.key.with_name(f"{signing.key.name}.pub").is_file():
        raise InputError(
            f"{KEY}: the key {signing.key} does not exist; create it: `ssh-keygen -t ed25519 -f {signing.key}`"
        )


def signature_path(path: Path) -> Path:
    """Return the path of the signature beside the file of saved plans ``path``."""
    return path.with_name(path.name + SUFFIX)


def sign(content: bytes, key: Path) -> bytes:
    """Return the signature of ``content`` with ``key``. Raises ``InputError`` if ssh-keygen fails."""
    done = _keygen(["sign", "-f", str(key), "-n", NAMESPACE], content)
    if done.returncode != 0:
        raise InputError(f"{KEY}: {key} cannot sign: {_last(done)}")
    return done.stdout


def verify(path: Path, content: bytes, signers: Sequence[Path]) -> None:
    """Check the signature beside the file of saved plans ``path``.

    Raises ``InputError`` unless every file of ``signers`` accepts the signature of ``content``.
    """
    signature = signature_path(path)
    if signers and not signature.is_file():
        raise InputError(f"is not signed ({signature.name} is missing), and {_asked(signers[0])}", str(path))
    for allowed in signers:
        found = _keygen(["find-principals", "-s", str(signature), "-f", str(allowed)])
        names = found.stdout.decode("utf-8", "replace").splitlines()[:PRINCIPALS] if found.returncode == 0 else []
        if not names:
            raise InputError(f"is not signed by a key in {allowed} ({_last(found)}), and {_asked(allowed)}", str(path))
        last = ""
        for name in names:
            checks = ["-s", str(signature), "-f", str(allowed), "-n", NAMESPACE, "-I", name]
            done = _keygen(["verify", *checks], content)
            if done.returncode == 0:
                break
            last = _last(done)
        else:
            raise InputError(
                f"has an invalid signature ({last}): the file was changed after it was signed, or was signed for "
                f"another purpose; {_asked(allowed)}",
                str(path),
            )


def _asked(signers: Path) -> str:
    asked = f"the site requires signed plans ({SIGNERS}: {signers})"
    return f"{asked}; nothing was changed; run {Command('plan', out='FILE')} again"


def _keygen(arguments: Sequence[str], content: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run ``ssh-keygen -Y``, which may prompt for a passphrase on the terminal. Raises ``InputError`` if ssh-keygen is
    missing or does not end in time.
    """
    command = ["ssh-keygen", "-Y", *arguments]
    try:
        return subprocess.run(command, input=content, capture_output=True, timeout=TIMEOUT_S, check=False)
    except FileNotFoundError as error:
        raise InputError("signed plans need ssh-keygen, which is missing on this machine; install OpenSSH") from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"`ssh-keygen -Y {arguments[0]}` did not end within {shown_limit(TIMEOUT_S)}") from error


def _last(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = [
        line for line in (done.stderr + b"\n" + done.stdout).decode("utf-8", "replace").splitlines() if line.strip()
    ]
    return printable(f"ssh-keygen: {lines[0].strip()}")[:SHOWN] if lines else f"ssh-keygen ended with {done.returncode}"
