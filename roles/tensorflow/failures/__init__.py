"""Failures of TensorFlow, its venv, and pip."""

from __future__ import annotations

from hostwright.failures import FailureRule, ForPeople, Sign, Variant
from hostwright.resources import AVX, PYTHONS
from hostwright.standard.roles.environment.failures.shadowed import environment_rules
from hostwright.standard.roles.tensorflow.failures.python import (
    PYTHON,
    no_avx,
    no_python,
    numpy_too_new,
    protobuf_too_new,
)
from hostwright.standard.roles.tensorflow.failures.state import VENVS
from hostwright.standard.roles.tensorflow.failures.texts import LOOKED_AT, NO_SUCH_WHEEL, TEXT_RULES

FAILURES = (
    FailureRule(
        "protobuf-too-new",
        r"Descriptors (?:cannot(?: not)?|should not) be created directly"
        r"|'(?:MessageFactory|SymbolDatabase)' object has no attribute 'GetPrototype'"
        r"|Couldn't build proto file into descriptor pool",
        "protobuf 4 is installed, but TensorFlow 2.9 needs 3.19 or 3.20",
        "Provision again: the tensorflow role installs with its constraints (protobuf 3.19.6)",
        "tensorflow/tensorflow#56266; wutzebaer/tensorflow-5090#2",
        variants=(
            Variant(
                r"GetPrototype",
                "the installed protobuf lacks an interface that this TensorFlow calls (GetPrototype, removed in"
                " several steps up to 6.30)",
                "Install an older protobuf into that environment (pip install 'protobuf<6', which is 5.29; 3.20 for"
                " TensorFlow 2.9), or a TensorFlow for protobuf 6. To restore the stack's own environment, provision"
                " again",
            ),
            Variant(
                r"Descriptors",
                "protobuf 4 or newer is installed, but a module in the traceback was generated for an older protobuf."
                " TensorFlow 2.9 has such modules and needs 3.19 or 3.20",
                "Install the protobuf that this package requires, or a newer release of the package, into that"
                " environment. To restore the stack's own environment, provision again (protobuf 3.19.6 for TensorFlow"
                " 2.9)",
            ),
        ),
        sign=Sign("tensorflow", protobuf_too_new, (VENVS,), provision=True),
    ),
    FailureRule(
        "numpy-too-new",
        r"downgrade to 'numpy<2'|need time to support NumPy 2|compiled using NumPy 1\.(?:x cannot be run in|$)"
        r"|Unable to convert function return value to a Python type"
        r"|_ARRAY_API not found|was removed in the NumPy 2\.0 release|version of numpy is 0x2[0-9a-f]{6}\b"
        r"|ValueError: numpy\.dtype size changed|RuntimeError: Numpy is not available"
        r"|module 'numpy' has no attribute '(?:bool|int|float|complex|object|str|typeDict|long|unicode)\d?_?'",
        "NumPy 2 is installed, but a package in the traceback was built for NumPy 1, such as TensorFlow up to 2.17",
        "For the stack's environment, provision again: its constraints pin NumPy. In your own environment, install"
        " 'numpy<2', or a release of the package for NumPy 2 (PyTorch from 2.3, TensorFlow from 2.18)",
        "measured with today's pip; NumPy's migration guide 2.0",
        beside=r"site-packages/\w{2,40}/|dist-packages/\w{2,40}/",
        names=(r"(?:site|dist)-packages/(?P<package>[A-Za-z]\w{1,40})/",),
        variants=(
            Variant(
                r"has no attribute '\w|was removed in the NumPy 2",
                "{PACKAGE|a package or the program} uses a name that NumPy no longer has: 1.24 removed np.bool,"
                " np.int, np.float and similar names, and 2.0 removed others",
                "Install a newer release of {PACKAGE|that package}; in your own program, replace the name (bool, int,"
                " float). Until then, install an older NumPy into a separate environment ('numpy<1.24' for np.bool"
                " and similar names, else 'numpy<2')",
            ),
            Variant(
                r"Numpy is not available",
                "PyTorch cannot use NumPy: a PyTorch below 2.3 loads NumPy 2, or NumPy is not installed",
                "Install 'numpy<2' into that environment, or PyTorch 2.3 or later (a current stack)",
            ),
        ),
        sign=Sign("tensorflow", numpy_too_new, (VENVS,), provision=True),
    ),
    FailureRule(
        "no-wheel",
        r"No matching distribution found for|\bha(?:s|ve) no wheels with a matching"
        r"|because it doesn't have a source distribution or wheel for the current platform"
        r"|Unable to find installation candidates for|was not found in the package registry"
        r"|Could not find a version that satisfies the requirement|is not a supported wheel on this platform"
        r"|requires a different Python: |Because there (?:is|are) no versions? of \S{1,80} and (?:you|your project) ",
        "pip finds no wheel of {PACKAGE|that version} for this Python and CPU architecture",
        "Give the host a Python for which the package has wheels (pythons of the layer in the stack file), or let the"
        " stack install one (interpreter). Otherwise check that the index or wheelhouse is reachable and has that"
        " version",
        "pip, messages of its resolver; TensorFlow 2.9.0 has wheels for Python 3.7 to 3.10 on x86_64, 2.21.0 for 3.10"
        " to 3.13",
        names=(
            r"No matching distribution found for (?P<package>[\w.=<>!~\[\],+-]{2,80})",
            r"satisfies the requirement (?P<package>[\w.=<>!~\[\],+-]{2,80})",
            r"(?P<file>[\w.+-]{2,120}\.whl) is not a supported wheel",
            r"^Looking in links: (?P<links>[^\s,]{1,200})",
            r"Because there (?:is|are) no versions? of (?P<package>[\w.=<>!~\[\],+-]{2,80})",
            r"Because (?:all versions of )?(?P<package>[\w.+=-]{2,80}) ha(?:s|ve) no wheels with",
            r"wheels for `(?P<package>[\w.-]{1,60})` [^\n]*tags?: (?P<tags>[`\w, ]{3,120})",
            r"Distribution `(?P<package>[\w.+=-]{2,80})",
            r"candidates for (?P<package>[\w.-]{2,60}(?: \([\w.+-]{1,40}\))?)",
            r"Because (?P<package>[\w.-]{2,60}) was not found in the package registry",
            r"(?:require|using) CPython (?P<python>3\.[0-9]{1,2})",
        ),
        variants=NO_SUCH_WHEEL,
        beside=LOOKED_AT,
        sign=Sign("tensorflow", no_python, (PYTHONS,)),
        treatment=ForPeople(),
        weight="general",
    ),
    FailureRule(
        "venv-missing",
        r"ensurepip is not\s{1,40}available|you need to install the python3-venv|No module named '?(?:venv|ensurepip)"
        r"|'-(?:Im|m)', 'ensurepip'[^\n]*returned non-zero",
        "this Python has no venv module, which Debian and Ubuntu ship in a separate package",
        "Install python3-venv (the tensorflow role does)",
        "Debian python3-venv",
    ),
    FailureRule(
        "no-avx",
        r"illegal (?:hardware )?instruction"
        r"|compiled to use (?:AVX|FMA|SSE)[\w.]{0,8}(?:[ ,]{1,2}[\w.]{2,8}){0,6} instructions"
        r"|built using AVX\w{0,8} instructions, which your CPU"
        r"|traps: python[0-9.]{0,8}\[[0-9]{1,10}\] trap invalid opcode",
        "the CPU, or the virtual machine's CPU model, has no AVX",
        "Use a host with AVX, or set the hypervisor's CPU mode to host passthrough",
        "TensorFlow's install page",
        unless=r"\): illegal |illegal (?:hardware )?instruction (?:parameter|encoding|was encountered)",
        sign=Sign("tensorflow", no_avx, (AVX,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "tensorflow-no-blackwell",
        r"CUDA_ERROR_INVALID_PTX|cu(?:LaunchKernel|ModuleGetFunction)\([^\n]*failed with 'CUDA_ERROR_INVALID_HANDLE'"
        r"|kernel binaries compatible with compute capability 1[0-9]\."
        r"|PTX version [0-9.]{1,6} does not support target 'sm_1[0-9]{2}'",
        "the framework has no code for this Blackwell GPU, and the driver's compilation of its PTX fails. No release"
        " of TensorFlow has Blackwell code, and no build of another framework with CUDA before 12.8 has it",
        "For TensorFlow, use another framework or GPU, or NVIDIA's TensorFlow container, which is built for these"
        " GPUs. For other frameworks (JAX, Triton, CuPy …), install a release built with CUDA 12.8 or newer. Driver"
        " and GPU are not the cause",
        "tensorflow/tensorflow#89272, #99592, #111958",
        variants=(
            Variant(
                r"tensorflow|tf_gpu_runtime|op_kernel\.cc",
                "no release of TensorFlow has code for Blackwell GPUs, and the driver's compilation of its PTX fails",
                "Use another framework or GPU, or NVIDIA's TensorFlow container, which is built for these GPUs",
            ),
        ),
    ),
    *PYTHON,
    *environment_rules("tensorflow", "TensorFlow", "tensorflow/tensorflow#63362, #117538"),
    *TEXT_RULES,
)
