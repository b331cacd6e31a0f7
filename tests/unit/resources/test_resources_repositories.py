"""Repositories: keys, lists and sources, as data and by what the commands do to real files."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path

import pytest

from hostwright.common.errors import InputError
from hostwright.plan.model import Answer, Change, Resource
from hostwright.resources.conditions import Differs
from hostwright.resources.packages.openpgp import fingerprints
from hostwright.resources.packages.packages import Debs
from hostwright.resources.packages.repositories import (
    DEARMOR,
    NO_SOURCE,
    AptSource,
    Keyring,
    LocalRepo,
    RepoDropped,
    SourcesDisabled,
    deb_version,
)
from hostwright.stack.stack import Artifact
from hostwright.stack.store.hostcache import host_path
from tests.unit.support.facts import Replies, changes_of
from tests.unit.support.keys import FINGERPRINT, RING, ring, shown
from tests.unit.support.shell import ask, program, run

DEB = Artifact(name="repo", file="cuda-repo_11.2.2-1_amd64.deb", sha256="a" * 64)
KEY = base64.b64encode(bytes(range(256)) * 4)
ARMORED = b"-----BEGIN PGP PUBLIC KEY BLOCK-----\nVersion: x\n\n" + b"\n".join(
    [KEY[i : i + 64] for i in range(0, len(KEY), 64)] + [b"=abcd", b"-----END PGP PUBLIC KEY BLOCK-----", b""]
)


def one(resource: Resource, replies: Replies) -> Change:
    changes = changes_of(resource, replies)
    assert len(changes) == 1
    return changes[0]


@pytest.mark.parametrize("file", ["cuda.deb", "a_b.deb", "a_b_c.tgz", "a_b_c_d.deb"])
def test_a_file_without_a_version_in_its_name_is_refused(file: str) -> None:
    with pytest.raises(InputError, match="not the name of a Debian package file"):
        deb_version(file)


REPO = LocalRepo("cuda-repo", DEB, "/var/cuda-repo/key.pub", "/etc/apt/sources.list.d/cuda.list")


def test_an_installed_repository_plans_nothing() -> None:
    assert changes_of(REPO, {"dpkg-query": "cuda-repo\t11.2.2-1\tii \n", "test -s": ""}) == ()


@pytest.mark.parametrize(
    ("table", "key", "have"),
    [
        ("", Answer(1, ""), "absent"),
        ("cuda-repo\t11.2.0-1\tii \n", Answer(0, ""), "11.2.0-1"),
        ("cuda-repo\t11.2.2-1\tii \n", Answer(1, ""), "11.2.2-1, damaged"),
        ("cuda-repo\t11.2.2-1\trc \n", Answer(1, ""), "absent"),
    ],
)
def test_a_repository_that_is_missing_old_or_damaged_comes_from_the_artifact(
    table: str, key: Answer, have: str
) -> None:
    change = one(REPO, {"dpkg-query": table, "test -s": key})
    assert (change.have, change.artifacts) == (have, ("repo",))
    assert f"/{'a' * 64}/cuda-repo_11.2.2-1_amd64.deb" in change.steps[0].script


def local_repo(folder: Path, dpkg: str) -> tuple[LocalRepo, str]:
    """A repository below ``folder`` whose ``dpkg`` runs this script, and the step that installs it."""
    program(folder / "bin", "dpkg", dpkg)
    repo = LocalRepo("cuda-repo", DEB, str(folder / "key"), str(folder / "cuda.list"))
    return repo, one(repo, {"dpkg-query": "", "test -s": Answer(1, "")}).steps[0].script


def test_dpkgs_lock_is_waited_for(tmp_path: Path) -> None:
    taken = "dpkg: error: dpkg frontend lock was locked by another process with pid 1"
    _, script = local_repo(tmp_path, f'[ -e {tmp_path}/free ] || {{ touch {tmp_path}/free; echo "{taken}"; exit 2; }}')
    assert run(script, path=tmp_path / "bin").returncode == 0


def test_what_dpkg_says_is_shown_when_it_fails(tmp_path: Path) -> None:
    _, script = local_repo(tmp_path, "echo 'not enough space'; exit 1")
    done = run(script, path=tmp_path / "bin")
    assert (done.returncode, done.stdout) == (1, b"not enough space\n")


def real_dpkg(folder: Path, *, conffile: bool) -> tuple[LocalRepo, str]:
    """The same with the real dpkg, its database below ``folder``, and a real package that brings a list of its own."""
    repo, script = local_repo(
        folder,
        f"PATH={os.environ['PATH']} exec /usr/bin/dpkg --log=/dev/null --admindir={folder}/database "
        '--force-not-root --force-script-chrootless --force-bad-path "$@"',
    )
    for name in ("info", "updates", "triggers"):
        (folder / "database" / name).mkdir(parents=True)
    (folder / "database/status").touch()
    package = folder / "package"
    lists = package / repo.list_file.lstrip("/")
    lists.parent.mkdir(parents=True)
    lists.write_text("deb file:///var/cuda-repo /\n")
    (lists.parent / "key").write_text("a key")
    control = package / "DEBIAN"
    control.mkdir(mode=0o755)
    (control / "control").write_text(
        "Package: cuda-repo\nVersion: 11.2.2-1\nArchitecture: all\nMaintainer: X <x@example.org>\nDescription: x\n"
    )
    if conffile:
        (control / "conffiles").write_text(f"{repo.list_file}\n")
    deb = folder / "repo.deb"
    subprocess.run(["dpkg-deb", "--build", str(package), str(deb)], check=True, capture_output=True)
    return repo, script.replace(host_path(DEB), str(deb))


@pytest.mark.parametrize("conffile", [False, True])
def test_the_packages_own_list_is_never_seen(tmp_path: Path, conffile: bool) -> None:
    repo, script = real_dpkg(tmp_path, conffile=conffile)
    done = run(script, path=tmp_path / "bin")
    assert done.returncode == 0, done.stdout
    assert Path(repo.key_file).read_text() == "a key"
    assert not Path(repo.list_file).exists()


@pytest.mark.parametrize("conffile", [False, True])
def test_the_list_with_the_key_survives_when_the_package_is_installed_again(tmp_path: Path, conffile: bool) -> None:
    repo, script = real_dpkg(tmp_path, conffile=conffile)
    for _ in range(2):
        Path(repo.list_file).write_text("deb [signed-by=/k] file:///var/cuda-repo /\n")
        done = run(script, path=tmp_path / "bin")
        assert done.returncode == 0, done.stdout
        assert Path(repo.list_file).read_text() == "deb [signed-by=/k] file:///var/cuda-repo /\n"
    assert sorted(path.name for path in tmp_path.glob("cuda.list*")) == ["cuda.list"]


TOOLKIT = Differs((Debs(("toolkit=1",)),))


def test_a_repository_is_dropped_when_nothing_needs_it_any_more() -> None:
    drop = RepoDropped("cuda-repo", TOOLKIT)
    assert changes_of(drop, {"dpkg-query": "toolkit\t1\thi \n"}) == ()
    change = one(drop, {"dpkg-query": "toolkit\t1\thi \ncuda-repo\t1\tii \n"})
    assert change.steps[0].script.endswith("purge cuda-repo")


def test_dropping_is_planned_together_with_what_needs_the_repository() -> None:
    assert one(RepoDropped("cuda-repo", TOOLKIT), {"dpkg-query": "bash\t1\tii \n"}).have == "installed by this plan"


@pytest.mark.parametrize("text", [ARMORED, ARMORED.replace(b"\n", b"\r\n"), base64.b64decode(KEY)])
def test_a_key_is_dearmored_without_gpg(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "key").write_bytes(text)
    assert run(f"{DEARMOR}\ndearmor {tmp_path}/key").stdout == base64.b64decode(KEY)


def keyring(folder: Path, artifact: str = "") -> Keyring:
    return Keyring(str(folder / "ring.gpg"), str(folder / "source.pub"), artifact=artifact)


def test_a_key_taken_over_is_found_again_and_another_one_is_not(tmp_path: Path) -> None:
    wanted = keyring(tmp_path)
    (tmp_path / "source.pub").write_bytes(ARMORED)
    # Only root can give a file to root: here it belongs to whoever runs the test.
    probe = wanted.probes()[0].script.replace("644:root", f"644:{tmp_path.owner()}")
    assert ask(probe)[0] == 1
    step = one(wanted, {}).steps[0].script.replace("-o root -g root ", "")
    assert run(step).returncode == 0
    assert ask(probe)[0] == 0
    (tmp_path / "ring.gpg").write_bytes(b"another")
    assert ask(probe)[0] == 1
    (tmp_path / "source.pub").unlink()
    assert ask(probe)[0] == NO_SOURCE


def test_key_without_a_source_is_trusted_only_from_an_artifact(tmp_path: Path) -> None:
    gone = {"dearmor": Answer(NO_SOURCE, "")}
    assert changes_of(keyring(tmp_path, artifact="key"), gone) == ()
    assert len(changes_of(keyring(tmp_path), gone)) == 1


@pytest.mark.parametrize("status", [0, NO_SOURCE, 1])
@pytest.mark.parametrize(
    ("held", "have"),
    [
        (shown("another"), fingerprints(ring("another"))[0]),
        (shown("vendor", "another"), ", ".join(fingerprints(ring("vendor") + ring("another")))),
        (shown("vendor")[:8] + "\n", "no OpenPGP key"),
        ("bm90IGEga2V5\n", "no OpenPGP key"),
        ("\u2026 ==\n", "no OpenPGP key"),
        ("", "absent"),
        ("mode 640 of root\n", "mode 640 of root, readable only by root"),
        ("directory of mode 750 of root\n", "directory of mode 750 of root, readable only by root"),
    ],
)
def test_the_key_on_the_host_is_compared_with_the_stacks_always(status: int, held: str, have: str) -> None:
    """Whether or not the stack's key file is on the host, and whatever that holds."""
    for artifact in ("", "key"):
        wanted = Keyring("/ring.gpg", "/source.pub", FINGERPRINT, artifact)
        change = one(wanted, {"dearmor": Answer(status, held)})
        assert (change.what, change.have, change.want) == ("key /ring.gpg", have, FINGERPRINT)
    assert (status == 1) == bool(changes_of(wanted, {"dearmor": Answer(status, RING)}))


def test_a_host_prints_the_key_that_it_has(tmp_path: Path) -> None:
    wanted = keyring(tmp_path)
    (tmp_path / "ring.gpg").write_bytes(ring("vendor"))
    (tmp_path / "ring.gpg").chmod(0o600)
    assert ask(wanted.probes()[0].script) == (1, RING), "another mode, and no source"


def test_a_key_with_another_fingerprint_is_never_taken_over(tmp_path: Path) -> None:
    program(tmp_path / "bin", "gpg", "echo 'pub:-:'; echo 'fpr:::::::::BBBB:'")
    program(tmp_path / "bin", "install", 'shift 6; : > "$2"')
    (tmp_path / "source.pub").write_bytes(ARMORED)
    wanted = Keyring(str(tmp_path / "ring.gpg"), str(tmp_path / "source.pub"), "AAAA")
    done = run(one(wanted, {}).steps[0].script, path=tmp_path / "bin")
    assert done.returncode == 1
    assert b"holds the key BBBB" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"bin", "source.pub"}


@pytest.mark.parametrize(("ends", "taken"), [("", True), ("4102444800", True), ("1577836800", False)])
def test_a_key_that_expired_is_never_taken_over(tmp_path: Path, ends: str, taken: bool) -> None:
    """Nothing that it signs is trusted, so that apt would fail later, when the rest has changed."""
    program(
        tmp_path / "bin", "gpg", f"echo 'pub:e:4096:1:A4B469963BF863CC:1500000000:{ends}::-:'; echo 'fpr:::::::::AAAA:'"
    )
    program(tmp_path / "bin", "install", 'shift 6; : > "$2"')
    (tmp_path / "source.pub").write_bytes(ARMORED)
    wanted = Keyring(str(tmp_path / "ring.gpg"), str(tmp_path / "source.pub"), "AAAA")
    done = run(one(wanted, {}).steps[0].script, path=tmp_path / "bin")
    assert (done.returncode == 0) == taken, done.stderr
    assert (b"the key AAAA in" in done.stdout and b"expired on 2020-01-01" in done.stdout) == (not taken)
    assert (tmp_path / "ring.gpg").exists() == taken


def test_a_source_names_its_key_and_the_hosts_distribution() -> None:
    source = AptSource("/l", "https://a/{distribution}", "{codename}", "/k.gpg", ("stable",))
    change = one(source, {"os-release": 'ID=debian\nVERSION_CODENAME="bullseye"\n'})
    assert "+deb [signed-by=/k.gpg] https://a/debian bullseye stable" in change.diff
    by_release = AptSource("/l", "https://a/{distribution}{release}/x86_64", "/", "/k.gpg")
    change = one(by_release, {"os-release": 'ID=ubuntu\nVERSION_ID="24.04"\n'})
    assert "+deb [signed-by=/k.gpg] https://a/ubuntu2404/x86_64 /" in change.diff


NETWORK = "developer.download.nvidia.com/compute/cuda/repos"
OTHERS = SourcesDisabled((NETWORK, "/var/cuda-repo"), "one source", keep="/etc/apt/sources.list.d/ours.list")


def test_only_lines_that_apt_reads_count() -> None:
    found = "\n".join(
        [
            "/etc/apt/sources.list.d/ours.list:deb [signed-by=/k] file:///var/cuda-repo /",
            f"/etc/apt/sources.list:# deb https://{NETWORK}/ubuntu2004/x86_64 /",
            f"/etc/apt/sources.list.d/old.list.save:deb https://{NETWORK}/ubuntu2004/x86_64 /",
        ]
    )
    assert changes_of(OTHERS, {"grep": found}) == ()
    assert one(OTHERS, {"grep": f"/etc/apt/sources.list:deb https://{NETWORK}/x /"}).want == "not read (one source)"


def test_lines_become_comments_and_stanzas_are_not_enabled(tmp_path: Path) -> None:
    line = f"deb [arch=amd64] https://{NETWORK}/ubuntu2004/x86_64 /"
    (tmp_path / "a.list").write_text(f"deb http://archive.example/debian bullseye main\n{line}\n")
    (tmp_path / "b.sources").write_text(f"Types: deb\nURIs: https://{NETWORK}/x\n")
    found = f"{tmp_path}/a.list:{line}\n{tmp_path}/b.sources:URIs: https://{NETWORK}/x\n"
    script = one(OTHERS, {"grep": found}).steps[0].script
    assert run(script).returncode == 0
    assert (tmp_path / "a.list").read_text().splitlines() == [
        "deb http://archive.example/debian bullseye main",
        f"# disabled by hostwright: {line}",
    ]
    assert (tmp_path / "b.sources").read_text().splitlines() == [
        "Types: deb",
        f"URIs: https://{NETWORK}/x",
        "# disabled by hostwright: ",
        "Enabled: no",
    ]
