"""Lab: GPU hosts on this machine, as containers or virtual machines, for the demo and the tests.

Each host boots systemd and has its own address, sshd and apt.
"""

import hostwright  # noqa: F401 - stops an old Python with an error that names the required version
from hostwright.cli.shell.libraries import require

require("ClusterShell")
