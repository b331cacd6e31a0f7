"""Implementation of ``registry.trust``: the registry's CA certificate is copied into the inventory."""

from __future__ import annotations

import os
from pathlib import Path

from rich.text import Text

from hostwright.cli.verb import (
    Connections,
    Fleet,
    Request,
    ask_password,
    console,
    definitions,
    load,
    open_fleet,
    print_document,
)
from hostwright.roles import Command, InputError, on_interrupt, printable, sh, write_whole
from hostwright.standard.roles.base.states.certificate import AUTHORITY
from hostwright.standard.roles.registry import STATE, Registry
from hostwright.standard.roles.registry.authority import authority_of

ROLE, VARIABLE = "registry", "registry_authority"
FILE = "registry-authority.yml"
_HEAD = (
    f"# Written by {Command('registry.trust')}: hosts that pull from the registry believe this authority. "
    "It is no secret.\n"
)


def trust(request: Request) -> int:
    """Run the task ``registry.trust``. Hosts get the CA certificate at the next provisioning."""
    fleet = open_fleet(request)
    hosts = fleet.select(request.hosts) if request.hosts else []
    if len(hosts) != 1:
        raise InputError("expected exactly one host; name the registry's host, such as --host reg01", "--host")
    target = fleet.target(hosts[0])
    v = target.variables.get(ROLE)
    if not isinstance(v, Registry) or not v.serve:
        sentence = "it has no registry; add the role registry to its hostwright_roles and set registry_serve: true"
        raise InputError(f"{target.name}: {sentence}", "--host")
    if v.certificate:
        sentence = f"it uses its own certificate {v.certificate}; write the CA certificate that signed it to {VARIABLE}"
        raise InputError(f"the registry on {target.name}: {sentence}", "--host")
    path = _place(fleet)
    with Connections(ask_password(request)).connect(target) as shell:
        failure = f"cannot read the registry's CA certificate; create it with {Command('provision', hosts=target.name)}"
        text = shell.run(sh("cat -- %s", f"{STATE}/{AUTHORITY}"), timeout_s=30, failure=failure).stdout.decode("ascii")
    try:
        authority = authority_of(text)
    except ValueError as error:
        raise InputError(f"{STATE}/{AUTHORITY}: {error}", target.name) from error
    _write(path, text)
    with on_interrupt(f"interrupted. {path} was written"):
        _refuse_overruled(fleet)
        if request.json:
            print_document(
                "authority",
                {
                    "host": target.name,
                    "registry": v.at,
                    "file": str(path),
                    "fingerprint": authority.fingerprint,
                    "until": authority.ends,
                },
            )
            return 0
        out = console.make_console()
        for line in (
            f"{path}: the authority of {v.at} on {target.name}, until {authority.ends:%Y-%m-%d}",
            f"  SHA-256 {authority.fingerprint}",
            f"hosts with the role registry get it with {Command('provision', hosts='all', roles='registry')}",
        ):
            out.print(Text(printable(line)))
        return 0


def _place(fleet: Fleet) -> Path:
    """Return the path of ``FILE`` in the inventory. Raises ``InputError`` if another program wrote this file."""
    if not fleet.path.is_dir():
        sentence = f"not a directory; {FILE} is written to an inventory that is a directory"
        raise InputError(sentence, str(fleet.path))
    path = fleet.path / FILE
    if path.exists() and not path.read_text("utf-8").startswith(_HEAD):
        raise InputError(
            f"the file was not written by Hostwright; move its contents to another file, or set {VARIABLE} yourself",
            str(path),
        )
    return path


def _write(path: Path, text: str) -> None:
    lines = "".join(f"      {line}\n" for line in text.strip().splitlines())
    try:
        write_whole(path, f"{_HEAD}all:\n  vars:\n    {VARIABLE}: |\n{lines}".encode(), mode=0o644)
    except OSError as error:
        raise InputError(f"cannot be written: {os.strerror(error.errno or 0)}", str(path)) from error


def _refuse_overruled(fleet: Fleet) -> None:
    """Raise ``InputError`` if another inventory file sets a different CA certificate for a host."""
    for host in load(fleet.path).hosts.values():
        for definition in definitions(host, ROLE, "authority"):
            if definition.wins and Path(definition.origin.file).name != FILE:
                raise InputError(
                    f"sets another registry_authority for {host.name} than {FILE}; remove this setting",
                    str(definition.origin),
                )
