"""The command ``hostwright``, where a driver's programs and libraries are in no place in which a login looks for them.

A container may have them in one of its own, which only ``PATH`` and ``LD_LIBRARY_PATH`` name.
"""

import shutil
import sys
from pathlib import Path

from hostwright.__main__ import main
from hostwright.apply.jobs import scripting
from hostwright.transport.root import become

plain, read, program = become.PATH, scripting.sh_file, shutil.which("nvidia-smi")
become.PATH += f":{Path(program).parent}" if program else ""
become.PROXIES += ("LD_LIBRARY_PATH",)
become._KEPT += ' ${LD_LIBRARY_PATH+"LD_LIBRARY_PATH=$LD_LIBRARY_PATH"}'
scripting.sh_file = lambda *of, **values: read(*of, **values).replace(f"PATH={plain};", f"PATH={become.PATH};")
sys.argv[0] = "hostwright"
main()
