"""Whether a stack fits together, and whether it fits a host, before anything touches the host.

``check_stack`` needs no host; ``check_host`` needs the few typed facts in ``HostFacts``. Both return misfits as
values: the rule, a sentence, who says so, and the nearest that works.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from hostwright.stack.fitting import Combination, Ground, Misfit, misfits, nearest_fit
from hostwright.stack.gpus import chip
from hostwright.stack.stack import Stack

#: package → the first version with which TensorFlow's wheels of these years do not import, why, and who says so
IMPORT_LIMITS = {
    "numpy": ("2", "wheels built against numpy 1 do not import with numpy 2", "measured with TensorFlow 2.9.0"),
    "protobuf": (
        "4",
        "generated code of protobuf 3 does not import with protobuf 4 (tensorflow#56266)",
        "measured with TensorFlow 2.9.0",
    ),
}
#: the same for the wheels of later series, where they differ
LATER_LIMITS = {
    "2.12": {"protobuf": ("5", "its wheel wants protobuf below 5", "metadata of the wheel of TensorFlow 2.12.1")},
}


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What the rules ask of a host. ``None`` means not known, which no rule refuses.

    ``distribution`` and ``version`` are os-release's ID and VERSION_ID, ``kernel`` and ``machine`` what ``uname -r``
    and ``-m`` print, ``gpus`` PCI device ids, ``pythons`` the minor versions (``3.9``) that are installed;
    sizes are bytes, ``free_bytes`` the least of ``/``, ``/var`` and ``/tmp``.
    """

    distribution: str
    version: str
    kernel: str | None = None
    machine: str | None = None
    gpus: tuple[int, ...] = ()
    avx: bool | None = None
    pythons: tuple[str, ...] = ()
    memory_bytes: int | None = None
    free_bytes: int | None = None


def check_stack(stack: Stack) -> list[Misfit]:
    """The reasons for which no host can be brought to this stack; empty when it fits together."""
    found: dict[str, Misfit] = {}
    for one in _combinations(stack, stack.tensorflow.pythons):
        found.update({misfit.sentence: misfit for misfit in misfits(one, Ground())})
    wanted = _first_that_fits(stack)
    several = [replace(misfit, nearest=nearest_fit(wanted, Ground())) for misfit in found.values()]
    return [*several, *_fabric_manager(stack), *_constraints(stack), *_docker(stack)]


def check_host(stack: Stack, facts: HostFacts) -> list[Misfit]:
    """The reasons for which this host cannot be brought to this stack; empty when it can.

    Presumes a stack that ``check_stack`` found nothing against.
    """
    return [*_distribution(stack, facts), *_machine(stack, facts), *_host_python(stack, facts), *_ground(stack, facts)]


def _combinations(stack: Stack, pythons: Iterable[str]) -> list[Combination]:
    return [
        Combination(stack.tensorflow.version, python, stack.cuda.version, stack.cudnn.version, stack.driver.version)
        for python in pythons
    ]


def _first_that_fits(stack: Stack) -> Combination:
    """The stack's combination with the fewest faults, so that a suggestion does not change its Python needlessly."""
    return min(_combinations(stack, stack.tensorflow.pythons), key=lambda one: len(list(misfits(one, Ground()))))


def _fabric_manager(stack: Stack) -> Iterator[Misfit]:
    manager, driver = stack.driver.fabric_manager, stack.driver.version
    if manager and manager.version.partition("-")[0] != driver:
        yield Misfit(
            "fabric-manager",
            f"Fabric Manager {manager.version} does not work with driver {driver}: both must be one version",
            "azhpc-images PR #86, gpu-operator #544",
            f"{manager.package} {driver}-1",
        )


def _constraints(stack: Stack) -> Iterator[Misfit]:
    limits = {**IMPORT_LIMITS, **LATER_LIMITS.get(stack.tensorflow.series, {})}
    for python in stack.tensorflow.pythons:
        pins = _pins(stack.tensorflow.constraints.get(python, ""))
        for package, (limit, why, source) in limits.items():
            pinned = pins.get(package)
            if pinned is None or pinned >= Version(limit):
                have = f"{package} {pinned}" if pinned else f"no exact version of {package}"
                yield Misfit(
                    "tensorflow-constraints",
                    f"tensorflow.constraints for Python {python} gives {have}: {why}",
                    source,
                    f"a constraints file for Python {python} with {package}==VERSION below {limit}",
                )


def _pins(constraints: str) -> dict[str, Version]:
    """The packages that a constraints file pins with ``==``."""
    pins = {}
    for line in constraints.splitlines():
        try:
            requirement = Requirement(line.partition("#")[0])
        except InvalidRequirement:
            continue
        exact = [part.version for part in requirement.specifier if part.operator == "=="]
        if exact and not exact[0].endswith(".*"):
            pins[requirement.name.lower()] = Version(exact[0])
    return pins


def _docker(stack: Stack) -> Iterator[Misfit]:
    if stack.container.docker == "docker-ce" and stack.container.docker_ce is None:
        yield Misfit(
            "container-docker",
            "container.docker says docker-ce, and container.docker_ce does not say from which repository",
            "the stack",
            "docker: docker.io, or a docker_ce entry with packages and repository",
        )


def _distribution(stack: Stack, facts: HostFacts) -> Iterator[Misfit]:
    if facts.version in stack.distributions.get(facts.distribution, ()):
        return
    supported = ", ".join(f"{name} {version}" for name, all_of in stack.distributions.items() for version in all_of)
    yield Misfit(
        "distribution",
        f"{facts.distribution} {facts.version} is not a distribution that the stack {stack.name} is made for",
        "distributions of the stack",
        supported or "none",
    )


def _machine(stack: Stack, facts: HostFacts) -> Iterator[Misfit]:
    wants = stack.requirements
    if facts.machine is not None and facts.machine != wants.machine:
        sentence = f"the host's machine type is {facts.machine}, and the stack is for {wants.machine}"
        yield Misfit("machine", sentence, "requirements of the stack", f"a host of type {wants.machine}")
    if "avx" in wants.cpu_flags and facts.avx is False:
        sentence = "the processor has no AVX, without which TensorFlow ends with 'Illegal instruction'"
        yield Misfit("avx", sentence, "TensorFlow's documentation, since 1.6", "a processor with AVX")
    yield from _room("memory", "memory", facts.memory_bytes, wants.memory_bytes)
    yield from _room("disk", "free disk space on /, /var or /tmp", facts.free_bytes, wants.free_bytes)


def _room(rule: str, what: str, have: int | None, want: int) -> Iterator[Misfit]:
    if have is not None and have < want:
        sentence = f"the host has {have / 1e9:.1f} GB of {what}, and the stack wants {want / 1e9:.1f} GB"
        yield Misfit(rule, sentence, "requirements of the stack", f"{want / 1e9:.1f} GB or more")


def _host_python(stack: Stack, facts: HostFacts) -> Iterator[Misfit]:
    """A host without any Python is left to the role, which installs the distribution's."""
    usable = sorted(stack.tensorflow.pythons, key=Version)
    if not facts.pythons or set(usable) & set(facts.pythons):
        return
    have = f"the host has Python {', '.join(facts.pythons)} only"
    yield Misfit(
        "host-python",
        f"{have}, and TensorFlow {stack.tensorflow.version} has wheels for {', '.join(usable)}",
        "tensorflow.pythons of the stack",
        f"Python {usable[-1]} installed beside it, or a distribution that has one of these",
    )


def _ground(stack: Stack, facts: HostFacts) -> Iterator[Misfit]:
    driver = stack.driver
    chips = tuple(dict.fromkeys(one for one in map(chip, facts.gpus) if one is not None))
    own = {driver.version: driver.kernels} if driver.kernels is not None else {}
    ground = Ground(facts.kernel, chips, own)
    wanted = _first_that_fits(stack)
    alone = {misfit.rule for misfit in misfits(wanted, Ground())}
    for misfit in misfits(wanted, ground):
        if misfit.rule not in alone:
            yield replace(misfit, nearest=nearest_fit(wanted, ground))
