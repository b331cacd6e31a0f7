"""Failures of JAX and its venv. The layer ``cuda`` has the messages of CUDA programs in general."""

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
        "jax, jaxlib and the CUDA plugin (jax-cuda13-plugin and -pjrt, or -cuda12-) are of different releases{: the"
        " plugin is PLUGIN, jaxlib JAXLIB|}",
        "Use the stack's environment, where all parts have one release. In another environment, install them in one"
        " command (pip install -U 'jax[cuda13]', or cuda12), or install {jax-KIND-plugin and jax-KIND-pjrt in jaxlib's"
        " release JAXLIB|each in the same release}",
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
                "List them with pip list | grep -i jax, and uninstall the plugin and pjrt of the unwanted CUDA release",
            ),
        ),
    ),
    FailureRule(
        "jax-without-plugin",
        r"a CUDA-enabled jaxlib is not installed|Unknown backend:? '?(?:gpu|cuda)'?(?: requested|\. Available)"
        r"|Backend '(?:gpu|cuda)' is not in the list of known backends",
        "JAX computes on the CPU: this environment has no CUDA plugin, which pip install jax alone does not install",
        "If JAX is only a dependency and another library computes, do nothing. Otherwise use the stack's environment,"
        " or install jax[cuda13] (drivers from R580 on) or jax[cuda12] in one command. GPUs and toolkit are not the"
        " cause",
        "jax-ml/jax jax/_src/xla_bridge.py",
        narrower=r"jax_plugins/xla_cuda[0-9]{2}/",
        beside=r"CUDA Version: 1[0-9]\.[0-9]",
        names=(r"CUDA Version: (?P<release>1[0-9]\.[0-9])",),
        variants=(
            Variant(
                r"CUDA Version: 1[0-2]\.",
                cure=(
                    "If JAX is only a dependency and another library computes, do nothing. Otherwise use the stack's"
                    " environment, or install the plugin in one command: pip install -U 'jax[cuda12]'. The host's "
                    "driver (CUDA RELEASE) is too old for CUDA 13. GPUs and toolkit are not the cause"
                ),
            ),
            Variant(
                r"Unknown backend|list of known backends",
                "JAX finds no GPU: its CUDA plugin is missing in this environment, or did not start for a reason that"
                " the lines above give",
                "List the installed parts with pip list | grep -i jax. If the plugin is missing, install jax[cuda13]"
                " or jax[cuda12] in one command, or use the stack's environment. Otherwise run nvidia-smi in the same"
                " place and check JAX_PLATFORMS and CUDA_VISIBLE_DEVICES",
            ),
        ),
    ),
    FailureRule(
        "jax-libraries-outdated",
        r"Outdated \w{2,12} installation found"
        r"|Found \w{2,12} version [0-9.]{1,12}, but JAX was built against version [0-9.]{1,12}, which is newer",
        "JAX loads an older {PART|CUDA library} than JAX was built with: another package of the environment pins the"
        " older version (torch pins cuDNN), or LD_LIBRARY_PATH puts a toolkit of the host before the wheels",
        "Unset LD_LIBRARY_PATH for the program. If the message stays, install JAX with its wheels in an environment"
        " of its own (pip install -U 'jax[cuda13]', or cuda12), or upgrade the nvidia- wheel of the library in the"
        " message",
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
                "this JAX needs {PART LEAST|a newer CUDA library} or newer, but the program loads{ HAVE|an older"
                " one}: another package of the environment pins the older version (torch pins cuDNN), or"
                " LD_LIBRARY_PATH puts a toolkit of the host before the wheels",
                "Unset LD_LIBRARY_PATH for the program. Upgrade the library's nvidia- wheel in the environment (pip"
                " install -U nvidia-cudnn-cu12, or -cu13), or install JAX with its wheels in one command (pip install"
                " -U 'jax[cuda13]', or cuda12). If another package pins the library, give JAX an environment of its"
                " own, or install the previous JAX release. The driver is not the cause",
            ),
        ),
    ),
    *environment_rules("jax", "JAX", "jax-ml/jax docs/installation.md"),
)
