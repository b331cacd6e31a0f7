"""Failures of JAX and its environment; the layer ``cuda`` has the messages of CUDA programs."""

from __future__ import annotations

from hostwright.failures import FailureRule, Variant
from hostwright.standard.roles.environment.failures.shadowed import environment_rules

FAILURES = (
    FailureRule(
        "jax-parts-apart",
        r"JAX plugin jax_cuda\w{1,20} version [0-9.]{1,12} is installed, but it is not compatible"
        r"|No FFI handler registered for cu\w{1,60}|No registered implementation for (?:FFI )?custom call to cu"
        r"|jaxlib version [\w.+]{1,30} is newer than and incompatible with jax|jaxlib is version [^\n]*requires version"
        r"|PJRT_Api already exists for device type cuda|Mismatched PJRT plugin PJRT API version"
        r"|Unexpected PJRT_\w{1,60} size: expected",
        "the parts of JAX are of different releases: jax, jaxlib and its CUDA plugin (jax-cuda13-plugin and -pjrt, or"
        " -cuda12-) belong together{; the plugin is PLUGIN, jaxlib JAXLIB|}",
        "Use the stack's environment, which has them in one release; elsewhere install all of them in one command (pip"
        " install -U 'jax[cuda13]', or cuda12), or {jax-KIND-plugin and jax-KIND-pjrt in JAXLIB, jaxlib's own"
        " release|each in the same release}",
        "jax-ml/jax jax_plugins/cuda/__init__.py, jax/_src/lib/__init__.py; ma-gilles/recovar#64",
        names=(
            r"jax_(?P<kind>cuda[0-9]{2})\w{0,12} version (?P<plugin>[0-9.]{1,12}) is[^\n]*jaxlib version (?P<jaxlib>[0"
            r"-9.]{1,12}[0-9])",
        ),
        variants=(
            Variant(
                r"already exists for device type",
                "two CUDA plugins of JAX are in one environment (jax-cuda12-plugin and jax-cuda13-plugin, or an older"
                " one that was left)",
                "See which (pip list | grep -i jax), and uninstall plugin and pjrt of the CUDA that is not wanted",
            ),
        ),
    ),
    FailureRule(
        "jax-without-plugin",
        r"a CUDA-enabled jaxlib is not installed|Unknown backend:? '?(?:gpu|cuda)'?(?: requested|\. Available)"
        r"|Backend '(?:gpu|cuda)' is not in the list of known backends",
        "JAX computes on the CPU: its CUDA plugin is not in this environment, for pip install jax alone brings none",
        "Where another package brought JAX along and something else computes, nothing is to be done. Else use the"
        " stack's environment, which has it, or install jax[cuda13] (drivers from R580 on) or jax[cuda12] in one"
        " command; cards and toolkit have no part in it",
        "jax-ml/jax jax/_src/xla_bridge.py",
        narrower=r"jax_plugins/xla_cuda[0-9]{2}/",  # the plugin is there, and says itself why it does not start
        beside=r"CUDA Version: 1[0-9]\.[0-9]",
        names=(r"CUDA Version: (?P<release>1[0-9]\.[0-9])",),
        variants=(
            Variant(
                r"CUDA Version: 1[0-2]\.",
                cure="Where another package brought JAX along and something else computes, nothing is to be done. Else"
                " use the stack's environment, which has the plugin, or install it in one command: pip install -U"
                " 'jax[cuda12]', for the host's driver (CUDA RELEASE) is too old for CUDA 13; cards and toolkit have no"
                " part in it",
            ),
            Variant(
                r"Unknown backend|list of known backends",
                "JAX has no GPU to compute on: its CUDA plugin is not in this environment, or could not start, for"
                " which the lines above give the reason",
                "See which parts there are (pip list | grep -i jax): install jax[cuda13] or jax[cuda12] in one command"
                " where the plugin is missing, or use the stack's environment; where it is there, run nvidia-smi in the"
                " same place and look at JAX_PLATFORMS and CUDA_VISIBLE_DEVICES",
            ),
        ),
    ),
    FailureRule(
        "jax-libraries-outdated",
        r"Outdated \w{2,12} installation found"
        r"|Found \w{2,12} version [0-9.]{1,12}, but JAX was built against version [0-9.]{1,12}, which is newer",
        "JAX gets an older {PART|library of CUDA's} than the one that it was built with: another package of the"
        " environment pins it (torch pins cuDNN), or LD_LIBRARY_PATH puts a toolkit of the host's before the wheels",
        "Unset LD_LIBRARY_PATH for the program. Where the message stays, give JAX an environment of its own and"
        " install it with its wheels in one command (pip install -U 'jax[cuda13]', or cuda12), or upgrade the nvidia-"
        " wheel of the library that the message names",
        "jax-ml/jax jax_plugins/cuda/__init__.py",
        beside=r"Minimum supported: [0-9]|Installed version: [0-9]",
        names=(
            r"(?:Outdated|Found) (?P<part>\w{2,12}) ",
            r"Minimum supported: (?P<least>[0-9]{3,6})",
            r"Installed version: (?P<have>[0-9]{3,6})",
        ),
        variants=(
            Variant(
                r"Minimum supported: [0-9]",
                "this JAX needs {PART LEAST|a newer library of CUDA's} or newer, and the program gets{ HAVE|an older"
                " one}: another package of the environment pins it (torch pins cuDNN), or LD_LIBRARY_PATH puts a"
                " toolkit of the host's before the wheels",
                "Upgrade that library's nvidia- wheel in the environment (pip install -U nvidia-cudnn-cu12, or -cu13),"
                " or install JAX with its wheels in one command (pip install -U 'jax[cuda13]', or cuda12); where"
                " another package pins it, give JAX an environment of its own, or take the JAX release before. Unset"
                " LD_LIBRARY_PATH for the program. The driver is not at fault",
            ),
        ),
    ),
    *environment_rules("jax", "JAX", "jax-ml/jax docs/installation.md"),
)
