"""Sources at whose address there is no repository, and programs that name apt's proxy, are seen before apt fails.

Reports: tong-hao/tech-log#1, NVIDIA/nvidia-container-toolkit#207 and #402, strob/gentle#243, omacom/omakub#190,
ansible-community/ppa#89, debops/debops-tools#193, community-scripts/ProxmoxVE#6368, mvo5/squid-deb-proxy#8,
hastmu/apt-proxy-detect#13. apt is the real one, its repositories are directories or on 127.0.0.1.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.standard.roles.base.failures.trust import PROXIES, RELEASES, RENAMED
from tests.unit.support.aptroot import AptRoot, Key, Server, deb, environment, in_days, repository, served
from tests.unit.support.auditcontexts import evidence

pytestmark = pytest.mark.skipif(shutil.which("apt-get") is None, reason="this machine has no apt")
RULE = "repository-without-release"


@pytest.fixture
def apt(tmp_path: Path) -> AptRoot:
    return AptRoot(tmp_path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """One with a good repository: ``/good``."""
    repository(tmp_path / "served/good", deb(tmp_path, "tool"))
    with served(tmp_path / "served") as answers:
        yield answers


def run(apt: AptRoot, script: str) -> str:
    env = {name: value for name, value in environment(apt).items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(["/bin/sh"], input=script, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def missing(apt: AptRoot) -> list[str]:
    """What doctor says of the sources of this root."""
    return [
        line.replace(f"{apt.etc}/sources.list.d/", "") for line in evidence(RULE, {RELEASES: run(apt, RELEASES.script)})
    ]


def update(apt: AptRoot) -> None:
    run(apt, "apt-get -q -o Acquire::Retries=0 update >/dev/null 2>&1; exit 0")


@pytest.mark.parametrize("updated", [False, True])
def test_a_strangers_repository_that_is_none_is_named_with_its_line(
    apt: AptRoot, server: Server, *, updated: bool
) -> None:
    apt.source(
        f"deb [trusted=yes] {server.url}/good stable main\n\n# gone\ndeb {server.url}/none bionic main\n"
        f"deb {server.url}/stable/ubuntu18.04/$(ARCH) /\ndeb-src {server.url}/none bionic main\n"
        f"deb-src {server.url}/sources stable main\n"
    )
    if updated:
        update(apt)
    assert missing(apt) == [
        f"a.list:4: {server.url}/none/ bionic: 404 Not Found",
        f"a.list:5: {server.url}/stable/ubuntu18.04/amd64/ /: 404 Not Found",
        f"a.list:7: {server.url}/sources/ stable: 404 Not Found",
    ]


def test_of_an_entry_in_deb822_the_suite_and_the_line_are_named(apt: AptRoot, server: Server) -> None:
    apt.source(
        f"# ours\n\nTypes: deb\nURIs: {server.url}/none\nSuites: x\nComponents: main\nEnabled: no\n\n"
        f"Types: deb deb-src\n# where\nURIs: {server.url}/good/\nSuites: stable\n noble\nComponents: main\n",
        "b.sources",
    )
    update(apt)
    assert missing(apt) == [f"b.sources:11: {server.url}/good/ noble: 404 Not Found"]


def test_a_directory_that_was_a_repository_and_is_gone_is_named(apt: AptRoot, tmp_path: Path) -> None:
    where = repository(tmp_path / "cuda-repo", deb(tmp_path, "tool"))
    apt.source(f"deb [signed-by=/k.gpg] file:{where} stable main\ndeb [trusted=yes] file://{where} stable other\n")
    update(apt)
    assert missing(apt) == []
    shutil.rmtree(where)
    apt.source(f"deb file:{where} stable main\ndeb file:/srv/nowhere ./\n")
    assert [line.partition(" (2: ")[0] for line in missing(apt)] == [
        f"a.list:1: file:{where}/ stable: File not found - {where}/dists/stable/Release",
        "a.list:2: file:/srv/nowhere/ ./: File not found - /srv/nowhere/./Release",
    ]


def test_a_directory_of_the_stacks_own_is_a_state_of_its_role() -> None:
    ours = "/etc/apt/sources.list.d/nvidia-container-toolkit.list:1"
    said = f"missing\t{ours}\tfile:/var/x/ /\tFile not found\nmissing\t{ours}\thttps://x.example/ /\t404 Not Found\n"
    assert evidence(RULE, {RELEASES: said}) == [f"{ours}: https://x.example/ /: 404 Not Found"]


def test_what_the_stack_turns_off_is_in_the_plan_already() -> None:
    former = "https://nvidia.github.io/nvidia-docker/ubuntu20.04/amd64/ /"
    said = f"missing\t/etc/apt/sources.list.d/nvidia-docker.list:1\t{former}\t404 Not Found\n"
    assert evidence(RULE, {RELEASES: said}) == []


def test_what_apt_does_not_read_or_takes_as_it_is_is_not_blamed(apt: AptRoot, server: Server, tmp_path: Path) -> None:
    flat = tmp_path / "flat"
    flat.mkdir()
    (flat / "Packages").touch()
    (tmp_path / "mirrors").write_text(f"{server.url}/good\n")
    apt.source(
        f"deb [trusted=yes] file:{flat} ./\ndeb cdrom:[Debian GNU/Linux 12 _Bookworm_]/ bookworm main\n"
        f"# deb {server.url}/none stable main\ndeb mirror+file:{tmp_path}/mirrors stable main\n"
        f"deb [arch=arm64] {server.url}/good stable main\n"
    )
    apt.source(f"deb {server.url}/none stable main\n", "a.list.save")
    assert missing(apt) == []
    update(apt)
    assert missing(apt) == []
    (apt.root / "var/lib/apt/lists").rename(apt.root / "elsewhere")
    apt.configure(f'Dir::State::lists "{apt.root}/elsewhere";')
    server.asked.clear()
    assert missing(apt) == []


def test_of_sources_that_apt_has_lists_of_nobody_is_asked(apt: AptRoot, server: Server) -> None:
    apt.source(f"deb [trusted=yes] {server.url}/good stable main\ndeb [trusted=yes] {server.url}/good ./\n")
    update(apt)
    server.asked.clear()
    assert missing(apt) == []
    assert not [path for path in server.asked if "stable" in path]


@pytest.mark.parametrize("status", [200, 401, 429, 500, 503])
def test_a_server_with_a_trouble_of_its_own_and_a_good_one_are_not_blamed(
    apt: AptRoot, tmp_path: Path, status: int
) -> None:
    repository(tmp_path / "r/HTTPS/x.example/apt", deb(tmp_path, "tool"))
    with served(tmp_path / "r", status) as cacher:
        apt.source(f"deb {cacher.url}/HTTPS/x.example/apt stable main\n")
        assert missing(apt) == []
        assert cacher.asked


def test_an_address_that_nobody_answers_at_is_not_said_to_be_without_a_release(apt: AptRoot) -> None:
    apt.source("deb http://127.0.0.1:9/a stable main\ndeb http://nowhere.invalid/a stable main\n")
    assert missing(apt) == []


def test_a_login_is_not_given_to_a_process_and_its_repository_not_judged_without_it(
    apt: AptRoot, server: Server
) -> None:
    apt.source(f"deb http://ada:hunter2@{server.url[7:]}/private stable main\n")
    assert missing(apt) == []
    assert server.asked == []


def test_a_configuration_that_wants_no_release_files_is_believed(apt: AptRoot, server: Server) -> None:
    apt.source(f"deb {server.url}/none stable main\n")
    apt.configure('Acquire::AllowInsecureRepositories "true";')
    assert missing(apt) == []


# --- programs that name the proxy


def proxies(apt: AptRoot, body: str, option: str = "Proxy-Auto-Detect", mode: int = 0o755, more: str = "") -> list[str]:
    """What doctor says where this program names the proxy for a source by http."""
    program = apt.root / "detect"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(mode)
    apt.source("deb http://mirror.invalid/apt stable main\ndeb https://mirror.invalid/apt stable main\n")
    apt.configure(f'Acquire::http::{option} "{program}";{more}')
    return [
        line.replace(str(program), "PROGRAM") for line in evidence("proxy-refuses", {PROXIES: run(apt, PROXIES.script)})
    ]


@pytest.mark.parametrize("option", ["Proxy-Auto-Detect", "ProxyAutoDetect"])
def test_a_dead_proxy_that_a_program_names_is_seen(apt: AptRoot, option: str) -> None:
    (line,) = proxies(apt, "echo http://ada:hunter2@127.0.0.1:9", option)
    assert line.startswith("the proxy http://127.0.0.1:9 does not answer: ")


def test_a_program_that_fails_is_named(apt: AptRoot) -> None:
    (line,) = proxies(apt, "echo Traceback >&2; echo http://127.0.0.1:9; exit 1", "ProxyAutoDetect")
    assert line.startswith("the program PROGRAM, which names apt's proxy, fails: Sub-process ")
    assert line.endswith("returned an error code (1)")


def test_a_program_that_hangs_is_named(apt: AptRoot) -> None:
    assert proxies(apt, "sleep 60") == [
        "the program PROGRAM, which names apt's proxy, fails: it did not end within 8 s"
    ]


@pytest.mark.parametrize("body", ["echo could not look up >&2; printf DIRECT", "true", "echo"])
def test_a_program_that_finds_no_proxy_is_fine(apt: AptRoot, body: str) -> None:
    assert proxies(apt, body) == []


def test_where_the_program_finds_none_the_proxy_that_is_set_counts_and_is_named_once(apt: AptRoot) -> None:
    (line,) = proxies(apt, "true", more=' Acquire::http::Proxy "http://127.0.0.1:9";')
    assert line.startswith("the proxy http://127.0.0.1:9 does not answer: ")


def test_what_is_set_for_http_counts_for_https(apt: AptRoot) -> None:
    apt.source("deb https://mirror.invalid/apt stable main\n")
    apt.configure('Acquire::http::Proxy "http://127.0.0.1:9";')
    (line,) = evidence("proxy-refuses", {PROXIES: run(apt, PROXIES.script)})
    assert line.startswith("the proxy http://127.0.0.1:9 does not answer: ")


def renamed(apt: AptRoot) -> list[str]:
    script = RENAMED.script.replace("/var/lib/apt/lists", f"{apt.root}/var/lib/apt/lists").replace(
        "/etc/apt/", f"{apt.etc}/"
    )
    return [line.replace(f"{apt.etc}/", "") for line in evidence("repository-changed", {RENAMED: run(apt, script)})]


def test_a_repository_that_calls_itself_otherwise_is_named_until_that_is_accepted(
    apt: AptRoot, server: Server, tmp_path: Path
) -> None:
    """mKeRix/ansible-playbooks#15: provisioning does not fail with it, as long as the other lists are enough."""
    key = Key(tmp_path / "key")
    try:
        place = tmp_path / "served/my_site"
        repository(place, deb(tmp_path, "other"), suite="bullseye", signer=key, Date=in_days(-1))
        apt.source(f"deb [signed-by={key.ring}] {server.url}/my_site bullseye main\n")
        update(apt)
        assert renamed(apt) == []
        repository(place, suite="bullseye", signer=key, Label="Site")
        update(apt)
        address = server.url.removeprefix("http://")
        assert renamed(apt) == [
            f"sources.list.d/a.list: {address}/my_site bullseye changed its 'Label' value from 'Lab' to 'Site'"
        ]
        run(apt, "apt-get -q --allow-releaseinfo-change update >/dev/null 2>&1")
        assert renamed(apt) == []
    finally:
        key.close()
