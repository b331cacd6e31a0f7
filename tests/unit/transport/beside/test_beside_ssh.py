"""Compares Hostwright with ``ssh`` for each case: never less strict, and stricter only in the listed cases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hostwright.common.errors import Unreachable
from hostwright.inventory import Host
from hostwright.transport import Options, connect
from hostwright.transport.identity.hostkeys import HostKeyMismatch
from tests.unit.transport.beside import certificates, configuration, plain
from tests.unit.transport.beside.case import Case
from tests.unit.transport.beside.deciding import by_ssh, by_us, keys_of, prepared, sshd
from tests.unit.transport.beside.stricter import STRICTER
from tests.unit.transport.beside.world import World, make_world

CASES = (
    *plain.NAMES,
    *plain.REVOKED,
    *plain.PORTS,
    *certificates.CERTIFICATES,
    *certificates.ALGORITHMS,
    *certificates.LISTS,
    *configuration.FILES,
    *configuration.ALIASES,
    *configuration.COMMANDS,
    *configuration.CHECKING,
    *configuration.STANZAS,
)


#: Three cases take a second; ``make beside`` runs the others
CHOSEN = CASES if os.environ.get("HOSTWRIGHT_BESIDE") == "all" else CASES[::3]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def port(world: World) -> Iterator[int]:
    with sshd(world) as number:
        yield number


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.name)
def test_never_laxer_than_ssh(case: Case, world: World, port: int, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(by_ssh, prepared(world, case, tmp_path / "theirs", port), case)
        ours = by_us(prepared(world, case, tmp_path / "ours", port), case)
        theirs = asked.result()
    told = f"ssh: {theirs.sentence}\nwe: {ours.sentence}"
    assert ours.sentence.startswith("gpu01: ")
    assert ours.sentence.isprintable()
    if not theirs.accepted:
        assert not ours.accepted, f"laxer than ssh\n{told}"
    elif not ours.accepted:
        assert case.name in STRICTER, f"stricter than ssh, and nobody said so\n{told}"
        assert re.search(STRICTER[case.name], ours.sentence), told
    elif case.new:
        assert keys_of(ours.known) == keys_of(theirs.known)


def test_each_exception_is_a_case() -> None:
    assert set(STRICTER) <= {case.name for case in CASES}
    assert len({case.name for case in CASES}) == len(CASES) > 300


def test_what_other_files_revoke_stays_revoked(world: World, port: int, tmp_path: Path) -> None:
    """The inventory's file replaces the user's and the system's files, except for their revoked keys."""
    config = prepared(world, Case("", system="@revoked * <ed>"), tmp_path / "case", port)
    own = tmp_path / "own"
    own.write_text(f"gpu01.example.org {world.public('ed')}\n")
    host = Host("gpu01", address="gpu01.example.org", known_hosts=str(own))
    with pytest.raises(HostKeyMismatch, match=f"which {config.parent}/system:1 revokes"):
        connect(host, Options(ssh_config=config, use_agent=False))
    (config.parent / "system").write_text("")
    with pytest.raises(Unreachable, match="the login at"):
        connect(host, Options(ssh_config=config, use_agent=False))


def test_two_first_connections_at_once_record_one_key(world: World, port: int, tmp_path: Path) -> None:
    """Two servers with one name, used by two processes: one key is recorded, the other is rejected."""
    known = tmp_path / "known"
    configs = [
        prepared(
            world, Case("", "", f"UserKnownHostsFile {known}", server=server), tmp_path / f"{server}{number}", port
        )
        for number, server in enumerate(("ed", "ec", "ed", "rsa", "ed", "ec"))
    ]
    ran = [
        subprocess.Popen([sys.executable, "-c", _FIRST, config], stdout=subprocess.PIPE, text=True)
        for config in configs
    ]
    told = [process.communicate(timeout=60)[0] for process in ran]
    (line,) = known.read_text().splitlines()
    accepted = {config.parent.name[:-1] for config, text in zip(configs, told, strict=True) if "the login at" in text}
    assert {world.public(name) for name in accepted} == {line.partition(" ")[2]}
    assert all("the login at" in text or "changed" in text or "at the same time" in text for text in told)


_FIRST = """
import sys
from pathlib import Path
from hostwright.inventory import Host
from hostwright.transport import Options, connect
options = Options(host_keys="accept-new", ssh_config=Path(sys.argv[1]), use_agent=False, connect_timeout_s=50)
try:
    connect(Host("gpu01", address="gpu01.example.org"), options)
except Exception as error:
    print(error)
"""
