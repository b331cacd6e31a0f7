"""Full disks, read-only directories, unreadable keys: the message has the fix, and the hosts still get their stack."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.sshd import make_key
from tests.unit.cli.mistakes.desk import Desk, Said
from tests.unit.cli.mistakes.rack import HELLO, Rack, rack
from tests.unit.support.mounts import mounts

FULL, MOUNTS = "No space left on device; free some space there", "Read-only file system; mount it writable"
ELSEWHERE = "set HOSTWRIGHT_STATE to a directory elsewhere"


@contextmanager
def state(desk: Desk, kind: str) -> Iterator[tuple[str, ...]]:
    """Put the state directory on its own disk, full or read-only; return the words that enter its mount namespace."""
    desk.state.mkdir()
    make = {
        FULL: f"mount -t tmpfs -o size=64k tmpfs {desk.state}; dd if=/dev/zero of={desk.state}/fill bs=1k 2>&- || true",
        MOUNTS: f"mount -t tmpfs tmpfs {desk.state}; mount -o remount,ro {desk.state}",
    }
    with mounts(make[kind]) as (_, enter):
        yield enter


def about_the_record(said: Said) -> list[str]:
    return [
        line
        for line in (said.err + said.out).splitlines()
        if re.search("cannot be (kept|stored|written)|recorded", line)
    ]


@pytest.mark.parametrize("kind", [FULL, MOUNTS])
def test_the_state_directory_cannot_be_written(desk: Desk, kind: str) -> None:
    """The host gets its stack. One sentence reports that no record exists, and no command refers to it."""
    with rack(desk, "gpu01") as hosts, state(desk, kind) as within:
        for verb in "provision gpu01", "verify gpu01", "rebuild gpu01 --yes", "remove gpu01 --yes":
            said = desk.types(verb, within=within)
            assert said.status == 0, said
            record, *others = about_the_record(said)
            assert record.startswith(f"the record of this run cannot be written: {desk.state}/runs"), record
            assert kind in record and ELSEWHERE in record
            assert all(kind in line for line in others), others
            assert "runs.show" not in said.out + said.err
        assert hosts.on("gpu01", f"cat {HELLO}") == ""
        said = desk.types("runs", within=within)
        assert (said.status, said.out) == (0, f"no run is recorded in {desk.state} yet\n")


@pytest.mark.parametrize("kind", [FULL, MOUNTS])
def test_an_audit_is_shown_where_it_cannot_be_kept(desk: Desk, kind: str) -> None:
    with rack(desk, "gpu01"), state(desk, kind) as within:
        said = desk.types("audit gpu01", within=within)
        (sentence,) = said.err.splitlines()
        assert sentence.startswith(f"the history of audits cannot be used: {desk.state}/")
        assert kind in sentence and ELSEWHERE in sentence
        assert "against hello: 1 never provisioned" in said.out


@pytest.mark.parametrize("kind", [FULL, MOUNTS])
@pytest.mark.parametrize("option", ["plan gpu01 --out", "audit gpu01 --html"])
def test_a_file_that_is_asked_for_cannot_be_written(desk: Desk, kind: str, option: str) -> None:
    with rack(desk, "gpu01"), state(desk, kind) as within:
        said = desk.types(f"{option} {desk.state}/file", within=within)
        *_, sentence = said.err.splitlines()
        assert said.status == 2
        assert f"{desk.state}" in sentence and kind in sentence and "name another file" in sentence


def test_the_mirror_is_read_only(desk: Desk) -> None:
    with state(desk, MOUNTS) as within:
        said = desk.types("mirror", within=within, env={"HOSTWRIGHT_ARTIFACTS": str(desk.state / "mirror")})
        (sentence,) = said.err.splitlines()
        assert said.status == 1
        assert sentence.startswith(f"{desk.state}/mirror")
        assert MOUNTS in sentence and "set HOSTWRIGHT_ARTIFACTS to a directory elsewhere" in sentence


def test_the_mirror_is_full(desk: Desk) -> None:
    """The error appears before any byte of a file that does not fit is written."""
    file = desk.write("vendor/driver.run", "x" * 200_000)
    driver = {"file": "driver.run", "urls": [file.as_uri()], "size": 200_000, "sha256": "0" * 64}
    stack = {"extends": "tensorflow-2.9", "artifacts": {"driver": driver}}
    desk.write("inventory/stacks/ours.yml", json.dumps(stack))
    desk.write("inventory/hosts.yml", "all: {hosts: {gpu01: {stack: ours, hostwright_roles: [base, driver]}}}")
    with state(desk, FULL) as within:
        said = desk.types("mirror", within=within, env={"HOSTWRIGHT_ARTIFACTS": str(desk.state / "mirror")})
        sentence = next(line for line in said.err.splitlines() if "driver.run" in line)
        assert said.status == 1
        assert "needs 200,000 more bytes, and" in sentence and "free disk space, or set" in sentence


# ---------------------------------------------------------------- keys


def of_somebody_else(rack: Rack, key: Path) -> None:
    shutil.copy(rack.sshd.key, key)
    key.chmod(0)


def the_public_half(rack: Rack, key: Path) -> None:
    shutil.copy(rack.sshd.key.with_suffix(".pub"), key)


def with_a_passphrase(rack: Rack, key: Path) -> None:
    make_key(key)
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "hunter2", "-f", key], check=True)


def empty(rack: Rack, key: Path) -> None:
    key.touch()


def a_directory(rack: Rack, key: Path) -> None:
    key.mkdir()


def nowhere(rack: Rack, key: Path) -> None:
    """Create nothing."""


KEYS: dict[Callable[[Rack, Path], None], tuple[str, ...]] = {
    of_somebody_else: ("(ansible_ssh_private_key_file) cannot be read: Permission denied; change its owner or mode",),
    the_public_half: ("(ansible_ssh_private_key_file) is a public key", "without .pub"),
    with_a_passphrase: ("has a passphrase", "ssh-add"),
    empty: ("(ansible_ssh_private_key_file) is not a usable private key", "ssh-keygen"),
    a_directory: ("cannot be read: Is a directory; name a file in it",),
    nowhere: ("(ansible_ssh_private_key_file) does not exist",),
}


@pytest.mark.parametrize("make", KEYS, ids=lambda make: make.__name__)
def test_a_key_that_cannot_be_used(desk: Desk, make: Callable[[Rack, Path], None]) -> None:
    key = desk.site / "key.pub" if make is the_public_half else desk.site / "key"
    with rack(desk, "gpu01") as hosts:
        make(hosts, key)
        text = (desk.site / "inventory/hosts.yml").read_text().replace(str(hosts.sshd.key), str(key))
        desk.write("inventory/hosts.yml", text)
        said = desk.types("plan gpu01", bound=True, env={"SSH_AUTH_SOCK": "", "HOME": str(desk.folder)})
        (sentence,) = said.err.splitlines()
        assert said.status == 1
        for part in ("gpu01: the login at ", "without a usable key or password", str(key), *KEYS[make]):
            assert part in sentence, sentence
