"""Which of apt's lists decide whether packages are installed, with the real apt on a root of its own.

Each case is one that other people met: the messages are apt's, the right answers were written down before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from hostwright.resources.packages.packages import install_script
from tests.lab.sshd import free_port
from tests.unit.support.aptroot import AptRoot, Key, deb, in_days, installed, repository, served
from tests.unit.support.shell import program, run

ERROR = "hostwright: error: "
NOTE = "hostwright: note: "


@pytest.fixture
def good(apt: AptRoot, tmp_path: Path) -> Path:
    """A repository with ``tool``, which the host reads."""
    folder = repository(tmp_path / "good", deb(tmp_path, "tool"))
    apt.source(f"deb [trusted=yes] file:{folder} stable main\n", "good.list")
    return folder


@pytest.fixture
def expired(tmp_path: Path) -> Iterator[Key]:
    key = Key(tmp_path / "expired", expired=True)
    yield key
    key.close()


def install(apt: AptRoot, *packages: str, source: str = "", reinstall: bool = False) -> CompletedProcess[bytes]:
    script = install_script(packages or ("tool",), source=source, reinstall=reinstall)
    return run(script.replace("Acquire::Retries=3", "Acquire::Retries=0"), path=apt.root.parent / "bin")


def lines(done: CompletedProcess[bytes], prefix: str) -> list[str]:
    return [line.removeprefix(prefix) for line in done.stdout.decode().splitlines() if line.startswith(prefix)]


# --- a stranger's repository is broken, and a note says so


def stranger(apt: AptRoot, url: str, options: str = "", suite: str = "stable") -> None:
    apt.source(f"# theirs\ndeb {options} {url} {suite} main\n", "stranger.list")


def noted(apt: AptRoot, done: CompletedProcess[bytes], cause: str) -> None:
    assert done.returncode == 0, done.stdout.decode()
    assert apt.unpacked == ["tool"]
    (note,) = lines(done, NOTE)
    assert re.search(rf"could not fetch: \S+ stable \({apt.etc}/sources.list.d/stranger.list:2\): .*{cause}", note)


def test_a_strangers_expired_key(apt: AptRoot, good: Path, expired: Key, tmp_path: Path) -> None:
    theirs = repository(tmp_path / "theirs", deb(tmp_path, "other"), signer=expired)
    stranger(apt, f"file:{theirs}", f"[signed-by={expired.ring}]")
    noted(apt, install(apt), "EXPKEYSIG")


def test_a_strangers_missing_key(apt: AptRoot, good: Path, tmp_path: Path) -> None:
    key = Key(tmp_path / "key")
    theirs = repository(tmp_path / "theirs", signer=key)
    key.close()
    stranger(apt, f"file:{theirs}")
    noted(apt, install(apt), "NO_PUBKEY")


@pytest.mark.parametrize("status", [403, 404, 407, 470, 500, 502, 503])
def test_a_strangers_server_that_refuses(apt: AptRoot, good: Path, tmp_path: Path, status: int) -> None:
    with served(tmp_path, status) as server:
        stranger(apt, server.url)
        noted(apt, install(apt), rf"{status}  ")


def test_a_strangers_release_that_is_missing(apt: AptRoot, good: Path, tmp_path: Path) -> None:
    stranger(apt, f"file:{tmp_path}/none")
    noted(apt, install(apt), "does not have a Release file")


@pytest.mark.parametrize("suite", ["/", "./", "x/"])
def test_a_strangers_local_repository_that_is_gone(apt: AptRoot, good: Path, tmp_path: Path, suite: str) -> None:
    """NVIDIA's packages of repositories leave the list when they are removed, with the suite ``/``."""
    gone = tmp_path / "cuda-repo-10-1-local-10.1.105-418.39"
    apt.source(f"deb file://{gone} {suite}\n", "cuda.list")
    done = install(apt)
    assert (done.returncode, apt.unpacked) == (0, ["tool"]), done.stdout.decode()
    (note,) = lines(done, NOTE)
    assert f"could not fetch: file:{gone} {suite} ({apt.etc}/sources.list.d/cuda.list:1): File not found" in note


def test_a_strangers_release_of_tomorrow(apt: AptRoot, good: Path, tmp_path: Path) -> None:
    stranger(apt, f"file:{repository(tmp_path / 'theirs', Date=in_days(2))}", "[trusted=yes]")
    noted(apt, install(apt), "is not valid yet")


def test_a_strangers_release_of_last_year(apt: AptRoot, good: Path, tmp_path: Path) -> None:
    theirs = repository(tmp_path / "theirs", Date=in_days(-300), Valid_Until=in_days(-290))
    stranger(apt, f"file:{theirs}", "[trusted=yes]")
    noted(apt, install(apt), "is expired")


def test_a_strangers_repository_of_another_name(apt: AptRoot, good: Path, tmp_path: Path) -> None:
    theirs = repository(tmp_path / "theirs", deb(tmp_path, "other"))
    stranger(apt, f"file:{theirs}", "[trusted=yes]")
    assert install(apt, "other").returncode == 0
    repository(theirs, Label="Other Lab", Origin="Elsewhere", Version="2")
    apt.calls.write_text("")
    (apt.root / "var/lib/apt/lists" / next(apt.root.glob("var/lib/apt/lists/*good*Packages")).name).unlink()
    noted(apt, install(apt), "changed its 'Origin' value")


def test_a_strangers_lists_that_are_not_what_its_release_says(apt: AptRoot, good: Path, tmp_path: Path) -> None:
    theirs = repository(tmp_path / "theirs", deb(tmp_path, "other"))
    packages = theirs / "dists/stable/main/binary-amd64/Packages"
    packages.write_text(packages.read_text().replace("other", "othre"))
    with served(theirs) as server:
        stranger(apt, server.url, "[trusted=yes]")
        noted(apt, install(apt), "Hash Sum mismatch")


def test_a_strangers_port_with_nobody_behind(apt: AptRoot, good: Path) -> None:
    stranger(apt, f"http://127.0.0.1:{free_port()}")
    noted(apt, install(apt), "Connection refused")


def test_a_strangers_server_that_is_silent(apt: AptRoot, good: Path, tmp_path: Path) -> None:
    with served(tmp_path, hangs=True) as server:
        stranger(apt, server.url)
        noted(apt, install(apt), "Connection (failed|timed out)")


def test_a_strangers_certificate(apt: AptRoot, good: Path, tmp_path: Path) -> None:
    with served(tmp_path) as server:  # speaks no TLS at all
        stranger(apt, server.url.replace("http:", "https:"))
        noted(apt, install(apt), "Could not handshake")


def test_a_strangers_deb822_source_is_named_by_file_and_line(apt: AptRoot, good: Path, tmp_path: Path) -> None:
    text = "Types: deb\nURIs: {}\nSuites: stable\nComponents: main\nTrusted: yes\n\n"
    apt.source(text.format(f"file:{good}") + text.format(f"file:{tmp_path}/none"), "two.sources")
    done = install(apt)
    assert done.returncode == 0
    assert [f"{apt.etc}/sources.list.d/two.sources, entry 2)" in note for note in lines(done, NOTE)] == [True]


@pytest.mark.parametrize("login", ["ada:hunter2", "ada@example.org:hunter2"])
def test_a_password_in_an_address_is_not_repeated(apt: AptRoot, good: Path, tmp_path: Path, login: str) -> None:
    with served(tmp_path, 403) as server:
        stranger(apt, server.url.replace("//", f"//{login}@"))
        done = install(apt)
    assert lines(done, NOTE)
    assert b"hunter2" not in done.stdout + done.stderr


def test_lists_that_are_there_need_not_be_fetched(apt: AptRoot, good: Path, tmp_path: Path) -> None:
    assert install(apt).returncode == 0
    with served(tmp_path, 503) as server:
        stranger(apt, server.url)
        assert install(apt).returncode == 0
        assert server.asked == []


# --- a repository that is needed is broken


def refused(done: CompletedProcess[bytes], cause: str) -> str:
    assert done.returncode == 100
    (error,) = lines(done, ERROR)
    assert error.startswith("apt has no list with tool, and could not fetch ")
    assert re.search(cause, error)
    return error


def test_the_needed_repository_is_named_with_its_file_and_its_cause(apt: AptRoot, expired: Key, tmp_path: Path) -> None:
    ours = repository(tmp_path / "ours", deb(tmp_path, "tool"), signer=expired)
    path = apt.source(f"deb [signed-by={expired.ring}] file:{ours} stable main\n")
    error = refused(install(apt), "EXPKEYSIG")
    assert f"file:{ours} stable ({path}:1): " in error
    assert apt.unpacked == []


def test_a_source_that_must_know_the_packages_is_the_only_one_that_is_blamed(apt: AptRoot, tmp_path: Path) -> None:
    stranger(apt, f"file:{tmp_path}/none")
    path = apt.source(f"deb file:{tmp_path}/ours stable main\n")
    assert f"file:{tmp_path}/ours stable ({path}:1): " in refused(install(apt, source=path), "does not have a Release")


def test_a_source_that_fails_now_and_whose_lists_are_there_is_a_note(
    apt: AptRoot, expired: Key, tmp_path: Path
) -> None:
    """apt itself goes on with the lists that it has, and ends with 0."""
    key = Key(tmp_path / "key")
    tool = deb(tmp_path, "tool")
    ours = repository(tmp_path / "ours", tool, signer=key)
    path = apt.source(f"deb [signed-by={key.ring}] file:{ours} stable main\n")
    assert install(apt, source=path).returncode == 0
    repository(ours, tool, signer=expired, Version="2")
    key.close()
    done = install(apt, source=path)
    assert done.returncode == 0
    assert ["NO_PUBKEY" in note for note in lines(done, NOTE)] == [True]


def test_without_network_apt_ends_with_0_and_that_is_seen(apt: AptRoot) -> None:
    """Network failures are warnings of ``apt-get update``, after which no package is known."""
    apt.source(f"deb http://127.0.0.1:{free_port()}/debian stable main\n")
    refused(install(apt), "Connection refused")


@pytest.mark.parametrize("where", ["configuration", "environment", "program"])
def test_a_dead_proxy_is_called_one(apt: AptRoot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str) -> None:
    proxy = f"http://ada:hunter2@127.0.0.1:{free_port()}"
    if where == "configuration":
        apt.configure(f'Acquire::http::Proxy "{proxy}";\n')
    elif where == "program":
        detect = program(tmp_path / "bin", "detect", f"echo {proxy}")
        apt.configure(f'Acquire::http::Proxy-Auto-Detect "{detect}";\n')
    else:
        monkeypatch.setenv("http_proxy", proxy)
    apt.source("deb http://mirror.example/debian stable main\n")
    error = refused(install(apt), r"the proxy 127\.0\.0\.1 does not answer: ")
    assert "hunter2" not in error


def test_sources_that_fail_for_one_cause_are_one_error(apt: AptRoot) -> None:
    apt.configure(f'Acquire::http::Proxy "http://127.0.0.1:{free_port()}";\n')
    path = apt.source("".join(f"deb http://mirror.example/{name} stable main\n" for name in ("a", "b", "c")))
    error = refused(install(apt), r"the proxy 127\.0\.0\.1 does not answer: ")
    names = ", ".join(f"http://mirror.example/{name} stable ({path}:{line})" for line, name in enumerate("abc", 1))
    assert f"could not fetch {names}: the proxy" in error


def test_a_proxy_that_wants_a_password_is_named(apt: AptRoot, tmp_path: Path) -> None:
    with served(tmp_path, 407) as server:
        apt.configure(f'Acquire::http::Proxy "{server.url}";\n')
        apt.source("deb http://mirror.example/debian stable main\n")
        refused(install(apt), "407  Proxy Authentication Required")


def test_archives_that_have_moved_are_found_by_new_lists(apt: AptRoot, good: Path, tmp_path: Path) -> None:
    """A mirror has only the newest version of a package: with lists of last month, its address is a 404."""
    assert install(apt).returncode == 0
    (good / "pool/tool_1_amd64.deb").unlink()
    repository(good, deb(tmp_path, "tool", "2"))
    assert install(apt).returncode == 0
    assert "tool_2_amd64.deb" in apt.calls.read_text()


def test_an_archive_that_is_nowhere_is_named(apt: AptRoot, good: Path) -> None:
    (good / "pool/tool_1_amd64.deb").unlink()
    done = install(apt)
    assert done.returncode == 100
    assert any("pool/tool_1_amd64.deb" in error for error in lines(done, ERROR))


def test_an_unknown_package_is_not_blamed_on_a_repository(apt: AptRoot, good: Path) -> None:
    done = install(apt, "tool", "no-such-tool")
    assert done.returncode == 100
    assert lines(done, ERROR) == []
    assert b"Unable to locate package no-such-tool" in done.stdout


def test_a_version_that_no_source_has_is_named_with_those_that_are_there(apt: AptRoot, good: Path) -> None:
    """As Debian 12's open module 535.309.01, beside which the role's own preferences keep apt from other versions."""
    (apt.etc / "preferences.d/ours").write_text("Package: tool\nPin: version *\nPin-Priority: -1\n")
    for rehearse in ("", "prepare", "offered"):
        done = run(install_script(("tool=2",), rehearse=rehearse), path=apt.root.parent / "bin")
        assert done.returncode == 100
        assert lines(done, ERROR) == ["no source of this host has tool 2: they have 1"]


def test_what_a_source_has_is_offered_whatever_it_needs_and_nothing_is_installed(apt: AptRoot, tmp_path: Path) -> None:
    ours = repository(tmp_path / "ours", deb(tmp_path, "tool", Depends="nowhere"))
    apt.source(f"deb [trusted=yes] file:{ours} stable main\n")
    (apt.etc / "preferences.d/ours").write_text("Package: tool\nPin: version *\nPin-Priority: -1\n")
    done = run(install_script(("tool=1",), rehearse="offered"), path=apt.root.parent / "bin")
    assert (done.returncode, apt.unpacked) == (0, []), done.stdout.decode()


def test_what_a_package_needs_and_no_source_has_is_named(apt: AptRoot, tmp_path: Path) -> None:
    needs = deb(tmp_path, "tool", Depends="lib (= 1) | lib-1", Recommends="other")
    ours = repository(tmp_path / "ours", needs, deb(tmp_path, "lib", "2"))
    apt.source(f"deb [trusted=yes] file:{ours} stable main\n")
    done = install(apt)
    assert done.returncode == 100
    (error,) = lines(done, ERROR)
    assert error.startswith("apt cannot install these together: tool : Depends: lib (= 1)")
    assert "lib-1" in error


def test_a_strangers_pin_is_named(apt: AptRoot, good: Path) -> None:
    pin = apt.etc / "preferences.d/theirs"
    pin.write_text('Package: *\nPin: origin ""\nPin-Priority: -1\n')
    done = install(apt)
    assert done.returncode == 100
    assert lines(done, ERROR) == [f"preferences keep apt from tool: {pin}"]


def test_another_architecture_that_a_repository_lacks_is_no_failure(apt: AptRoot, good: Path) -> None:
    apt.configure('APT::Architectures { "amd64"; "i386"; };\n')
    done = install(apt)
    assert done.returncode == 0
    assert lines(done, NOTE) == []


def test_a_source_that_is_there_twice_is_no_failure(apt: AptRoot, good: Path) -> None:
    stranger(apt, f"file:{good}", "[trusted=yes]")
    done = install(apt)
    assert (done.returncode, lines(done, NOTE)) == (0, [])


def test_what_is_held_and_clashes_is_not_blamed_on_a_repository(apt: AptRoot, tmp_path: Path) -> None:
    ours = repository(tmp_path / "ours", deb(tmp_path, "tool", Depends="lib (>= 2)"), deb(tmp_path, "lib", "1"))
    apt.source(f"deb [trusted=yes] file:{ours} stable main\n")
    apt.status(installed("lib", "1", "hold ok installed"))
    stranger(apt, f"file:{tmp_path}/none")
    done = install(apt)
    assert done.returncode == 100
    (told,) = lines(done, ERROR)
    assert told.startswith("tool cannot be installed beside what is on hold on this host: lib (apt-mark")
    assert b"unmet dependencies" in done.stdout


def test_a_package_is_reinstalled_from_lists_that_are_fetched_first(apt: AptRoot, good: Path, tmp_path: Path) -> None:
    """Without a list apt only says that it is not possible, and ends with 0."""
    apt.status(installed("tool"))
    stranger(apt, f"file:{tmp_path}/none")
    noted(apt, install(apt, "tool=1", reinstall=True), "does not have a Release file")


def test_a_package_that_no_list_has_is_not_passed_over_when_it_is_reinstalled(apt: AptRoot, tmp_path: Path) -> None:
    apt.status(installed("tool"))
    stranger(apt, f"file:{tmp_path}/none")
    refused(install(apt, "tool=1", reinstall=True), "does not have a Release file")
