"""Tools and libraries, asked for in each of the ways in which programs are started on a host."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from testinfra.backend.base import CommandResult
from testinfra.host import Host

from hostwright.plan.member import Member
from hostwright.stack.stack import Stack
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.environment import opened

Run = Callable[..., CommandResult]

#: $1 are library names. nvcc preprocesses something, since called by a wrong name it answers -V and does nothing else:
#: for that it finds its own headers and a compiler, at a third of the cost of compiling, which is the toolkit's check.
#: A program is started with the libraries' bare names, and says which files the loader found for them, by the names
#: that they have where /usr/local is no link.
USE = """\
echo "nvcc $(command -v nvcc)"
nvcc -V | grep -o 'V[0-9][0-9.]*$'
env -u TMPDIR nvcc -x cu -E /dev/null >/dev/null && echo works
local=$(readlink -m /usr/local)
LD_PRELOAD=$1 cat /proc/self/maps 2>&1 | grep -oE '/[^ ]*[.]so[^ ]*|.* cannot be preloaded.*' | sort -u |
    sed "s|^$local/|/usr/local/|"
"""

#: What Debian's and Ubuntu's cron gives to a job of a user's crontab, and nothing else.
CRON = 'env -i HOME="$HOME" LOGNAME="$(id -un)" SHELL=/bin/sh PATH=/usr/bin:/bin /bin/sh -c %s sh %s'
LOGIN = 'env -i HOME="$HOME" USER="$(id -un)" TERM=dumb /bin/bash -l -c %s bash %s'
SUDO = "if command -v sudo >/dev/null; then sudo -n /bin/sh -c %s sh %s; else echo 'hostwright: no sudo here'; fi"
TWICE = 'env -i HOME="$HOME" /bin/bash -l -c %s'


@pytest.fixture(scope="module")
def names(member: Member) -> tuple[str, ...]:
    """The libraries that programs must find."""
    return opened(member.wanted)


def refused(errors: str, prefix: str) -> bool:
    """Whether nvcc got as far as the toolkit's own header, which refuses the host's gcc as too new for it.

    It has then found all that is beside it; that there is no compiler for it is said by the check of the toolkit.
    """
    return re.search(rf"{re.escape(prefix)}/[^\n]*host_config\.h:[^\n]*unsupported GNU version", errors) is not None


def check(done: CommandResult, names: tuple[str, ...], stack: Stack, *, tool: str = "") -> None:
    """Fail with a sentence unless the output of ``USE`` says that everything was found below the toolkit."""
    lines = done.stdout.splitlines()
    nvcc = next((line.partition(" ")[2] for line in lines if line.startswith("nvcc ")), "")
    assert nvcc, f"nvcc is not on its PATH {done.stderr.strip()[-200:]}"
    assert not tool or nvcc == tool, f"nvcc is {nvcc}, not {tool}"
    assert stack.section(CudaSection).nvcc in lines, f"{nvcc} is not that of CUDA {stack.section(CudaSection).version}"
    works = "works" in lines or refused(done.stderr, stack.section(CudaSection).prefix)
    assert works, f"{nvcc} does not find its own headers and a compiler: {done.stderr.strip()[-300:]}"
    ours = [line for line in lines if line.startswith(f"{stack.section(CudaSection).prefix}/")]
    stems = {line.rpartition("/")[2].partition(".so")[0] for line in ours}
    missing = [name for name in names if name.partition(".so")[0] not in stems]
    assert not missing, f"not found below {stack.section(CudaSection).prefix}: {', '.join(missing)}"


def test_login_shells(host: Host, stack: Stack, names: tuple[str, ...]) -> None:
    """A login shell finds the toolkit's own programs first on its PATH, and the libraries."""
    check(host.run(LOGIN, USE, " ".join(names)), names, stack, tool=f"{stack.section(CudaSection).prefix}/bin/nvcc")


def test_commands_over_ssh(host: Host, stack: Stack, names: tuple[str, ...]) -> None:
    """A command over ssh, where no profile is read, finds tools and libraries."""
    check(host.run("/bin/sh -c %s sh %s", USE, " ".join(names)), names, stack)


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
    script = '. /etc/profile.d/cuda.sh; . /etc/profile.d/cuda.sh; echo "$PATH"; echo "$LD_LIBRARY_PATH"'
    lines = host.run(TWICE, script).stdout.splitlines()
    assert len(lines) >= 2, "/etc/profile.d/cuda.sh cannot be read"
    for line, directory in zip(
        lines[-2:],
        (f"{stack.section(CudaSection).prefix}/bin", f"{stack.section(CudaSection).prefix}/lib64"),
        strict=True,
    ):
        assert line.split(":").count(directory) == 1, f"{directory} is not there once: {line}"
