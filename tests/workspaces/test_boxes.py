"""SSH boxes over OpenSSH's own client: keys alone, the image's environment, files, forwarding, an agent, and what
VS Code Remote's bootstrap needs.

What it needs stands in VS Code's public page for Linux hosts (glibc 2.28, GLIBCXX_3.4.25, tar, bash, curl or wget,
ca-certificates) and in the public server-setup.sh of open-remote-ssh; the server itself is not fetched.
"""

from __future__ import annotations

import os
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostwright.common.quoting import sh
from tests.lab.conftest import on
from tests.lab.sshd import free_port
from tests.workspaces.site import HELLO, STATE, USER, WORDS, Site
from tests.workspaces.tunnels import answers, eventually

BOXES = {"alice-box": "alice", "bob-box": "bob"}
#: alice has no account on the host, and jumps as those do who run it
JUMPS = {"alice": USER, "bob": "bob"}


@dataclass(frozen=True)
class Client:
    """OpenSSH's client, configured as the page for people says."""

    config: Path
    host_keys: dict[str, str]

    def command(self, *words: str, program: str = "ssh") -> list[str]:
        """The words of a command."""
        return [program, "-F", str(self.config), *words]

    def __call__(self, *words: str, program: str = "ssh", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run it."""
        return subprocess.run(
            self.command(*words, program=program), capture_output=True, text=True, timeout=120, check=False,
            stdin=subprocess.DEVNULL, env={**os.environ, "SSH_AUTH_SOCK": "", **environment},
        )  # fmt: skip

    def run(self, box: str, command: str, *options: str) -> str:
        """Run a command in a box, which must succeed; its output."""
        done = self(*options, box, command)
        assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @contextmanager
    def kept(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run it until the block ends."""
        command = self.command("-oExitOnForwardFailure=yes", *words)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.terminate()


@pytest.fixture(scope="module")
def ssh(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Client:
    """The client, which knows each box's key from the host."""
    folder = tmp_path_factory.mktemp("ssh")
    known, lines, keys = folder / "known_hosts", [site.lab.known_hosts.read_text()], {}
    config = (
        f"Host *\n  BatchMode yes\n  StrictHostKeyChecking yes\n  UserKnownHostsFile {known}\n  IdentitiesOnly yes\n"
    )
    for box, person in BOXES.items():
        jump, port = f"jump-{person}", site.space(box).port
        keys[box] = " ".join(on(site.machine, f"cat {STATE}/{box}/host_key.pub").split()[:2])
        lines.append(f"[127.0.0.1]:{port} {keys[box]}\n")
        key = site.lab.private_key if JUMPS[person] == USER else site.key(person)
        config += f"Host {jump}\n  HostName {site.machine.address}\n  User {JUMPS[person]}\n  IdentityFile {key}\n"
        config += f"Host {box}\n  HostName 127.0.0.1\n  Port {port}\n  User {person}\n  ProxyJump {jump}\n"
        config += f"  IdentityFile {site.key(person)}\n"
    known.write_text("".join(lines))
    (folder / "config").write_text(config)
    return Client(folder / "config", keys)


class TestKeys:
    def test_the_persons_key_opens_the_box(self, ssh: Client) -> None:
        assert ssh.run("alice-box", "id -un; id -u").split() == ["alice", "2001"]
        assert ssh.run("bob-box", "id -un").strip() == "bob"

    def test_nothing_else_does(self, site: Site, ssh: Client) -> None:
        stranger = f"Host stranger\n  HostName 127.0.0.1\n  Port {site.space('alice-box').port}\n  User alice\n"
        with ssh.config.open("a") as config:
            config.write(f"{stranger}  ProxyJump jump-alice\n")
        for refused in (
            ssh("-i", str(site.key("bob")), "stranger", "true"),
            ssh("-i", str(site.lab.private_key), "stranger", "true"),
            ssh("-i", "none", "stranger", "true"),
            ssh("-l", "root", "alice-box", "true"),
            ssh("-l", "bob", "alice-box", "true"),
        ):
            assert (refused.returncode, refused.stdout) == (255, "")
            assert "Permission denied (publickey)" in refused.stderr
        asked = ssh(
            "-oPreferredAuthentications=password,keyboard-interactive", "-oPubkeyAuthentication=no", "alice-box"
        )
        assert "Permission denied (publickey)" in asked.stderr  # the only way that the server names

    def test_two_boxes_of_one_image_have_keys_of_their_own(self, ssh: Client) -> None:
        """git-server-docker#13: the key lay in the image."""
        assert len(set(ssh.host_keys.values())) == len(BOXES)


class TestEnvironment:
    """baseimage-docker#54, vscode-dev-containers#683: what the image sets is gone over SSH, or PATH in a login."""

    @pytest.mark.parametrize("shell", ["{}", "bash -lc {!r}", "sh -lc {!r}", "bash -ic {!r}"])
    def test_the_images_own_is_in_a_command_and_in_a_login(self, ssh: Client, shell: str) -> None:
        show = 'echo $PATH; echo $LANG; echo $LD_LIBRARY_PATH; echo "$PEOPLES_WORDS"; hello'
        path, lang, libraries, words, hello = ssh.run("alice-box", shell.format(show)).splitlines()
        assert path.split(":")[0] == HELLO
        assert "/usr/local/bin" in path.split(":")
        assert (lang, libraries, words, hello) == ("C.UTF-8", "/opt/people/lib", WORDS, "hello")

    def test_a_terminal_has_it_too(self, ssh: Client) -> None:
        with ssh.kept("-tt", "alice-box") as process:
            answer, _ = process.communicate("stty -echo; PS1=; echo; hello; echo $LANG; tty; exit\n", timeout=60)
        shown = answer.replace("\r", "")
        assert "\nhello\nC.UTF-8\n/dev/pts/" in shown, shown

    def test_it_is_what_docker_gives(self, site: Site, ssh: Client) -> None:
        """open-remote-ssh#186: a terminal over SSH and `docker exec` differ."""
        own = {"HOME", "HOSTNAME", "USER", "LOGNAME", "PATH"}
        inside = on(site.machine, "docker exec workspace-alice-box env").splitlines()
        over_ssh = ssh.run("alice-box", "env").splitlines()
        wanted = {line for line in inside if line.partition("=")[0] not in own}
        assert wanted
        assert wanted <= set(over_ssh)
        (path,) = (line for line in inside if line.startswith("PATH="))
        assert f"{path}:/workspace/.local/bin" in over_ssh

    @pytest.mark.parametrize("command", ["mine", "bash -lc mine"])
    def test_what_pip_installs_for_the_user_is_found(self, ssh: Client, command: str) -> None:
        """OpenShell#149: `ssh box 'pip install …'`, and its command was not in PATH."""
        program = (
            "mkdir -p ~/.local/bin && cd ~/.local/bin && printf '#!/bin/sh\\necho mine\\n' >mine && chmod 755 mine"
        )
        ssh.run("alice-box", program)
        assert ssh.run("alice-box", command) == "mine\n"


class TestFiles:
    @pytest.mark.parametrize("protocol", ["-s", "-O"])
    def test_scp(self, ssh: Client, tmp_path: Path, protocol: str) -> None:
        sent, back = tmp_path / "sent", tmp_path / "back"
        sent.write_bytes(os.urandom(300_000))
        assert ssh(protocol, str(sent), "alice-box:by-scp", program="scp").returncode == 0
        assert ssh(protocol, "alice-box:by-scp", str(back), program="scp").returncode == 0
        assert back.read_bytes() == sent.read_bytes()

    def test_sftp(self, site: Site, ssh: Client, tmp_path: Path) -> None:
        (tmp_path / "sent").write_text("by sftp\n")
        (tmp_path / "batch").write_text(f"put {tmp_path}/sent by-sftp\nget by-sftp {tmp_path}/back\nls\n")
        done = ssh("-b", str(tmp_path / "batch"), "alice-box", program="sftp")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "back").read_text() == "by sftp\n"
        kept = on(site.machine, "stat -c '%u %s' /srv/workspaces/alice/alice-box/by-sftp").split()
        assert kept == ["2001", "8"]


class TestForwarding:
    """vscode-remote-release#4605, #4039, docker-sshd#36: "administratively prohibited"."""

    def test_to_a_jupyter_that_was_started_inside(self, ssh: Client) -> None:
        port = free_port()
        start = "exec jupyter lab --no-browser --ip=127.0.0.1 --port=8899 --IdentityProvider.token=inside"
        with ssh.kept("alice-box", f"{start} 2>&1"), ssh.kept("-N", f"-L{port}:127.0.0.1:8899", "alice-box"):
            address = f"http://127.0.0.1:{port}/api/kernels"
            eventually(lambda: answers(f"{address}?token=inside"), 90, "the Jupyter in the box")
            assert not answers(f"{address}?token=other")
        ssh.run("alice-box", "pkill -u alice jupyter-lab || pkill -u alice -f 'jupyter lab' || :")

    def test_dynamic_as_vs_code_does(self, ssh: Client) -> None:
        port = free_port()
        serve = "cd /opt/people && exec python3 -m http.server --bind 127.0.0.1 8898"
        with ssh.kept("alice-box", serve), ssh.kept("-N", f"-D{port}", "alice-box"):
            words = (
                "curl",
                "-s",
                "--fail",
                "--socks5-hostname",
                f"127.0.0.1:{port}",
                "http://127.0.0.1:8898/bin/hello",
            )

            def answer() -> str:
                return subprocess.run(words, capture_output=True, text=True, check=False).stdout

            eventually(lambda: "echo hello" in answer(), 60, "an answer over SOCKS")


def test_an_agent_is_there_where_it_is_forwarded(site: Site, ssh: Client, tmp_path: Path) -> None:
    """vscode-remote-release#7912: git inside asks the agent on one's own desk."""
    agent = str(tmp_path / "agent")
    public = site.key("bob").with_suffix(".pub").read_text().split()[1]
    with subprocess.Popen(("ssh-agent", "-D", "-a", agent), stdout=subprocess.DEVNULL) as process:
        try:
            eventually(lambda: Path(agent).exists(), 20, "the agent")
            subprocess.run(
                ("ssh-add", "-q", str(site.key("bob"))), env={**os.environ, "SSH_AUTH_SOCK": agent}, check=True
            )
            forwarded = ssh("-A", "alice-box", "ssh-add -L", SSH_AUTH_SOCK=agent)
            assert forwarded.stdout.split()[1] == public, forwarded.stderr
            without = ssh("alice-box", "ssh-add -L", SSH_AUTH_SOCK=agent)
            assert without.returncode == 2, without.stdout
        finally:
            process.terminate()


class TestVisualStudioCode:
    """What the bootstrap of VS Code Remote asks of the other end, each by what it does with it."""

    def test_the_programs_of_its_script_are_in_a_shell_without_a_terminal(self, ssh: Client) -> None:
        needed = "bash uname grep sed mkdir tar gzip ps flock cat touch chmod rm sort tail id sleep nohup"
        found = ssh.run("alice-box", f"for p in {needed}; do command -v $p >/dev/null || echo $p; done")
        assert found.split() == []

    def test_it_can_fetch_over_https(self, ssh: Client) -> None:
        """vscode-remote-release#3054, #1921: neither curl nor wget; without authorities no download is trusted."""
        assert ssh.run("alice-box", "command -v curl || command -v wget").strip()
        assert int(ssh.run("alice-box", "grep -c BEGIN /etc/ssl/certs/ca-certificates.crt")) > 50

    def test_its_server_would_find_its_libraries(self, ssh: Client) -> None:
        """vscode-remote-release#9508, #9480: glibc 2.28 and GLIBCXX_3.4.25."""
        version = ssh.run("alice-box", "ldd --version | head -n 1").split()[-1]
        assert tuple(map(int, version.split("."))) >= (2, 28)
        library = ssh.run("alice-box", "ldconfig -p | grep -F libstdc++.so.6 | head -n 1").split()[-1]
        assert ssh.run("alice-box", f"grep -aoF GLIBCXX_3.4.25 {library} | head -n 1").strip() == "GLIBCXX_3.4.25"

    def test_what_is_unpacked_in_the_home_runs_and_outlives_its_session(self, ssh: Client, tmp_path: Path) -> None:
        """Its server is a tar.gz in ~/.vscode-server, started in the background, which prints the port it took."""
        server = tmp_path / "server"
        server.mkdir()
        (server / "serve.py").write_text(
            "import http.server, sys\n"
            "held = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n"
            "print('listening on', held.server_port, flush=True)\n"
            "held.serve_forever()\n"
        )
        subprocess.run(("tar", "-czf", str(tmp_path / "server.tar.gz"), "-C", str(tmp_path), "server"), check=True)
        ssh.run("alice-box", "mkdir -p ~/.vscode-server/bin")
        assert ssh(str(tmp_path / "server.tar.gz"), "alice-box:.vscode-server/bin/", program="scp").returncode == 0
        script = """
        cd ~/.vscode-server/bin && tar -xf server.tar.gz --strip-components 1
        cp "$(readlink -f "$(command -v python3)")" node && chmod 755 node
        ./node serve.py >log 2>&1 </dev/null &
        echo $! >pid
        for _ in $(seq 100); do grep -q listening log && break; sleep 0.1; done
        cat log"""
        there = int(ssh.run("alice-box", sh("exec bash -c %s", script)).split()[-1])
        port = free_port()
        with ssh.kept("-N", f"-L{port}:127.0.0.1:{there}", "alice-box"):
            eventually(lambda: answers(f"http://127.0.0.1:{port}/log"), 60, "the server that was left behind")
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/log", timeout=20) as answer:
                assert answer.read().decode().splitlines()[0] == f"listening on {there}"
        ssh.run("alice-box", "kill $(cat ~/.vscode-server/bin/pid)")
        eventually(lambda: "Z" not in states_of(ssh), 20, "the ended server to be taken away")


def states_of(ssh: Client) -> str:
    """The states of all processes in the box: Z is one that nobody took away."""
    return ssh.run("alice-box", "cat /proc/[0-9]*/stat 2>/dev/null | sed 's/.*) //' | cut -c1").replace("\n", "")
