"""Counts the processes that a shell program starts, in its own process namespace."""

from __future__ import annotations

import os
import subprocess

#: A command that prints how many processes and subshells the program on its standard input starts; for root. What the
#: program prints is thrown away. The shell's own ``read`` would see only the first digit of the last process number.
#: ``unshare`` of Debian 11 starts its child with SIGTERM blocked, which a program may need; ``timeout`` unblocks it.
COUNT = """unshare --pid --mount-proc --fork /bin/sh -c '
before=$(cat /proc/sys/kernel/ns_last_pid); timeout 50 /bin/sh >/dev/null; after=$(cat /proc/sys/kernel/ns_last_pid)
echo "$((after - before - 3))"
'"""

#: The same on a host with nothing else to do, among its other processes: systemd answers nobody in a process namespace
#: of their own. What others start meanwhile only adds to the count, so that the least of some counts is taken.
COUNT_BESIDE_OTHERS = """{ program=$(cat)
for _ in 1 2 3 4 5; do
  before=$(cat /proc/sys/kernel/ns_last_pid)
  printf '%s\\n' "$program" | timeout 50 /bin/sh >/dev/null
  after=$(cat /proc/sys/kernel/ns_last_pid)
  echo "$((after - before - 4))"
done | sort -n | head -n 1; }"""

#: What a program that looks at a host starts beside its probes: a subshell, ``head``, and the watch over all probes
#: with its ``sleep``, before which a short look may be over.
OF_A_LOOK = (3, 4)


def forks(program: str) -> int:
    """The number of processes and subshells that ``/bin/sh`` starts for this program."""
    command = COUNT if os.getuid() == 0 else COUNT.replace("unshare", "unshare --map-root-user", 1)
    done = subprocess.run(["/bin/sh", "-c", command], input=program, capture_output=True, check=True, text=True)
    return int(done.stdout)
