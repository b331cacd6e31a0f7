"""Signatures of saved plans, by ssh-keygen: made by ``plan --out``, and asked for by ``provision --plan``.

``hostwright_plan_key`` is the key of the machine that saves plans, ``hostwright_plan_signers`` a file of the keys that
a site trusts (ssh-keygen(1), ALLOWED SIGNERS). A signature is for this use alone (a namespace).
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
TIMEOUT_S = 300.0  #: a key with a passphrase, or one that has to be touched, waits for a person
SHOWN = 200  #: characters of what ssh-keygen says
PRINCIPALS = 16  #: of one key that are tried; a key needs one


@dataclass(frozen=True, slots=True)
class Signing:
    """With which key plans are signed here, and the files of signers that a signature must satisfy; empty: none is
    asked for."""

    key: Path | None = None
    signers: tuple[Path, ...] = ()


def signing_of(hosts: Iterable[Host], root: Path) -> Signing:
    """What the variables of these hosts say; relative paths are below the site's ``root``. Raises ``InputError``."""
    keys: dict[Path, str] = {}
    signers: dict[Path, str] = {}
    for host in hosts:
        read_signing(host)
        for name, paths in ((KEY, keys), (SIGNERS, signers)):
            if text := host.get(name):
                paths.setdefault(root / expanded(text), host.vars[name].origin.exact)
    if len(keys) > 1:
        several = " and ".join(map(str, keys))
        raise InputError(f"{KEY}: one file of plans is signed with one key, and these hosts name {several}")
    for path, place in signers.items():
        if not path.is_file():
            raise InputError(f"{SIGNERS}: there is no file {path}", place)
    return Signing(next(iter(keys), None), tuple(signers))


def read_signing(host: Host) -> None:
    """Raise ``InputError`` where a variable about signed plans is none, or is no path."""
    for name in (name for name in host.vars if name.startswith("hostwright_plan")):
        value = host.get(name)
        if name not in (KEY, SIGNERS):
            raise InputError(f"{name}: {unknown_name(name, (KEY, SIGNERS))}", host.vars[name].origin.exact)
        if value is not None and (not isinstance(value, str) or not value.strip() or "\0" in value):
            raise InputError(f"{name}: found {describe(value)}, expected a file's path", host.vars[name].origin.exact)


def check_can_sign(signing: Signing, path: Path) -> None:
    """Raise ``InputError``, before any host is probed, where the plans could not be signed as the site asks."""
    if signing.key is None:
        if signing.signers:
            raise InputError(
                f"{SIGNERS} asks for signed plans, and {KEY} names no key of this machine to sign with", str(path)
            )
        return
    if path.is_symlink() or (path.exists() and not path.is_file()):  # /dev/stdout is a link
        raise InputError(f"is no ordinary file, and plans are signed here ({KEY}): name a file", str(path))
    if not signing.key.is_file() and not signing.key.with_name(f"{signing.key.name}.pub").is_file():
        raise InputError(f"{KEY}: there is no key {signing.key}; `ssh-keygen -t ed25519 -f {signing.key}` makes one")


def signature_path(path: Path) -> Path:
    """The file beside a saved plan that holds its signature."""
    return path.with_name(path.name + SUFFIX)


def sign(content: bytes, key: Path) -> bytes:
    """The signature of a file's content. Raises ``InputError`` with ssh-keygen's own words."""
    done = _keygen(["sign", "-f", str(key), "-n", NAMESPACE], content)
    if done.returncode != 0:
        raise InputError(f"{KEY}: {key} cannot sign: {_last(done)}")
    return done.stdout


def verify(path: Path, content: bytes, signers: Sequence[Path]) -> None:
    """Raise ``InputError`` unless this content of a file has a signature that every one of these files admits."""
    signature = signature_path(path)
    if signers and not signature.is_file():
        raise InputError(f"is not signed ({signature.name} is missing), and {_asked(signers[0])}", str(path))
    for allowed in signers:
        found = _keygen(["find-principals", "-s", str(signature), "-f", str(allowed)])
        names = found.stdout.decode("utf-8", "replace").splitlines()[:PRINCIPALS] if found.returncode == 0 else []
        if not names:
            raise InputError(
                f"is signed by nobody whom {allowed} names ({_last(found)}), and {_asked(allowed)}", str(path)
            )
        last = ""
        for name in names:
            checks = ["-s", str(signature), "-f", str(allowed), "-n", NAMESPACE, "-I", name]
            done = _keygen(["verify", *checks], content)
            if done.returncode == 0:
                break
            last = _last(done)
        else:
            raise InputError(
                f"its signature does not hold ({last}): the file was changed after it was signed, or was signed for "
                f"something else; {_asked(allowed)}",
                str(path),
            )


def _asked(signers: Path) -> str:
    asked = f"the site asks for signed plans ({SIGNERS}: {signers})"
    return f"{asked}; nothing was changed: run {Command('plan', out='FILE')} again"


def _keygen(arguments: Sequence[str], content: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run ``ssh-keygen -Y``, which may ask for a passphrase at the terminal."""
    command = ["ssh-keygen", "-Y", *arguments]
    try:
        return subprocess.run(command, input=content, capture_output=True, timeout=TIMEOUT_S, check=False)
    except FileNotFoundError as error:
        raise InputError("signed plans need ssh-keygen on this machine: install OpenSSH's client") from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"ssh-keygen -Y {arguments[0]} did not end within {shown_limit(TIMEOUT_S)}") from error


def _last(done: subprocess.CompletedProcess[bytes]) -> str:
    """Why ssh-keygen refused, in its own words."""
    lines = [
        line for line in (done.stderr + b"\n" + done.stdout).decode("utf-8", "replace").splitlines() if line.strip()
    ]
    return printable(f"ssh-keygen: {lines[0].strip()}")[:SHOWN] if lines else f"ssh-keygen ended with {done.returncode}"
