"""Compatibility rules for JAX: Python versions of its releases, and drivers and GPUs of its CUDA plugins.

To support a release, add a row to ``JAXES``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hostwright.resources import ENVIRONMENT_RULES, on_section, pins_are_there
from hostwright.roles import Choice, Misfit, Stack, disk_is_enough, memory_is_enough, series, version
from hostwright.standard.roles.cuda import wheels
from hostwright.standard.roles.cuda.wheels import Codes, capabilities, python_range, usable_pythons
from hostwright.standard.roles.jax.section import JaxSection

METADATA = "the metadata of jax's wheel; JAX's CHANGELOG.md"
BUILT = "HERMETIC_CUDA_COMPUTE_CAPABILITIES in JAX's .bazelrc"


@dataclass(frozen=True, slots=True)
class JaxRow:
    """Row of the compatibility table: a release series of JAX, and supported Python versions."""

    series: str
    release: str
    pythons: tuple[str, ...]


JAXES = (
    # JAX 0.4.30 supports Python 3.9 to 3.12, and 0.4.38 supports 3.10 to 3.13.
    JaxRow("0.4", "0.4.38", python_range(9, 13)),
    JaxRow("0.5", "0.5.3", python_range(10, 13)),
    JaxRow("0.6", "0.6.2", python_range(10, 13)),
    JaxRow("0.7", "0.7.2", python_range(11, 14)),
    JaxRow("0.8", "0.8.3", python_range(11, 14)),
    JaxRow("0.10", "0.10.2", python_range(11, 14)),
    JaxRow("0.11", "0.11.0", python_range(12, 14)),
    JaxRow("0.12", "0.12.0.1", python_range(12, 14)),
)
#: CUDA release of JAX's GPU plugin → GPU code in the plugin since JAX 0.7
CODES = {
    "12": Codes(capabilities("5.0 6.0 7.0 8.0 9.0 10.0"), ptx=(12, 0)),
    "13": Codes(capabilities("7.5 8.0 9.0 10.0 11.0"), ptx=(12, 0)),
}
FIRST_CODES = "0.7"
#: GPU code in JAX's earlier CUDA 12 plugins, and first JAX release with other code
EARLY, EARLY_END = Codes(capabilities("5.0 6.0 7.0 8.0 9.0")), "0.4.38"
READ = "cuobjdump of jaxlib 0.4.30 (HuRo #3)"


def row_of(jax: str) -> JaxRow | None:
    """Return the compatibility table's row for the version ``jax``; ``None`` if missing."""
    return next((row for row in JAXES if row.series == series(jax)), None)


def is_known(jax: str) -> Misfit | None:
    """Check that the compatibility table lists the series of ``jax``."""
    if row_of(jax):
        return None
    return Misfit(
        "jax",
        f"JAX {jax} is not in the compatibility table; use one of {', '.join(row.series for row in JAXES)}",
        METADATA,
    )


def runs_on_the_python(jax: str, jax_python: str) -> Misfit | None:
    """Check that JAX has wheels for the Python version ``jax_python``."""
    row = row_of(jax)
    if row is None or jax_python in row.pythons:
        return None
    have = f"{row.pythons[0]} to {row.pythons[-1]}"
    return Misfit("jax-python", f"JAX {jax} does not support Python {jax_python}, only {have}", METADATA)


def runs_on_the_driver(driver: str, jax_section: JaxSection) -> Misfit | None:
    """Check that ``driver`` supports the CUDA release of the pinned CUDA plugin."""
    cuda = wheels.major_of(jax_section)
    return wheels.runs_on_the_driver(f"JAX {jax_section.version} with its plugin for CUDA {cuda}", cuda, driver)


def has_code_for_the_gpus(gpus: tuple[tuple[int, int], ...], jax_section: JaxSection) -> Misfit | None:
    """Check that the pinned CUDA plugin has compiled code or PTX for every GPU of the host."""
    cuda, jax = wheels.major_of(jax_section), jax_section.version
    title = f"JAX {jax} with its plugin for CUDA {cuda}"
    codes, source = CODES.get(cuda) if version(jax) >= version(FIRST_CODES) else None, BUILT
    if version(jax) < version(EARLY_END):
        codes, source = EARLY, READ
    misfit = wheels.has_code(title, codes, gpus, "gpu-jax", source)
    older = cuda == "13" and wheels.has_code("", CODES["12"], gpus, "", "") is None
    return replace(misfit, nearest=f"constraints of jax[cuda12]=={jax_section.version}") if misfit and older else misfit


def processor_has_avx(avx: bool, jax: str, stack: Stack) -> Misfit | None:
    """Check that the processor has AVX, if the stack requires AVX."""
    if avx or "avx" not in stack.requirements.cpu_flags:
        return None
    sentence = f"the CPU has no AVX, and JAX {jax} cannot be imported without it"
    return Misfit("avx", sentence, "jaxlib's cpu_feature_guard; jax-ml/jax#31723", "a processor with AVX")


RULES = (
    processor_has_avx,
    memory_is_enough,
    disk_is_enough,
    is_known,
    runs_on_the_python,
    runs_on_the_driver,
    has_code_for_the_gpus,
    *(on_section("jax", rule) for rule in (*ENVIRONMENT_RULES, pins_are_there, wheels.one_cuda)),
)
CHOICES = (
    Choice("jax", "JAX", 12, tuple(row.release for row in JAXES), usual="0.12.0.1"),
    Choice("jax_python", "Python", 22, python_range(9, 14), usual="3.12", wanted=usable_pythons),
)
