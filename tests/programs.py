"""The programs that tests run on this machine, installed with apt where they are missing: ``python -m tests.programs``.

An ``sshd`` listens on a high port of 127.0.0.1, with ``sudo`` and users' shells behind it; no service is started.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from hostwright.transport.root.become import PATH
from lab.image import ensure_programs, missing_programs

#: program → package, for unit tests
UNIT = {"sshd": "openssh-server", "sudo": "sudo", "visudo": "sudo"}
#: and for those on lab hosts
LAB = UNIT | {"zsh": "zsh", "fish": "fish", "tcsh": "tcsh", "bsd-csh": "csh", "elvish": "elvish"}


def main() -> int:
    """Install what unit tests need and this machine lacks; only then root is needed, and asked for with ``sudo``."""
    missing = missing_programs(UNIT, path=PATH)
    if missing and os.geteuid() != 0:
        if not shutil.which("sudo"):
            print(
                f"the tests need {', '.join(missing)}: as root, apt-get install {' '.join(sorted(set(UNIT.values())))}"
            )
            return 1
        return subprocess.run(["sudo", "-E", sys.executable, "-m", "tests.programs"], check=False).returncode
    ensure_programs(UNIT, path=PATH)
    return 0


if __name__ == "__main__":
    sys.exit(main())
