"""How many processes a shell program starts: counted by the kernel, in a process namespace of its own."""

from __future__ import annotations

import os
import subprocess

_UNSHARE = ["unshare", "--pid", "--fork"] if os.getuid() == 0 else ["unshare", "--map-root-user", "--pid", "--fork"]
#: The last process number of the namespace, of which the shell's own ``read`` would see only the first digit.
_COUNT = """
before=$(cat /proc/sys/kernel/ns_last_pid); /bin/sh >/dev/null; after=$(cat /proc/sys/kernel/ns_last_pid)
echo "$((after - before - 2))"
"""


def forks(program: str) -> int:
    """The processes and subshells that ``/bin/sh`` starts for this program. What they print is thrown away."""
    command = [*_UNSHARE, "/bin/sh", "-c", _COUNT]
    return int(subprocess.run(command, input=program, capture_output=True, check=True, text=True).stdout)
