"""Start of an SSH box: its sessions have the container's environment."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from hostwright.plan.host.jobs import ERROR
from hostwright.plan.model import Change
from hostwright.plan.testing import facts_for
from hostwright.standard.roles.workspaces.desired import BOX
from hostwright.standard.roles.workspaces.states.images import ImageBuilt
from tests.unit.roles.workspaces.spaces import states
from tests.unit.support.known import KNOWN
from tests.unit.support.stubs import stub

ENVIRONMENT = {
    "PATH": "/opt/conda/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "WORDS": "two words, 100% and a $dollar and 'one'",
    "EMPTY": "",
    "QUOTED": 'a "quote"',
    "HASHED": "it's #1, $HOME",
    "dotted.name": "a#b",
    "SLASHED": r"a\b",
    "LINES": "one\ntwo=2",
    "HOME": "/root",
    "HOSTNAME": "3f1c9a",
}


def start(folder: Path, environment: Mapping[str, str] = ENVIRONMENT, *, newer: bool = False) -> str:
    """Run the box's program with a stand-in for sshd that shows its file; ``newer``: OpenSSH 9.8."""
    image = next(state for state in states() if isinstance(state, ImageBuilt))
    text = dict(image.files)["start"]
    (folder / "sshd_config").write_text("Port 2222\nUsePAM no\n")
    text = text.replace("/etc/ssh/hostwright_sshd_config", f"{folder}/sshd_config")
    (folder / "box").mkdir(exist_ok=True)
    text = text.replace(BOX, f"{folder}/box")
    text = text.replace("/usr/sbin/sshd -t", "/bin/true" if newer else "/bin/false")
    text = text.replace("/usr/sbin/sshd -D -e -f", "/bin/cat")
    assert "/usr/sbin/sshd" not in text
    done = subprocess.run(("sh", "-c", text), env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_sessions_have_the_containers_environment_in_one_line(tmp_path: Path) -> None:
    """baseimage-docker#54: the image's LANG was missing; sshd reads only the first SetEnv."""
    first, *rest = start(tmp_path).splitlines()
    keyword, _, values = first.partition(" ")
    assert keyword == "SetEnv"
    assert rest == ["Port 2222", "UsePAM no"]
    kept = {name: ENVIRONMENT[name] for name in ("PATH", "LANG", "WORDS", "EMPTY")}
    found = dict(word.partition("=")[::2] for word in values.strip('"').split('" "'))
    kept["PATH"] += ":/workspace/.local/bin"  # OpenShell#149: programs of pip install --user were not found
    assert {name: found.get(name) for name in kept} == kept
    assert not {"HOME", "HOSTNAME", "QUOTED", "SLASHED", "HASHED", "LINES", "two"} & set(found)


def test_nobody_is_shut_out_for_the_refused_logins_of_others(tmp_path: Path) -> None:
    """borgbackupserver#470: all logins come from one address. sshd before 9.8 refuses unknown options."""
    assert start(tmp_path, newer=True).splitlines()[-1] == "PerSourcePenalties no"
    assert "PerSource" not in start(tmp_path)


def test_a_real_sshd_takes_the_whole_of_its_configuration(tmp_path: Path) -> None:
    image = next(state for state in states() if isinstance(state, ImageBuilt))
    key = tmp_path / "key"
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)), check=True)
    text = dict(image.files)["sshd_config"].replace("/run/hostwright/host_key", str(key))
    (tmp_path / "config").write_text(text)
    Path("/run/sshd").mkdir(exist_ok=True)
    words = ("/usr/sbin/sshd", "-T", "-f", str(tmp_path / "config"))
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {"usepam no", "passwordauthentication no", "maxstartups 100:30:100", "loglevel VERBOSE"} <= set(shown)


def test_what_sshd_cannot_take_is_in_each_shell_all_the_same(tmp_path: Path) -> None:
    """OpenSSH 8.4 reads a # in SetEnv as a comment, and ignores the rest."""
    start(tmp_path)
    script = f'. {tmp_path}/box/profile; printf "%s\\n" "$QUOTED" "$SLASHED" "$HASHED" "${{LINES:-}}"'
    done = subprocess.run(("sh", "-euc", script), env={"PATH": "/bin"}, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ['a "quote"', r"a\b", "it's #1, $HOME", ""]


def test_a_real_sshd_takes_the_line(tmp_path: Path) -> None:
    text = start(tmp_path)
    key = tmp_path / "key"
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)), check=True)
    (tmp_path / "config").write_text(f"{text}HostKey {key}\n")
    words = ("/usr/sbin/sshd", "-T", "-f", str(tmp_path / "config"))
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ}, check=False)
    if done.returncode and "privilege separation" in done.stderr.lower():
        Path("/run/sshd").mkdir(exist_ok=True)
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = [line for line in done.stdout.splitlines() if line.startswith("setenv ")]
    assert f"setenv WORDS={ENVIRONMENT['WORDS']}" in shown
    assert f"setenv LANG={ENVIRONMENT['LANG']}" in shown


@pytest.mark.parametrize("path", ["/opt/conda/bin:/usr/bin:/bin", "/data/it's a $(tool):/usr/bin:/bin"])
def test_a_login_shell_has_the_path_of_the_container_and_not_of_its_image(tmp_path: Path, path: str) -> None:
    """Debian's /etc/profile resets PATH; the workspace's environment overrides the image's."""
    start(tmp_path, {**ENVIRONMENT, "PATH": path, "LD_LIBRARY_PATH": "/data/lib"})
    read = f'PATH=/usr/bin LD_LIBRARY_PATH=/data/lib; . {tmp_path}/box/profile; echo "$PATH $LD_LIBRARY_PATH"'
    done = subprocess.run(("sh", "-euc", read), capture_output=True, text=True, check=True)
    assert done.stdout == f"{path}:/workspace/.local/bin /data/lib\n"


def test_what_an_image_prints_to_people_is_not_printed_to_programs(tmp_path: Path) -> None:
    """tensorflow#30495: TensorFlow's /etc/bash.bashrc prints its logo, also for scp and rsync."""
    image = next(state for state in states() if isinstance(state, ImageBuilt))
    lines = dict(image.files)["Dockerfile"].splitlines()
    start = next(number for number, line in enumerate(lines) if "/etc/bash.bashrc" in line and line.startswith(" "))
    quiet = "\n".join(lines[start:]).replace(" && ", "", 1)
    file, profile = tmp_path / "bash.bashrc", tmp_path / "hostwright.sh"
    for inside, here in (("/etc/bash.bashrc", file), ("/etc/profile.d", tmp_path), ("/tmp/bashrc", tmp_path / "new")):  # noqa: S108
        quiet = quiet.replace(inside, str(here))
    profile.write_text("WHO=program\n")

    def printed(*words: str) -> str:
        return subprocess.run(("bash", *words), capture_output=True, text=True, check=True, env={"PATH": "/bin"}).stdout

    for before, logo in (("", ""), ("echo LOGO\n", "LOGO\n")):
        if before:
            file.write_text(before)
        subprocess.run(("sh", "-euc", quiet), check=True)
        assert printed("-c", f". {file}; echo $WHO") == "program\n"
        assert printed("--rcfile", str(file), "-ic", "echo x$WHO") == f"{logo}x\n", (
            "a shell below keeps what it was given"
        )


@pytest.mark.parametrize("usable", [False, True])
def test_a_build_that_fails_for_want_of_a_name_server_says_so(tmp_path: Path, *, usable: bool) -> None:
    """moby#49665: apt's last line only reports that a package has no installation candidate."""
    image = next(state for state in states() if isinstance(state, ImageBuilt))
    plan = image.plan(facts_for(image, {"docker ps -aq": f"image sha256:1 {image.base} x\nend\n"}))
    assert isinstance(plan, Change)
    script = plan.steps[0].script.replace("/etc/docker", str(tmp_path)).replace("/run/docker.pid", f"{tmp_path}/pid")
    script = script.replace("/etc/resolv.conf", f"{tmp_path}/resolv.conf")
    (tmp_path / "resolv.conf").write_text(f"nameserver {'10.0.0.2' if usable else '127.0.0.1'}\n")
    docker = """case $1 in build)
  echo "Temporary failure resolving 'archive.example'" >&2
  echo "E: Package 'openssh-server' has no installation candidate" >&2
  exit 1 ;;
esac"""
    done = subprocess.run(
        ("sh", "-euc", script), env=stub(tmp_path, docker=docker, ss=":"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    told = [line.removeprefix(ERROR) for line in done.stdout.splitlines() if line.startswith(ERROR)]
    if usable:
        assert told == []
        return
    assert told == [
        f"image {image.tag} could not be built, as this host's containers have no usable name server: "
        f"{tmp_path}/resolv.conf names only 127.0.0.1, where nothing listens on this host"
    ]
    named = KNOWN.named(done.stderr + done.stdout)
    assert named is not None
    assert named[0] == "container-name-servers"
