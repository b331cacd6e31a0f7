"""Facts of an installed TensorFlow, for checks on the host."""

from __future__ import annotations

from pathlib import Path

from hostwright.roles import RoleContext
from hostwright.standard.roles.cuda.wheels import LOGIN_SHELL, OPENED, libraries_in
from hostwright.standard.roles.tensorflow.section import TensorflowSection

_PRINT = "import json\nprint(json.dumps({**FOUND, **opened}), flush=True)\n"
LOOK = (Path(__file__).parent / "programs/look.py").read_text("utf-8") + OPENED + _PRINT

#: Python code that prints the wheel's and the loaded TensorRT version. It runs last, because a mismatched TensorRT may
#: end the process.
_OPEN_TENSORRT = """\
from tensorflow.compiler.tf2tensorrt import _pywrap_py_utils as trt
print("tensorrt", *trt.get_linked_tensorrt_version(), *trt.get_loaded_tensorrt_version())
"""


def look_command(context: RoleContext) -> tuple[str, ...]:
    """Return the command that reads all facts of TensorFlow for checks on a host."""
    section = context.section(TensorflowSection)
    variables = {role.name: variables for role, variables in context.roles}
    python = f"{section.home(variables['tensorflow'].path)}/bin/python"
    program = LOOK + (_OPEN_TENSORRT if "tensorrt" in variables else "")
    way = LOGIN_SHELL if libraries_in(section) else "%s -c %s"
    return (way + " %s" * len(section.libraries), python, program, *section.libraries)
