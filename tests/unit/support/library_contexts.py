"""Audit contexts of a host with the real roles cuda, cudnn, environment and tensorflow: as desired, except for a test's
answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from hostwright.audit.failures.rule import FailureRule
from hostwright.audit.judging.context import AuditContext
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.host.hostfacts import AVX, HOST_PROBES
from hostwright.plan.model import Answer, Change, Facts, Probe
from hostwright.resources.files.archives import NoStrayFiles
from hostwright.resources.files.files import Link
from hostwright.resources.packages.packaged import CommandReports, PackagedTree
from hostwright.resources.packages.packages import DPKG
from hostwright.resources.python.python import Venv
from hostwright.standard.roles.cuda import Cuda
from hostwright.standard.roles.cuda.failures.sources import SOURCES
from hostwright.standard.roles.cuda.failures.toolkits import TOOLKITS
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.driver.failures.loader_cache import LOADER
from hostwright.standard.roles.environment.failures import NAMES
from hostwright.standard.roles.environment.failures.variables import VARIABLES
from hostwright.standard.roles.environment.winning import LOGIN
from hostwright.standard.roles.tensorflow.failures.state import OUTSIDE, VENVS
from tests.unit.roles import test_role_cuda, test_role_cudnn, test_role_environment, test_role_tensorflow
from tests.unit.support import stacks
from tests.unit.support.facts import NOTHING, Reply, answer, facts_for
from tests.unit.support.shell import ask

STACK = test_role_cuda.STACK
PREFIX = STACK.section(CudaSection).prefix
LIB = f"{PREFIX}/targets/x86_64-linux/lib"
CUPTI = f"{PREFIX}/extras/CUPTI/lib64/libcupti.so.11.2"
NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
DESIRED = Desired(
    "gpu01",
    STACK,
    (
        DesiredRole("cuda", ("base",), test_role_cuda.RESOURCES),
        DesiredRole("cudnn", ("cuda",), test_role_cudnn.RESOURCES),
        DesiredRole("environment", ("cuda", "cudnn"), test_role_environment.RESOURCES),
        DesiredRole("tensorflow", ("base",), test_role_tensorflow.RESOURCES),
    ),
    rules=stacks.RULES,
)
Kind = TypeVar("Kind")
Differs = Mapping[Probe, Reply | None]


def resource(kind: type[Kind], ending: str = "") -> Kind:
    """The first resource of a kind; of several, the one whose path has this suffix."""
    found = (one for role in DESIRED.roles for one in role.resources if isinstance(one, kind))
    return next(one for one in found if str(getattr(one, "path", "")).endswith(ending))


TREE = resource(PackagedTree).tree.probe
NVCC = resource(CommandReports).probes()[1]
STRAYS = resource(NoStrayFiles).probes()[0]
PTXAS_LINK = resource(Link, "/bin/ptxas").probes()[0]
NVCC_LINK = resource(Link, "/bin/nvcc").probes()[0]
VENV = resource(Venv).probes()[1]

#: the libraries of CUDA 11.2.2 that TensorFlow loads: soname and the file it links to
SONAMES = {
    "libcudart.so.11.0": "libcudart.so.11.2.152", "libcublas.so.11": "libcublas.so.11.4.1.1043",
    "libcublasLt.so.11": "libcublasLt.so.11.4.1.1043", "libcufft.so.10": "libcufft.so.10.4.1.152",
    "libcurand.so.10": "libcurand.so.10.2.3.152", "libcusolver.so.11": "libcusolver.so.11.1.0.152",
    "libcusparse.so.11": "libcusparse.so.11.4.1.1152",
}  # fmt: skip
PARTS = test_role_cudnn.PARTS
CUDNN = {f"libcudnn{part}.so.8": f"libcudnn{part}.so.8.1.0" for part in PARTS}
PACKAGES = test_role_cuda.TOOLKIT + test_role_cuda.REPOSITORY + "python3.9-venv\t3.9.2-1\tii \n"


def library(path: str, target: str = "", size: int = 1000) -> str:
    """The row of a library in the toolkit's directory: a link to ``target``, or a file."""
    return f"found\t{'l' if target else 'f'}\t{size}\t{path}\t{target}\n"


def tree(libraries: Mapping[str, str], *, more: str = "") -> str:
    """The rows of the toolkit's libraries: each soname a link to its file, and the plain name a link to the soname."""
    lines = []
    for soname, file in libraries.items():
        plain = f"{soname.partition('.so')[0]}.so"
        lines += [library(f"{LIB}/{plain}", soname), library(f"{LIB}/{soname}", file), library(f"{LIB}/{file}")]
    cupti = (library(CUPTI, "libcupti.so.2020.3.1"), library(f"{CUPTI.rpartition('/')[0]}/libcupti.so.2020.3.1"))
    return "".join([*lines, *cupti]) + more


def loader(*before: str, names: Iterable[str] | None = None, after: Iterable[str] = ()) -> str:
    """The loader's cache: the stack's libraries, with ``NAME PATH`` entries before and after them."""
    own = [*SONAMES, *CUDNN] if names is None else names
    rows = [*before, *(f"{name} {LIB}/{name}" for name in own), f"libcupti.so.11.2 {CUPTI}", *after]
    rows.append("libcuda.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so.1")
    return "".join("entry\t{}\t{}\n".format(*row.split(" ")) for row in rows)


def toolkit(path: str, leads: str = "", has: str = "bin/nvcc libcudart", cudnn: str = "") -> str:
    """A line about one toolkit."""
    return f"{path}\t{leads or path}\t{has}\t{cudnn}\n"


ALL = "bin/nvcc bin/ptxas include/cudnn.h include/cudnn_version.h libcudart"
OWN = toolkit(PREFIX, has=ALL, cudnn="8.1.0")
LINK = toolkit("/usr/local/cuda", PREFIX, ALL, "8.1.0")
SOURCE_LINE = (
    f"source\t{STACK.section(CudaSection).repository.list_file}\t1\tdeb [signed-by=/usr/share/keyrings/"
    f"{STACK.section(CudaSection).repository.package}-keyring.gpg] "
    f"file://{STACK.section(CudaSection).repository.directory} /\n"
)


def healthy() -> dict[Probe, Answer]:
    """All answers of a host that is as desired."""
    greens: tuple[Mapping[str, Reply], ...] = (
        test_role_cuda.GREEN,
        test_role_cudnn.GREEN,
        test_role_environment.GREEN,
        {"python3.14": test_role_tensorflow.PYTHON, "link\\t": test_role_tensorflow.found(), "dpkg-query": ""},
    )
    found: dict[Probe, Answer] = dict.fromkeys(HOST_PROBES, NOTHING)
    for role, green in zip(DESIRED.roles, greens, strict=True):
        found |= facts_for(role.resources, green)
    replies: dict[Probe, Reply] = {
        DPKG: PACKAGES,
        AVX: "",
        TREE: tree({**SONAMES, **CUDNN}),
        TOOLKITS: LINK + OWN,
        LOADER: loader(),
        NAMES: "",
        SOURCES: SOURCE_LINE,
        LOGIN: "+hostwright /etc/profile.d/cuda.sh:5: PATH=/usr/local/cuda-11.2/bin:/usr/bin:/bin\n"
        "nvcc /usr/local/cuda-11.2/bin\n",
        VARIABLES: "/etc/profile.d/cuda.sh:5:    *) PATH=/usr/local/cuda-11.2/bin${PATH:+:${PATH}} ;;\n",
        VENVS: "",
        OUTSIDE: "",
    }
    return found | {probe: answer(reply) for probe, reply in replies.items()}


def look_at(differs: Differs | None = None, *, variables: Cuda | None = None) -> AuditContext:
    """The audit context of a host that is as desired except for these answers; ``None``: a probe that did not run."""
    given = healthy()
    for probe, reply in (differs or {}).items():
        if reply is None:
            given.pop(probe, None)
        else:
            given[probe] = answer(reply)
    return AuditContext(
        DESIRED, {"cuda": variables or Cuda()}, Facts(given), {role.name: () for role in DESIRED.roles}, NOW
    )


def planned() -> list[Change]:
    """The differences on a host that is as desired; must be empty."""
    facts = Facts(healthy())
    return [change for role in DESIRED.roles for one in role.resources if (change := one.plan(facts))]


def seen(rule: FailureRule, ctx: AuditContext) -> list[str]:
    """The evidence for a rule. Raises ``Unread``."""
    assert rule.sign is not None
    return list(rule.sign.seen(ctx))


def asked(probe: Probe, root: Path, *places: str) -> Answer:
    """The answer of a probe for a file tree, run by this machine's sh; paths in the answer are those of a host."""
    script = probe.script
    for place in places:
        script = script.replace(place, f"{root}{place}")
    status, text = ask(script)
    return Answer(status, text.replace(str(root), ""))


def write(path: Path, content: bytes | str = "") -> Path:
    """Write a file of the file tree."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
