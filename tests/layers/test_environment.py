"""Tools and libraries, asked for in each of the ways in which programs are started on a host."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from testinfra.backend.base import CommandResult
from testinfra.host import Host

from hostwright.plan.targets import TargetHost
from hostwright.stack.stack import Stack
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.environment import opened
from hostwright.standard.roles.environment.failures.variables import VARIABLES, session_path
from hostwright.standard.roles.environment.winning import LOGIN, setter

Run = Callable[..., CommandResult]

#: $1 are library names. nvcc preprocesses something, since called by a wrong name it answers -V and does nothing else:
#: for that it finds its own headers and a compiler, at a third of the cost of compiling, which is the toolkit's check.
#: A program is started with the libraries' bare names, and says which files the loader found for them, by the names
#: that they have where /usr/local is no link.
USE = """\
printf '\\n%s\\n' 'hostwright: begin'
command -v nvcc >/dev/null || { printf '\\n%s\\n' 'hostwright: end'; exit 0; }
echo "nvcc $(command -v nvcc)"
nvcc -V | grep -o 'V[0-9][0-9.]*$'
env -u TMPDIR nvcc -x cu -E /dev/null >/dev/null && echo works
local=$(readlink -m /usr/local)
LD_PRELOAD=$1 cat /proc/self/maps 2>&1 | grep -oE '/[^ ]*[.]so[^ ]*|.* cannot be preloaded.*' | sort -u |
    sed "s|^$local/|/usr/local/|"
printf '\\n%s\\n' 'hostwright: end'
"""

#: What Debian's and Ubuntu's cron gives to a job of a user's crontab, and nothing else.
CRON = 'env -i HOME="$HOME" LOGNAME="$(id -un)" SHELL=/bin/sh PATH=/usr/bin:/bin /bin/sh -c %s sh %s'
#: A command over ssh, with the PATH that the session came with.
SESSION = 'env PATH="$SESSION_PATH" /bin/sh -c %s sh %s'
LOGIN_SHELL = 'env -i HOME="$HOME" USER="$(id -un)" TERM=dumb /bin/bash -l -c \'exec /bin/sh -c "$@"\' bash %s sh %s'
SUDO = "if command -v sudo >/dev/null; then sudo -n /bin/sh -c %s sh %s; else echo 'hostwright: no sudo here'; fi"
TWICE = 'env -i HOME="$HOME" /bin/bash -l -c \'exec /bin/sh -c "$@"\' bash %s'


@pytest.fixture(scope="module")
def names(target: TargetHost) -> tuple[str, ...]:
    """The libraries that programs must find."""
    return opened(target.context)


def refused(errors: str, prefix: str) -> bool:
    """Whether nvcc got as far as the toolkit's own header, which refuses the host's gcc as too new for it.

    It has then found all that is beside it; that there is no compiler for it is said by the check of the toolkit.
    """
    return re.search(rf"{re.escape(prefix)}/[^\n]*host_config\.h:[^\n]*unsupported GNU version", errors) is not None


def answer(done: CommandResult) -> list[str]:
    """The lines that a command itself printed: start files print what they like before it, escape codes too."""
    before, begun, rest = done.stdout.partition("\nhostwright: begin\n")
    printed = " ".join(f"{before} {done.stderr}".split())[-200:]
    assert begun, f"the shell did not run the command; it printed: {printed or 'nothing'}"
    return rest.partition("\nhostwright: end\n")[0].splitlines()


Winner = Callable[[str, str], str]  #: of a variable and a directory: the file that sets it so


def check(
    done: CommandResult, names: tuple[str, ...], stack: Stack, *, tool: str = "", winner: Winner = lambda *_: ""
) -> None:
    """Fail with a sentence unless the output of ``USE`` says that everything was found below the toolkit."""
    lines = answer(done)
    nvcc = next((line.partition(" ")[2] for line in lines if line.startswith("nvcc ")), "")
    assert nvcc, f"nvcc is not on its PATH{winner('PATH', '')} {done.stderr.strip()[-200:]}"
    assert not tool or nvcc == tool, f"nvcc is {nvcc}, not {tool}{winner('PATH', nvcc.rpartition('/')[0])}"
    assert stack.section(CudaSection).nvcc in lines, f"{nvcc} is not that of CUDA {stack.section(CudaSection).version}"
    works = "works" in lines or refused(done.stderr, stack.section(CudaSection).prefix)
    assert works, f"{nvcc} does not find its own headers and a compiler: {done.stderr.strip()[-300:]}"
    ours = [line for line in lines if line.startswith(f"{stack.section(CudaSection).prefix}/")]
    stems = {line.rpartition("/")[2].partition(".so")[0] for line in ours}
    missing = [name for name in names if name.partition(".so")[0] not in stems]
    others = {name: path for name in missing for path in lines if path.startswith("/") and f"/{stem(name)}.so" in path}
    found = [f"{name} ({f'it is {others[name]}' if name in others else 'nowhere'})" for name in missing]
    places = dict.fromkeys(winner("LD_LIBRARY_PATH", path.rpartition("/")[0]) for path in others.values())
    assert not missing, f"not loaded from {stack.section(CudaSection).prefix}: {', '.join(found)}{''.join(places)}"


def stem(library: str) -> str:
    """The name of a library without its number."""
    return library.partition(".so")[0]


@pytest.fixture(scope="module")
def of_login(host: Host, stack: Stack) -> Winner:
    """The file and line that sets a variable of login shells, as bash itself tells."""
    tools = f"{stack.section(CudaSection).prefix}/bin"

    def winner(variable: str, directory: str) -> str:
        by = setter(host.run(LOGIN.script).stdout, variable, directory, tools)
        return f"; {by}" if by else ""

    return winner


@pytest.fixture(scope="module")
def of_session(root_run: Run) -> Winner:
    """The file and line that sets a variable of other sessions: where somebody's or the system's files name it."""

    def winner(variable: str, directory: str) -> str:
        text = root_run(VARIABLES.script).stdout
        if not directory:
            return f"; {each}" if variable == "PATH" and (each := session_path(text)) else ""
        by = next((line for line in text.splitlines() if f"{variable}=" in line and directory in line), "")
        return f"; {by}" if by else ""

    return winner


def test_login_shells(host: Host, stack: Stack, names: tuple[str, ...], of_login: Winner) -> None:
    """A login shell finds the toolkit's own programs first on its PATH, and the libraries."""
    tool = f"{stack.section(CudaSection).prefix}/bin/nvcc"
    check(host.run(LOGIN_SHELL, USE, " ".join(names)), names, stack, tool=tool, winner=of_login)


def test_commands_over_ssh(host: Host, stack: Stack, names: tuple[str, ...], of_session: Winner) -> None:
    """A command over ssh, where no profile is read, finds tools and libraries."""
    check(host.run(SESSION, USE, " ".join(names)), names, stack, winner=of_session)


def test_cron_jobs(host: Host, stack: Stack, names: tuple[str, ...]) -> None:
    """A job with the environment of a user's crontab, whose PATH is /usr/bin:/bin, finds tools and libraries."""
    check(host.run(CRON, USE, " ".join(names)), names, stack)


def test_systemd_units(root_run: Run, stack: Stack, names: tuple[str, ...]) -> None:
    """A systemd unit that sets no environment of its own finds tools and libraries."""
    # The script goes in by standard input: systemd would expand its dollars.
    unit = "printf '%%s' %s | systemd-run --quiet --pipe --wait --collect /bin/sh -s %s"
    check(root_run(unit, USE, " ".join(names)), names, stack)


def test_sudo(root_run: Run, stack: Stack, names: tuple[str, ...]) -> None:
    """A command under sudo, which drops PATH and LD_LIBRARY_PATH, finds tools and libraries."""
    done = root_run(SUDO, USE, " ".join(names))
    if "hostwright: no sudo here" not in done.stdout:
        check(done, names, stack)


def test_every_tool_is_on_everybodys_path(host: Host, variables: Any) -> None:
    """Each tool that is wanted everywhere starts from the shortest PATH that there is, cron's."""
    script = 'for tool; do said=$("$tool" --version 2>&1) || { echo "$tool"; echo "$said" >&2; }; done'
    command = "env -i PATH=/usr/bin:/bin /bin/sh -c %s sh" + " %s" * len(variables.tools)
    missing = host.run(command, script, *variables.tools).stdout.split()
    assert not missing, f"does not start: {', '.join(missing)}"


def test_reading_the_profile_twice_adds_nothing(host: Host, stack: Stack) -> None:
    """PATH and LD_LIBRARY_PATH name the toolkit once, with lib64, however often the profile is read."""
    twice = '. /etc/profile.d/cuda.sh; . /etc/profile.d/cuda.sh; echo "$PATH"; echo "$LD_LIBRARY_PATH"'
    lines = answer(host.run(TWICE, f"printf '\\n%s\\n' 'hostwright: begin'; {twice}; echo; echo 'hostwright: end'"))
    assert len(lines) >= 2, "/etc/profile.d/cuda.sh cannot be read"
    for line, directory in zip(
        lines[:2],
        (f"{stack.section(CudaSection).prefix}/bin", f"{stack.section(CudaSection).prefix}/lib64"),
        strict=True,
    ):
        assert line.split(":").count(directory) == 1, f"{directory} is not there once: {line}"
