"""The command ``hostwright``, where a driver's programs are in no place in which a login looks: in a container, say."""

import shutil
import sys
from pathlib import Path

from hostwright.__main__ import main
from hostwright.transport.root import become

if program := shutil.which("nvidia-smi"):
    become.PATH += f":{Path(program).parent}"
sys.argv[0] = "hostwright"
main()
