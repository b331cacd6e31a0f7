"""Failures of the loader, cuDNN, TensorFlow and pip."""

from __future__ import annotations

from hostwright.failures.cudnn import flat, mixed
from hostwright.failures.loader import no_ptxas, not_cached
from hostwright.failures.loader_cache import LOADER
from hostwright.failures.python import no_avx, no_python, numpy_too_new, protobuf_too_new
from hostwright.failures.python_state import VENVS
from hostwright.failures.toolkits import TOOLKITS

from hostwright.audit.failures.rule import FailureRule, Sign
from hostwright.plan.hostfacts import AVX, PYTHONS
from hostwright.resources.packages.packages import DPKG

LIBRARIES = (
    FailureRule(
        "library-not-a-link",
        r"lib\S+\.so\S* is not a symbolic link",
        "a library was copied where a link belongs (cp without -P), which doubles it and hides later versions",
        "Provision again: the cudnn role puts the links back",
        "tensorflow/tensorflow#2986",
        sign=Sign("cudnn", flat, grave=False, provision=True),
    ),
    FailureRule(
        "cudnn-mixed",
        r"Could not load library libcudnn\w*\.so|version libcudnn\w*\.so\.8 not defined",
        "two copies of cuDNN 8 are mixed, such as apt's libcudnn8 and the tarball",
        "Provision again: the cudnn role takes the other one out of apt and of the loader's directories; where the"
        " message stays, the program's own variables or packages bring it",
        "davisking/dlib#2719",
        sign=Sign("cudnn", mixed, (DPKG,), provision=True),
    ),
    FailureRule(
        "cudnn-not-initialized",
        r"CUDNN_STATUS_NOT_INITIALIZED|cuDNN failed to initialize",
        "cuDNN found no memory on the GPU, or is not the version that TensorFlow was built for",
        "Look at nvidia-smi for another process; set TF_FORCE_GPU_ALLOW_GROWTH=true; check for cuDNN 8.1.0",
        "TensorFlow's issues",
    ),
    FailureRule(
        "library-not-found",
        r"Could not load dynamic library '|Cannot dlopen some GPU libraries",
        "the loader does not find one of the libraries that TensorFlow opens, so it runs without the GPU",
        "Provision again: the environment role lists them in /etc/ld.so.conf.d, which needs no variable",
        "tensorflow/tensorflow#56413, #45930",
        sign=Sign("environment", not_cached, (LOADER,), provision=True),
    ),
    FailureRule(
        "ptxas-not-found",
        r"Couldn't get ptxas version|ptxas not found|Can't find libdevice",
        "the CUDA toolkit's bin directory is not on PATH",
        "Provision again: the environment role puts it there",
        "tensorflow/tensorflow#33375, #58681",
        sign=Sign("environment", no_ptxas, (TOOLKITS,), provision=True),
    ),
    FailureRule(
        "protobuf-too-new",
        r"Descriptors cannot(?: not)? be created directly",
        "protobuf 4 is installed, and TensorFlow 2.9 needs 3.19 or 3.20",
        "Provision again: the tensorflow role installs with its constraints (protobuf 3.19.6)",
        "tensorflow/tensorflow#56266",
        sign=Sign("tensorflow", protobuf_too_new, (VENVS,), provision=True),
    ),
    FailureRule(
        "numpy-too-new",
        r"compiled using NumPy 1\.x cannot be run in|Unable to convert function return value to a Python type",
        "NumPy 2 is installed, and TensorFlow 2.9.0 was built for NumPy 1",
        "Provision again: the tensorflow role installs with its constraints (numpy below 2)",
        "measured with today's pip",
        sign=Sign("tensorflow", numpy_too_new, (VENVS,), provision=True),
    ),
    FailureRule(
        "no-wheel",
        r"No matching distribution found for|Could not find a version that satisfies the requirement",
        "pip finds no wheel for this Python and processor (TensorFlow 2.9.0 has them for Python 3.7 to 3.10 on x86_64)",
        "Give the host a Python 3.7 to 3.10, or look whether the index or wheelhouse can be reached",
        "PyPI, tensorflow 2.9.0",
        sign=Sign("tensorflow", no_python, (PYTHONS,)),
    ),
    FailureRule(
        "venv-missing",
        r"ensurepip is not available|No module named '?(venv|ensurepip)",
        "the Python has no venv module; Debian and Ubuntu keep it in a package of its own",
        "Install python3-venv (the tensorflow role does)",
        "Debian python3-venv",
    ),
    FailureRule(
        "no-avx",
        r"Illegal instruction|compiled to use AVX instructions",
        "the processor, or the virtual machine's model of it, has no AVX",
        "Use a host with AVX, or let the hypervisor pass the host's processor through",
        "TensorFlow's install page",
        sign=Sign("tensorflow", no_avx, (AVX,)),
    ),
)
