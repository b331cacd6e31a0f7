"""Commands of other tools on the lab's hosts, each in its fastest safe configuration."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.measuring.command import Command, Done, ended_well
from benchmarks.peers.results import Result, of_ansible, of_pyinfra, wrong
from benchmarks.peers.venvs import environment
from benchmarks.places.hosts import Hosts

HERE = Path(__file__).parent
SSH, PYINFRA, ANSIBLE, MITOGEN = "ssh true", "pyinfra", "Ansible, pipelining", "Ansible, Mitogen"
AT_ONCE = 32  #: maximum number of parallel ssh processes. More processes are not faster on two cores.
PARALLEL = 50  #: number of hosts that a tool processes in parallel, enough for all cases


@dataclass(frozen=True, slots=True)
class Tools:
    """Commands of other tools for the lab's hosts ``names``."""

    hosts: Hosts
    names: tuple[str, ...]
    variables: dict[str, str]  #: variables of Ansible's playbook and pyinfra's deploy
    folder: Path  #: directory for the inventories of the tools

    @property
    def base(self) -> Command:
        """Command without words, which the other methods complete. It runs in the controller's network namespace."""
        return Command("", len(self.names), (), netns=self.hosts.desk.netns, cable=self.hosts.desk.cable)

    @property
    def ssh_config(self) -> Path:
        """Path of the ssh_config that all tools use."""
        return self.hosts.ssh_config(self.names)

    def each(self, contender: str, script: str, *arguments: str) -> Command:
        """Return a command that runs the shell script ``script`` on this machine once for each host.

        ``$1`` is the ssh_config, ``$2`` the host, and ``$3`` the first of ``arguments``.
        """
        words = ("xargs", "-P", str(AT_ONCE), "-I", "@HOST@", "sh", "-c", script, "each", str(self.ssh_config))
        stdin = "".join(f"{name}\n" for name in self.names).encode()
        return replace(self.base, contender=contender, words=(*words, "@HOST@", *arguments), stdin=stdin)

    def ssh_true(self) -> Command:
        """Return a command that runs ``true`` on each host over ssh, the minimum for any tool."""
        return self.each(SSH, 'exec ssh -F "$1" "$2" true')

    def ansible(self, playbook: Path, *, mitogen: bool = False, changes: bool = False) -> Command:
        """Return a command that runs an Ansible playbook, optionally with Mitogen.

        Without ``changes``, the command fails if a host changes.
        """
        inventory = self._written("hosts.ini", "".join(f"{name}\n" for name in self.names))
        variables = self._written("variables.json", json.dumps(self.variables))
        programs = environment("ansible")
        env = {
            "ANSIBLE_CONFIG": str(HERE / "ansible/ansible.cfg"),
            "ANSIBLE_HOME": str(self.folder / "ansible"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_SSH_ARGS": f"-F {self.ssh_config} -o ControlMaster=auto -o ControlPersist=60s",
            "PATH": f"{programs}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        }
        if mitogen:
            (plugins,) = programs.parent.glob("lib/python3*/site-packages/ansible_mitogen/plugins/strategy")
            env |= {"ANSIBLE_STRATEGY_PLUGINS": str(plugins), "ANSIBLE_STRATEGY": "mitogen_linear"}
        words = (str(programs / "ansible-playbook"), "-i", str(inventory), "-e", f"@{variables}", str(playbook))
        check = self._judged(of_ansible, changes)
        return replace(
            self.base, contender=MITOGEN if mitogen else ANSIBLE, words=words, env=env, check=check, cwd=self.folder
        )

    def pyinfra(self, *, changes: bool = False) -> Command:
        """Return a command that runs the pyinfra deploy. Without ``changes``, it fails if a host changes.

        The option ``-y`` skips pyinfra's preceding read of the hosts' state.
        """
        inventory = self._written("inventory.py", f"hosts = {list(self.names)!r}\n")
        data = {
            **self.variables,
            "ssh_config_file": str(self.ssh_config),
            "ssh_known_hosts_file": str(self.hosts.lab.known_hosts),
            "ssh_strict_host_key_checking": "yes",
        }
        options = [word for name, value in data.items() for word in ("--data", f"{name}={value}")]
        program = (str(environment("pyinfra") / "pyinfra"), str(inventory), str(HERE / "pyinfra/deploy.py"))
        words = (*program, "--sudo", "-y", "--parallel", str(PARALLEL), *options)
        return replace(
            self.base, contender=PYINFRA, words=words, check=self._judged(of_pyinfra, changes), cwd=self.folder
        )

    def _judged(self, read: Callable[[str], Result], changes: bool) -> Callable[[Done], str]:
        def check(done: Done) -> str:
            try:
                result = read(f"{done.stdout}\n{done.stderr}")
            except ValueError as error:
                return f"{error}: {ended_well(done) or done.last}"
            sentence = wrong(result, frozenset(self.names), changes=changes)
            return f"{sentence}: {done.last}" if sentence else ended_well(done)

        return check

    def _written(self, name: str, text: str) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / name
        path.write_text(text)
        return path


def of(hosts: Hosts, names: Sequence[str], variables: dict[str, str], folder: Path) -> Tools:
    """Return the other tools' commands for the hosts ``names``. ``folder``: directory for the tools' files."""
    return Tools(hosts, tuple(names), variables, folder)
