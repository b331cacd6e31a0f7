"""Real hosts on this machine, for the demo and the tests: each boots systemd and has its own address, sshd and apt."""

import hostwright  # noqa: F401 - an old Python reads no further, and is told which is needed
from hostwright.cli.shell.libraries import require

require("ClusterShell")
