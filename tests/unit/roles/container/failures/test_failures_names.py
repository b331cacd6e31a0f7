"""Containers without a usable name server are found; unusual files that work with Docker are not reported."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hostwright.plan.model import Answer
from hostwright.resources.packages.packages import DPKG
from hostwright.standard.roles.container.failures import NAME_SERVERS
from tests.unit.support.auditcontexts import evidence
from tests.unit.support.stubs import stub

STUB, LOCAL = "nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch lab.example\n", "nameserver 127.0.0.1\n"
LISTED = "resolved/resolv.conf (which Docker reads as resolv.conf names 127.0.0.53 alone)"
CHOICE = "so that Docker has containers ask 8.8.8.8 and 8.8.4.4, which firewalls often block"
UNHEARD = "where nothing listens on this host"


def row(address: str) -> str:
    """Return a line of ``ss -Hlun``."""
    return f"UNCONN 0      0        {address}      0.0.0.0:*"


def said(folder: Path, text: str | None, listed: str | None = None, listening: str = "", daemon_json: str = "") -> str:
    """Return the probe's output, with file names instead of paths."""
    (folder / "resolved").mkdir()
    if text is not None:
        (folder / "resolv.conf").write_text(text)
    if listed is not None:
        (folder / "resolved" / "resolv.conf").write_text(listed)
    (folder / "daemon.json").write_text(daemon_json)
    script = NAME_SERVERS.script
    for path, name in (
        ("/run/systemd/resolve/", f"{folder}/resolved/"), ("/etc/resolv.conf", f"{folder}/resolv.conf"),
        ("/etc/docker/", f"{folder}/"), ("/run/docker.pid", f"{folder}/docker.pid"),
    ):  # fmt: skip
        script = script.replace(path, name)
    environment = stub(folder, ss=f"printf '%s\\n' '{listening}'")
    done = subprocess.run(["/bin/sh", "-euc", script], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.replace(f"{folder}/", "").strip()


@pytest.mark.parametrize(
    ("text", "listed", "listening"),
    [
        ("nameserver 10.0.0.2\n", None, ""),
        ("# nameserver 127.0.0.1\nnameserver 127.0.0.1\nnameserver\t10.0.0.2 # the second\n", None, ""),
        ("nameserver fd00::53\n", None, ""),
        (STUB, "nameserver 10.0.0.2\n", row("127.0.0.53%lo:53")),  # systemd-resolved's stub
        (STUB, "nameserver 10.0.0.2\n", ""),  # Docker bypasses the stub, and the rule does the same
        ("nameserver 10.0.0.2\n", "nameserver 127.0.0.1\n", ""),  # systemd-resolved without its stub
        (LOCAL, None, row("127.0.0.1:53")),  # dnsmasq, which Docker queries on the host
        (LOCAL, None, row("0.0.0.0:53")),
        (LOCAL, None, row("*:53")),
        ("nameserver ::1\n", None, row("[::1]:53")),
        ("nameserver 127.0.0.53\nnameserver 127.0.0.1\n", None, row("127.0.0.53%lo:53")),
    ],
)
def test_a_file_that_serves_docker_is_none(tmp_path: Path, text: str, listed: str | None, listening: str) -> None:
    assert said(tmp_path, text, listed, listening) == ""


@pytest.mark.parametrize(
    ("text", "listed", "listening", "trouble"),
    [
        (None, None, "", f"resolv.conf is not there, {CHOICE}"),
        ("search lab.example\n", None, "", f"resolv.conf names no server, {CHOICE}"),
        (LOCAL, None, row("10.0.0.9:53"), f"resolv.conf names only 127.0.0.1, {UNHEARD}"),
        (LOCAL, None, row("127.0.0.1:5353"), f"resolv.conf names only 127.0.0.1, {UNHEARD}"),
        (f"{LOCAL}nameserver ::1\n", None, "", f"resolv.conf names only 127.0.0.1 ::1, {UNHEARD}"),
        (STUB, None, row("127.0.0.53%lo:53"), f"{LISTED} is not there, {CHOICE}"),
        (STUB, "# none yet\n", row("127.0.0.53%lo:53"), f"{LISTED} names no server, {CHOICE}"),
    ],
)
def test_a_file_that_does_not_is_told(
    tmp_path: Path, text: str | None, listed: str | None, listening: str, trouble: str
) -> None:
    assert said(tmp_path, text, listed, listening) == trouble


def test_a_link_that_leads_nowhere_is_told_with_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").symlink_to("../run/resolvconf/resolv.conf")
    trouble = f"resolv.conf is a link to ../run/resolvconf/resolv.conf, which is not there, {CHOICE}"
    assert said(tmp_path, None) == trouble


def test_servers_of_dockers_own_are_enough(tmp_path: Path) -> None:
    assert said(tmp_path, LOCAL, daemon_json='{"dns": ["10.0.0.2"]}') == ""


def test_a_host_without_docker_has_no_containers() -> None:
    told = {NAME_SERVERS: "/etc/resolv.conf is not there\n"}
    assert evidence("container-name-servers", told) == ["/etc/resolv.conf is not there"]
    assert evidence("container-name-servers", {**told, DPKG: Answer(0, "bash\t5\tii \n")}) == []
