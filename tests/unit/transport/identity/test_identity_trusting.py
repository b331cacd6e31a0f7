"""Replacement of a host's key in real files: atomic, in the user's own files only, without lost lines."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hostwright.common.errors import HostError, Refused, Unreachable
from hostwright.inventory import Host
from hostwright.transport import Options
from hostwright.transport.identity import hostkeys, trusting
from hostwright.transport.identity.trusting import Replaced, known, refuse_revoked, replace
from tests.unit.support.hostkeys import host_key

OLD, NEW, OTHER = (host_key(number) for number in range(3))
HOST = Host("gpu07", address="10.0.0.7")


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    """Two files of the user and one of the system; none exists yet."""
    monkeypatch.setattr(trusting, "SYSTEM", tmp_path / "etc")
    (tmp_path / "etc").mkdir()
    config = tmp_path / "config"
    config.write_text(
        f"Host *\n  UserKnownHostsFile {tmp_path}/mine {tmp_path}/mine2\n  GlobalKnownHostsFile {tmp_path}/etc/all\n"
    )
    return Options(ssh_config=config)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def put(name: str, *lines: str) -> Path:
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return put


Write = Callable[..., Path]


def test_the_old_key_goes_and_the_new_one_comes(options: Options, write: Write) -> None:
    file = write("mine", f"gpu08 {OTHER.line}", f"10.0.0.7,gpu07 {OLD.line}")
    assert [entry.where for entry in known(HOST, options)] == [f"{file}:2"]
    done = replace(HOST, options, [NEW])
    assert (done.host, [entry.blob for entry in done.before], done.now, done.files) == (
        "gpu07",
        [OLD.blob],
        (NEW,),
        (file,),
    )
    assert file.read_text() == f"gpu08 {OTHER.line}\ngpu07 {OLD.line}\n10.0.0.7 {NEW.line}\n"
    assert [entry.blob for entry in known(HOST, options)] == [NEW.blob], "the reader's cache has the file of before"


def test_nothing_to_change_changes_nothing(options: Options, write: Write) -> None:
    file = write("mine", f"10.0.0.7 {NEW.line}")
    before = file.stat()
    assert replace(HOST, options, [NEW, NEW]).files == ()
    assert os.path.samestat(file.stat(), before)


def test_a_file_that_was_missing_is_only_the_users_to_read(tmp_path: Path, options: Options) -> None:
    done = replace(HOST, options, [NEW])
    assert (done.before, done.files) == ((), (tmp_path / "mine",))
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config", "etc", "mine"]


def test_mode_and_link_are_kept(tmp_path: Path, options: Options, write: Write) -> None:
    real = write("dotfiles", f"10.0.0.7 {OLD.line}")
    real.chmod(0o640)
    (tmp_path / "mine").symlink_to(real)
    replace(HOST, options, [NEW])
    assert (tmp_path / "mine").is_symlink()
    assert real.read_text() == f"10.0.0.7 {NEW.line}\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_old_key_leaves_all_files_and_the_first_gets_the_new(options: Options, write: Write) -> None:
    first, second = write("mine", f"10.0.0.7 {OLD.line}"), write("mine2", f"10.0.0.7 {OTHER.line}", f"x {OLD.line}")
    assert replace(HOST, options, [NEW]).files == (first, second)
    assert (first.read_text(), second.read_text()) == (f"10.0.0.7 {NEW.line}\n", f"x {OLD.line}\n")


def test_forgetting_takes_the_old_key_out_and_makes_no_file(tmp_path: Path, options: Options, write: Write) -> None:
    second = write("mine2", f"10.0.0.7 {OLD.line}")
    assert replace(HOST, options, []) == Replaced("gpu07", _entries(second, OLD.line), (), (second,))
    assert second.read_text() == ""
    assert not (tmp_path / "mine").exists()
    assert replace(HOST, options, []).files == ()


def _entries(path: Path, line: str) -> tuple[hostkeys.KnownHost, ...]:
    return (hostkeys.KnownHost(path, 1, "", "10.0.0.7", *line.split()),)


def test_another_port_is_another_server(options: Options, write: Write) -> None:
    file = write("mine", f"10.0.0.7 {OLD.line}", f"[10.0.0.7]:2222 {OLD.line}")
    replace(Host("gpu07", address="10.0.0.7", port=2222), options, [NEW])
    assert file.read_text() == f"10.0.0.7 {OLD.line}\n[10.0.0.7]:2222 {NEW.line}\n"


def test_line_without_the_port_is_replaced(options: Options, write: Write) -> None:
    host = Host("gpu07", address="10.0.0.7", port=2222)
    file = write("mine", f"10.0.0.7 {OLD.line}")
    with pytest.raises(
        Refused, match=r"mine:1 has the key .* for 10\.0\.0\.7\. .*\[10\.0\.0\.7\]:2222 has this key too"
    ):
        replace(host, options, [])
    assert file.read_text() == f"10.0.0.7 {OLD.line}\n"
    replace(host, options, [NEW])
    assert [entry.blob for entry in known(host, options)] == [NEW.blob]


@pytest.mark.parametrize("keys", [(NEW,), ()])
def test_the_systems_file_is_never_written_and_its_line_is_named(options: Options, write: Write, keys: tuple) -> None:
    mine, system = write("mine", f"10.0.0.7 {OLD.line}"), write("etc/all", f"# all\n10.0.0.* {OLD.line}")
    with pytest.raises(Refused, match=r"etc/all:2 has the key ssh-ed25519 SHA256:.*Nothing was changed"):
        replace(HOST, options, keys)
    assert mine.read_text() == f"10.0.0.7 {OLD.line}\n"
    assert system.read_text() == f"# all\n10.0.0.* {OLD.line}\n"


def test_the_systems_file_may_have_the_new_key(options: Options, write: Write) -> None:
    mine, _ = write("mine", f"10.0.0.7 {OLD.line}"), write("etc/all", f"10.0.0.7 {NEW.line}")
    assert replace(HOST, options, [NEW]).files == (mine,)


def test_a_pattern_in_any_file_is_named_before_anything_is_written(options: Options, write: Write) -> None:
    mine, second = write("mine", f"10.0.0.7 {OLD.line}"), write("mine2", f"10.0.0.* {OLD.line}")
    with pytest.raises(Refused, match=r"mine2:1 has the key .* for 10\.0\.0\.7 and others \(10\.0\.0\.\*\)"):
        replace(HOST, options, [NEW])
    assert (mine.read_text(), second.read_text()) == (f"10.0.0.7 {OLD.line}\n", f"10.0.0.* {OLD.line}\n")


@pytest.mark.parametrize("port", [None, 2222])
@pytest.mark.parametrize("file", ["mine", "mine2", "etc/all"])
@pytest.mark.parametrize("names", ["10.0.0.7", "*"])
def test_a_revoked_key_is_never_trusted(
    options: Options, write: Write, file: str, names: str, port: int | None
) -> None:
    host = Host("gpu07", address="10.0.0.7", port=port)
    path = write(file, f"@revoked {names} {NEW.line}")
    for do in (replace, refuse_revoked):
        with pytest.raises(Refused, match=rf"{NEW.fingerprint.replace('+', '.')} is revoked by .*{file}:1"):
            do(host, options, [OTHER, NEW])
    assert path.read_text() == f"@revoked {names} {NEW.line}\n"
    refuse_revoked(host, options, [OTHER])


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_ordinary_file_is_not_replaced_by_one(tmp_path: Path, kind: str) -> None:
    """Users often set ``/dev/null``; the test uses a stand-in to protect the machine's own."""
    path = tmp_path / kind
    if kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    before = path.stat()
    with pytest.raises(Refused, match=rf"{path} is not a regular file .*hostwright_known_hosts"):
        replace(Host("gpu07", known_hosts=str(path)), Options(ssh_config=Path(os.devnull)), [NEW])
    assert os.path.samestat(path.stat(), before)


def test_without_a_file_of_ones_own_there_is_nowhere_to_write(tmp_path: Path, options: Options) -> None:
    with pytest.raises(Refused, match=r"no known_hosts file of your own, only .*etc/other; set one"):
        replace(Host("gpu07", known_hosts=str(tmp_path / "etc" / "other")), options, [NEW])


def test_an_address_that_is_no_name_is_refused(options: Options) -> None:
    with pytest.raises(Unreachable, match="is not a valid SSH host or user name"):
        replace(Host("gpu07", address="a b"), options, [NEW])
    with pytest.raises(Refused, match="is not a valid name in known_hosts"):
        replace(Host("gpu07", address="gpu*"), options, [NEW])


def test_a_failing_rename_leaves_the_file_and_nothing_beside_it(
    options: Options, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write("mine", f"10.0.0.7 {OLD.line}")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HostError, match=r"No space left on device"):
        replace(HOST, options, [NEW])
    assert file.read_text() == f"10.0.0.7 {OLD.line}\n"
    assert sorted(path.name for path in file.parent.iterdir()) == ["config", "etc", "mine"]


def test_what_ssh_appends_meanwhile_is_not_lost(
    options: Options, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ssh appends without a lock, between our read and our rename."""
    file = write("mine", f"10.0.0.7 {OLD.line}")
    sync, appended = os.fsync, []

    def slow(descriptor: int) -> None:
        sync(descriptor)
        if not appended:
            appended.append(True)
            with file.open("a") as by_ssh:
                by_ssh.write(f"gpu09 {OTHER.line}\n")

    monkeypatch.setattr(os, "fsync", slow)
    replace(HOST, options, [NEW])
    assert file.read_text() == f"gpu09 {OTHER.line}\n10.0.0.7 {NEW.line}\n"


def test_many_at_once_lose_no_line_of_each_other(options: Options, write: Write) -> None:
    """A process that waited for the lock of a replaced file locks the new file."""
    file = write("mine", *(f"10.0.1.{n} {OLD.line}" for n in range(8)))
    errors: list[Exception] = []

    def one(number: int) -> None:
        try:
            replace(Host(f"gpu{number}", address=f"10.0.1.{number}"), options, [NEW])
            hostkeys.remember(file, f"10.0.2.{number}", OTHER.key_type, OTHER.blob)
        except (OSError, HostError) as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    wanted = {f"10.0.1.{n} {NEW.line}" for n in range(8)} | {f"10.0.2.{n} {OTHER.line}" for n in range(8)}
    assert (errors, set(file.read_text().splitlines())) == ([], wanted)


def test_ssh_keygen_finds_what_was_written(options: Options, write: Write) -> None:
    file = write("mine", f"10.0.0.7 {OLD.line}")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", file], check=True, capture_output=True)
    replace(HOST, options, [NEW])
    found = subprocess.run(["ssh-keygen", "-F", "10.0.0.7", "-f", file], check=True, capture_output=True, text=True)
    lines = [line for line in found.stdout.splitlines() if not line.startswith("#")]
    assert [line.split(None, 1)[1] for line in lines] == [NEW.line]
    assert "10.0.0.7" not in file.read_text()
