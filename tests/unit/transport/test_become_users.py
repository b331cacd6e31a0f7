"""Attacks by a host's users on the way to root, with their own programs, functions and variables, in the real shell."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hostwright.common.errors import BecomeError
from hostwright.common.quoting import sh
from hostwright.common.secret import Secret
from hostwright.transport import Output
from hostwright.transport.root import become
from hostwright.transport.root.become import BECOME_FAILED_STATUS, root_command, wrap
from tests.unit.support.mounts import in_namespace

NOBODY = 65534
TOOLS = ("sudo", "sh", "id", "tr", "find", "head", "stat", "cat", "env", "printf", "command", "test")
#: Variables that make programs run, load or write files of another user (as in needrestart's CVE-2024-48990 to 48992).
VARIABLES = (
    "BASH_ENV", "ENV", "CDPATH", "GREP_OPTIONS", "GIT_DIR", "GIT_SSH_COMMAND", "LD_LIBRARY_PATH", "PERL5LIB",
    "PERL5OPT", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "RUBYLIB", "RUBYOPT", "TAR_OPTIONS", "TMPDIR",
    "DOCKER_HOST", "APT_CONFIG", "PIP_INDEX_URL", "SYSTEMD_PAGER", "http_proxy", "IFS",
)  # fmt: skip


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory of the user below /tmp, because the user cannot enter pytest's; its programs leave a trace."""
    with tempfile.TemporaryDirectory(prefix="hostwright-users.") as name:
        Path(name).chmod(0o755)
        folder = Path(name, "home")
        (folder / "bin").mkdir(parents=True)
        for tool in TOOLS:
            path = folder / "bin" / tool
            path.write_text(f'#!/bin/bash\necho "{tool} $*" >>{folder}/ran; /bin/cat >>{folder}/ran\n')
            path.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        yield folder


def as_user(argv: list[str], data: bytes, env: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    return subprocess.run(argv, input=data, capture_output=True, env=env, cwd="/", check=False, timeout=30, **user)


@pytest.mark.parametrize("password", [None, Secret("hunter2")])
@pytest.mark.parametrize("shell", [["/bin/sh"], ["/bin/bash", "--posix"]], ids=["sh", "bash"])
def test_programs_first_on_the_users_path_are_never_run(home: Path, shell: list[str], password: Secret | None) -> None:
    """Whether the real sudo then allows the user is not tested."""
    functions = {f"BASH_FUNC_{tool}%%": f"() {{ echo {tool} >>{home}/ran; /bin/cat >>{home}/ran; }}" for tool in TOOLS}
    env = {"PATH": f"{home}/bin:/usr/bin:/bin", "HOME": str(home), **functions}
    done = as_user(shell, wrap("", "echo root", password=password), env)
    assert done.returncode == BECOME_FAILED_STATUS
    assert b"hostwright-become " in done.stderr and b"sudo" in done.stderr, "the real one's answer"
    assert b"not found" not in done.stderr
    assert not (home / "ran").exists(), (home / "ran").read_text()


def test_the_users_probes_find_the_systems_programs_first(home: Path) -> None:
    env = {"PATH": f"{home}/bin:/usr/bin:/bin", "HOME": str(home)}
    done = as_user(["/bin/sh"], wrap("command -v stat; head -c 1 /dev/null; echo $PATH", "", password=None), env)
    assert done.stdout.decode().split() == ["/usr/bin/stat", f"{become.PATH}:{env['PATH']}"]
    assert not (home / "ran").exists()


def test_a_stream_asks_no_sudo_of_the_users(home: Path) -> None:
    command, opening = root_command("cat", password=Secret("hunter2"))
    env = {"PATH": f"{home}/bin:/usr/bin:/bin", "HOME": str(home)}
    assert as_user(["/bin/sh", "-c", command], opening + b"data", env).returncode != 0
    assert not (home / "ran").exists()


@pytest.mark.parametrize(
    "spoil", ["group may write", "others may write", "a link to the user's", "not root's", "a pipe"]
)
def test_a_sudo_that_others_could_have_put_there_gets_nothing(
    home: Path, spoil: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sudo = home.parent / "sudo"
    if spoil == "a link to the user's":
        if os.geteuid() == 0:
            os.chown(home / "bin" / "sudo", NOBODY, NOBODY)
        sudo.symlink_to(home / "bin" / "sudo")
    elif spoil == "a pipe":
        os.mkfifo(sudo, 0o755)
    else:
        sudo.write_text((home / "bin" / "sudo").read_text())
        sudo.chmod({"group may write": 0o775, "others may write": 0o757}.get(spoil, 0o755))
        if spoil == "not root's" and os.geteuid() == 0:
            os.chown(sudo, NOBODY, NOBODY)
    monkeypatch.setattr(become, "SUDO_PLACES", (str(sudo),))
    done = as_user(["/bin/sh"], wrap("", "echo root", password=Secret("hunter2")), {"PATH": "/usr/bin:/bin"})
    assert done.returncode == BECOME_FAILED_STATUS
    assert done.stderr == b"hostwright-become no trusted sudo\n"
    assert not (home / "ran").exists()


ELSEWHERE = """\
mount -t tmpfs -o mode=0755 tmpfs /opt
mkdir -p /opt/sudo/bin
cd /opt/sudo/bin
printf '#!/bin/sh\\nwhile :; do case $1 in -p) shift 2;; -*) shift;; *) break;; esac; done; exec "$@"\\n' >sudo
chmod 755 sudo
%s
exec setpriv --reuid=65534 --regid=65534 --clear-groups /bin/sh
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
@pytest.mark.parametrize(
    ("spoil", "trusted"),
    [
        (":", True),
        ("chmod g+w /opt/sudo/bin/sudo", False),
        ("chmod o+w /opt/sudo/bin", False),
        ("chown 65534 /opt/sudo", False),
        ("chmod g+w /opt", False),
        ("mv /opt/sudo/bin /opt/real; ln -s /opt/real /opt/sudo/bin", False),
        ("mv /opt/sudo/bin/sudo /opt/sudo/real; ln -s /opt/sudo/real /opt/sudo/bin/sudo", False),
        ("rm /opt/sudo/bin/sudo; mkdir /opt/sudo/bin/sudo", False),
        ("rm /opt/sudo/bin/sudo", False),
    ],
)
def test_a_sudo_elsewhere_that_the_inventory_names(spoil: str, trusted: bool) -> None:
    named = "/opt/sudo/bin/sudo"
    program = wrap("", "echo yes; cat", password=Secret("hunter2"), sudo=named).decode()
    done = in_namespace(f"{sh('printf %%s %s', program)} | ( {ELSEWHERE % spoil} )")
    assert "hunter2" not in done.stdout + done.stderr
    if trusted:
        assert (done.returncode, done.stdout) == (0, "yes\n")
    else:
        assert (done.returncode, done.stderr) == (
            BECOME_FAILED_STATUS,
            f"hostwright-become no trusted sudo at {named}\n",
        )


def test_the_error_says_what_the_named_sudo_must_be() -> None:
    answered = Output(BECOME_FAILED_STATUS, b"", b"hostwright-become no trusted sudo at /opt/x/sudo\n", False, 0.0)
    with pytest.raises(BecomeError, match=r"the sudo of hostwright_sudo in the inventory is not safe"):
        become.check_become("gpu01", answered)


def test_root_has_an_environment_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a sudo that keeps the environment (`!env_reset`, no `secure_path`)."""
    sudo = tmp_path / "sudo"
    sudo.write_text('#!/bin/sh\nwhile :; do case $1 in -*) shift;; *) break;; esac; done; exec "$@"\n')
    sudo.chmod(0o755)
    monkeypatch.setattr(become, "SUDO_PLACES", (str(sudo),))
    monkeypatch.setattr(become, "SUDO_TRUSTED", "-type f")
    env = {name: f"/nowhere/{name}" for name in VARIABLES} | {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": "/nowhere"}
    command, opening = root_command("env", password=None)
    for argv, data in ((["/bin/sh"], wrap("", "env", password=None)), (["/bin/sh", "-c", command], opening)):
        done = subprocess.run(argv, input=data, capture_output=True, env=env, cwd="/", check=True, timeout=30)
        rows = dict(line.partition("=")[::2] for line in done.stdout.decode().splitlines())
        rows = {name: value for name, value in rows.items() if name not in ("PWD", "_", "OLDPWD", "SHLVL")}
        assert rows == {
            "LC_ALL": "C", "PATH": become.PATH, "HOME": "/root", "USER": "root", "LOGNAME": "root",
            "http_proxy": "/nowhere/http_proxy",
        }  # fmt: skip
