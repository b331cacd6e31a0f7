"""Signs of faulty environment variables that users set: another CUDA on their paths, or a path without effect.

Provisioning never edits users' files. These problems are reported with file and line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostwright.failures import LOOK_S, FailureRule, ForPeople, Sign, Unread, homes_probe
from hostwright.resources import PCI
from hostwright.roles import Pattern, sh_file
from hostwright.standard.roles.cuda.failures.toolkits import LINK, TOOLKITS, Toolkit, toolkits
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.driver.states.gpu_use import gpu_ids
from hostwright.standard.roles.environment.winning import HAS, LOGIN, libraries, setter, settings

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

#: login file that the role ``environment`` writes. The plan shows any difference.
OWN_PROFILE = "/etc/profile.d/cuda.sh"
MAX_LINES = 400

#: probe that prints assignments about CUDA or the loader's path as ``FILE:NUMBER:LINE``, and ``has PATH`` for each of
#: the stack's libraries in the assigned directories
VARIABLES = homes_probe(HAS + sh_file(__file__, "variables.sh", most=MAX_LINES), cap_bytes=512 * MAX_LINES)
PROFILES = "/etc/profile.d/"
ENVIRONMENT = "/etc/environment"
PAM = (ENVIRONMENT, "/etc/security/pam_env.conf")  #: files of pam_env, which sets variables for all sessions

_LINE = Pattern(r"(/[^:]*):(\d{1,9}):(.*)")
#: pattern of NCCL settings that make communication slower in all programs
_NCCL = Pattern(
    r"\s*(?:export |declare -x )?(NCCL_(?:(?:P2P|SHM|IB|NVLS)_DISABLE(?:\s+(?:DEFAULT|OVERRIDE))?\s*=\s*['\"]?[1-9]"
    r"|NET(?:\s+(?:DEFAULT|OVERRIDE))?\s*=\s*['\"]?Socket|P2P_LEVEL(?:\s+(?:DEFAULT|OVERRIDE))?\s*=\s*['\"]?(?:LOC|0)"
    r"|NVLS_ENABLE(?:\s+(?:DEFAULT|OVERRIDE))?\s*=\s*['\"]?0"
    r"|(?:ALGO|PROTO)(?:\s+(?:DEFAULT|OVERRIDE))?\s*=\s*['\"]?[\w,^:;-]{1,60}))"
)
_NAME = r"\b(\w*PATH|LD_PRELOAD|PYTHONHOME|CUDA_[A-Z_]+|XLA_FLAGS)(?:\+?=|\s+(?:DEFAULT|OVERRIDE)=)"
_ASSIGNMENT = Pattern(_NAME + r"""("[^"]*"?|'[^']*'?|(?:\\.?|[^\s;&|\\])*)""")
_TOOLKIT = Pattern(r"(/[^\s:'\"${}]*cuda-?(\d{1,3}(?:\.\d{1,3})?))(?:[^\d.]|$)")
_UNVERSIONED = Pattern(r"/usr/local/cuda(?:[^\w.-]|$)")
_COMPAT = Pattern(r"/cuda[^:/\s]*/compat(?:\W|$)")
# A stubs directory contains libraries for linking only, and ldconfig would create a libcuda.so.1 there.
_STUBS = Pattern(r"/stubs(?:/|$)")
_NO_64 = Pattern(r"/cuda(?:-\d+\.\d+)?/lib/?(?:[:\"'\s]|$)")
_MISQUOTED = Pattern(r"cuda[^:'\"\s]*\\")
_HOME = Pattern(r"^(?:\$HOME|\$\{HOME\}|~)/")
_COMMENT = Pattern(r"\s#.*")


#: pattern of an assignment that applies to the rest of the file
_CHOICE = Pattern(
    r"(?:export |declare -x )?CUDA_VISIBLE_DEVICES(?:=|\s+(?:DEFAULT|OVERRIDE)=)"
    r"(\"[^\"]*\"|'[^']*'|[^\s;&|\"'`$]*)\s*(?:[;#].*)?"
)
_BETWEEN = Pattern(r"[=:;]+")
_CARD = Pattern(r"(?i)[0-9]{1,3}|(?:GPU|MIG)-[0-9a-f/-]{1,80}")


@dataclass(frozen=True, slots=True)
class Assignment:
    """Assignment of an environment variable in a user's file or a system file."""

    file: str
    line: int
    name: str
    value: str

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return f"{self.place}: {self.name}={self.value}"


def assignments(ctx: AuditContext) -> tuple[Assignment, ...]:
    """Return the assignments with values that mention CUDA. Raises ``Unread`` if home directories were not read."""
    return tuple(each for each in _assigned(ctx) if "cuda" in each.value)


def _assigned(ctx: AuditContext) -> tuple[Assignment, ...]:
    """Return all assignments except the role ``environment``'s. Raises ``Unread`` if home directories were not read."""
    answer = ctx.answer(VARIABLES)
    if not answer.ok:
        raise Unread(
            f"the home directories did not respond within {LOOK_S} s"
            if answer.status in {124, 137}
            else "the home directories are not readable"
        )
    return _parse(answer.text)


def _parse(text: str) -> tuple[Assignment, ...]:
    lines = (match for line in text.splitlines() if (match := _LINE.fullmatch(line)))
    matches = ((line, match) for line in lines for match in _ASSIGNMENT.finditer(_COMMENT.sub("", line[3])))
    assigned = (Assignment(line[1], int(line[2]), match[1], match[2]) for line, match in matches)
    return tuple(each for each in assigned if each.file != OWN_PROFILE)


def session_path(text: str) -> Assignment | None:
    """Return pam_env's assignment of a ``PATH`` without the system's programs. ``text``: output of ``VARIABLES``."""
    own = {each.file: each for each in _parse(text) if each.name == "PATH" and each.file in PAM}
    for file, each in own.items():
        value = each.value.strip("\"'")
        # pam_env expands no variables in /etc/environment, so ``{PATH}`` is plain text there.
        kept = file != ENVIRONMENT and ("{PATH}" in value)
        if not kept and not {part.rstrip("/") for part in value.split(":")} & {"/usr/bin", "/bin"}:
            return each
    return None


def path_without_system(ctx: AuditContext) -> Iterator[str]:
    """``PATH`` in /etc/environment or /etc/security/pam_env.conf has neither /usr/bin nor /bin."""
    if each := session_path(ctx.text(VARIABLES)):
        yield str(each)


def path_replaced(ctx: AuditContext) -> Iterator[str]:
    """The login user's shells find another ``nvcc`` before the toolkit's. bash's trace names the line that sets the
    final ``PATH``.
    """
    tools, answer = f"{ctx.section(CudaSection).prefix}/bin", ctx.text(LOGIN)
    first = next((line[5:] for line in answer.splitlines() if line.startswith("nvcc /")), tools)
    found = settings(answer, "PATH")
    in_the_end = found[-1].directories if found else ()
    before = in_the_end[: in_the_end.index(tools)] if tools in in_the_end else (first,)
    if first in before and first != tools and any(tools in each.directories for each in found):
        yield f"{setter(answer, 'PATH', first, tools)}: nvcc is {first}/nvcc"


def login_library(ctx: AuditContext) -> Iterator[str]:
    """The login user's shells have another directory with CUDA, cuDNN or driver libraries on the loader's path before
    the toolkit's.
    """
    answer = ctx.text(LOGIN)
    found, prefix = settings(answer, "LD_LIBRARY_PATH"), ctx.section(CudaSection).prefix
    for directory in found[-1].directories if found else ():
        if directory.startswith(f"{prefix}/") and not _STUBS.search(directory):
            return
        names = [path.rpartition("/")[2] for path in libraries(answer) if path.rpartition("/")[0] == directory]
        if names and (by := setter(answer, "LD_LIBRARY_PATH", directory)):
            yield f"{by.place}: LD_LIBRARY_PATH: {directory} has {', '.join(names)}"


def another_library(ctx: AuditContext) -> Iterator[str]:
    """A start file or pam_env puts another directory with CUDA, cuDNN or driver libraries on the loader's path, such as
    conda's.
    """
    yield from login_library(ctx)
    found, reported = libraries(ctx.text(VARIABLES)), set(another_cuda(ctx))
    for each in _assigned(ctx):
        if each.name != "LD_LIBRARY_PATH" or str(each) in reported or each.file.startswith(PROFILES):
            continue
        for directory in _directories(each):
            if directory.startswith(LINK) and not _STUBS.search(directory):
                break
            names = [path.rpartition("/")[2] for path in found if path.rpartition("/")[0] == directory]
            if names:
                yield f"{each}: {directory} has {', '.join(names)}"


def on_loader_path(ctx: AuditContext) -> Iterator[tuple[str, str]]:
    """Yield file and line that put a directory on the loader's path, with each library in that directory."""
    found = libraries(ctx.text(VARIABLES))
    for each in _assigned(ctx):
        if each.name == "LD_LIBRARY_PATH":
            directories = _directories(each)
            yield from ((each.place, path) for path in found if path.rpartition("/")[0] in directories)


def _directories(each: Assignment) -> tuple[str, ...]:
    home = each.file.rpartition("/")[0]
    parts = (_HOME.sub(f"{home}/", part) for part in each.value.strip("\"'").split(":"))
    return tuple(dict.fromkeys(part.partition("$")[0].rstrip("/") for part in parts if part.startswith("/")))


def other_modules(ctx: AuditContext) -> Iterator[str]:
    """A start file or pam_env sets PYTHONHOME, or puts a directory on PYTHONPATH that has a module of TensorFlow or of
    its dependencies.
    """
    lines = ctx.text(VARIABLES).splitlines()
    found = [line.removeprefix("shadows ") for line in lines if line.startswith("shadows /")]
    for each in _assigned(ctx):
        if each.name == "PYTHONHOME":
            yield str(each)
        for directory in _directories(each) if each.name == "PYTHONPATH" else ():
            names = [path.rpartition("/")[2] for path in found if path.rpartition("/")[0] == directory]
            if names:
                yield f"{each}: {directory} has {', '.join(names)}"


def file_gone(ctx: AuditContext) -> Iterator[str]:
    """A start file, pam_env or pip.conf names a missing CA certificate file, preloaded library or temporary
    directory.
    """
    lines = ctx.text(VARIABLES).splitlines()
    gone = {line.removeprefix("gone ") for line in lines if line.startswith("gone /")}
    for row in filter(None, map(_LINE.fullmatch, lines)):
        words = (word.strip("\"'") for word in _BETWEEN.sub(" ", _COMMENT.sub("", row[3])).split())
        if named := [word for word in words if word in gone]:
            yield f"{row[1]}:{row[2]}: {row[3].strip()}: {', '.join(named)} is not there"


def gpus_hidden(ctx: AuditContext) -> Iterator[str]:
    """A start file or pam_env sets CUDA_VISIBLE_DEVICES to nothing, to GPUs that the host does not have, or, for all
    users, to fewer GPUs than the host has.
    """
    ctx.require(PCI)
    cards = len(gpu_ids(ctx.facts))
    lines = ctx.text(VARIABLES).splitlines() if cards else ()
    for row in filter(None, map(_LINE.fullmatch, lines)):
        chosen = _CHOICE.fullmatch(row[3])
        if chosen and "$" not in chosen[1]:
            value = chosen[1].strip("\"'")
            seen = _visible(value, cards)
            if seen == 0 or (seen < cards and row[1].startswith("/etc/")):
                yield f"{row[1]}:{row[2]}: CUDA_VISIBLE_DEVICES={value}: programs can use {seen} of {cards} GPUs"


def nccl_hindered(ctx: AuditContext) -> Iterator[str]:
    """A configuration file of NCCL, a start file or pam_env disables a transport of NCCL (``NCCL_P2P_DISABLE=1``), or
    forces one algorithm or protocol.
    """
    for row in filter(None, map(_LINE.fullmatch, ctx.text(VARIABLES).splitlines())):
        if setting := _NCCL.match(row[3]):
            yield f"{row[1]}:{row[2]}: {setting[1]}"


def _visible(value: str, cards: int) -> int:
    words = [word.strip() for word in value.split(",")]
    known = [bool(_CARD.fullmatch(word)) and (not word.isdigit() or int(word) < cards) for word in words]
    return len(set(words[: known.index(False)] if False in known else words))


def another_cuda(ctx: AuditContext) -> Iterator[str]:
    """A start file sets a path to another installed CUDA release, or to a directory ``compat``."""
    series, installed = ctx.section(CudaSection).series, toolkits(ctx)
    own = {series, series.partition(".")[0]}
    for assignment in assignments(ctx):
        others = (toolkit[1] for toolkit in _TOOLKIT.finditer(assignment.value) if toolkit[2] not in own)
        if _COMPAT.search(assignment.value) or any(_is_there(home, installed) for home in others):
            yield str(assignment)


def _is_there(home: str, installed: Mapping[str, Toolkit]) -> bool:
    return installed[home].usable if home in installed else not home.startswith(f"{LINK}-")


def lib_not_lib64(ctx: AuditContext) -> Iterator[str]:
    """``LD_LIBRARY_PATH`` has a toolkit's directory ``lib``, which does not exist: toolkits have ``lib64``."""
    paths = (assignment for assignment in assignments(ctx) if assignment.name == "LD_LIBRARY_PATH")
    yield from (str(assignment) for assignment in paths if _NO_64.search(assignment.value))


def misquoted(ctx: AuditContext) -> Iterator[str]:
    r"""An assignment has a backslash after the toolkit's directory, as in ``lib64\${LD_LIBRARY_PATH…}``."""
    yield from (str(assignment) for assignment in assignments(ctx) if _MISQUOTED.search(assignment.value))


def own_cuda(ctx: AuditContext) -> Iterator[str]:
    """A start file puts the stack's own toolkit on ``PATH`` or ``LD_LIBRARY_PATH``, in a line without another fault."""
    series = ctx.section(CudaSection).series
    own = {series, series.partition(".")[0]}
    evidence = [line for rule in (another_cuda, another_library, lib_not_lib64, misquoted) for line in rule(ctx)]
    for assignment in assignments(ctx):
        versions = {toolkit[2] for toolkit in _TOOLKIT.finditer(assignment.value)}
        ours = versions <= own and (versions or _UNVERSIONED.search(assignment.value))
        reported = any(line.startswith(f"{assignment.place}: {assignment.name}") for line in evidence)
        if ours and assignment.name.endswith("PATH") and not reported:
            yield str(assignment)


VARIABLES_RULES = (
    FailureRule(
        "variable-of-another-cuda",
        "",
        "variables in a user's or system file name another CUDA. A shell's start file affects that user's shells, and"
        " /etc/environment (pam_env) affects logins, ssh, cron and sudo; neither affects systemd units",
        "Remove the line from that file: programs find the stack's tools and libraries without variables",
        "NVIDIA's CUDA installation guide, environment setup",
        sign=Sign("environment", another_cuda, (VARIABLES, TOOLKITS), grave=False),
    ),
    FailureRule(
        "path-replaced",
        "",
        "a start file sets PATH after the stack's file, so that login shells do not find the toolkit's programs first",
        "Keep the old value in that line, PATH=$PATH:DIRECTORY, or remove the line",
        "bash(1), INVOCATION",
        sign=Sign("environment", path_replaced, (LOGIN,), grave=False),
    ),
    FailureRule(
        "path-without-system",
        "",
        "pam_env sets a PATH without the system's directories, so that commands over ssh find no programs",
        "Add the system's directories to that line, or remove it. /etc/environment expands no variables, so that"
        " $PATH does not keep the old value",
        "pam_env(8); archcraft-os/archcraft#455",
        sign=Sign("environment", path_without_system, (VARIABLES,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "library-path-first",
        "",
        "LD_LIBRARY_PATH in a user's or system file names other copies of CUDA's, cuDNN's or the driver's libraries,"
        " which programs then load before the stack's",
        "Remove the directory from that line. A conda environment finds its libraries without it, and programs find"
        " the stack's libraries without variables",
        "ld.so(8), tensorflow/tensorflow#52988",
        sign=Sign("environment", another_library, (VARIABLES, LOGIN, TOOLKITS), grave=False),
    ),
    FailureRule(
        "python-path-first",
        "",
        "PYTHONPATH or PYTHONHOME in a user's or system file puts other modules before those of every virtual"
        " environment, and TensorFlow programs import them",
        "Remove the directory from that line. Users who need it can set it in their own shells (ROS: source"
        " setup.bash there). python3 -E runs a program without these variables",
        "Python documentation, command line and environment; catkin_pip#49",
        sign=Sign("environment", other_modules, (VARIABLES,), grave=False),
    ),
    FailureRule(
        "gpus-hidden",
        "",
        "CUDA_VISIBLE_DEVICES in a user's or system file hides GPUs from all programs. TensorFlow runs on the CPU, or"
        " on fewer GPUs, although driver and GPUs work (nvidia-smi lists all)",
        "Remove the line from that file. To run one program without GPUs, set the variable for that program alone"
        " (CUDA_VISIBLE_DEVICES=-1 python …)",
        "CUDA C++ Programming Guide, CUDA environment variables; tensorflow/tensorflow#2175",
        sign=Sign("environment", gpus_hidden, (VARIABLES, PCI), grave=False),
    ),
    FailureRule(
        "nccl-hindered",
        "",
        "a file for all programs with NCCL disables a transport between GPUs or hosts (peer access, shared memory,"
        " InfiniBand, NVLink SHARP), or forces one algorithm. Training on several GPUs is slow for all users",
        "Find out who set it: often it was a workaround for a temporary fault. If nobody needs it, remove the line;"
        " otherwise set it for one program alone. NCCL_DEBUG=INFO prints NCCL's transports at a program's start",
        "NCCL user guide, environment variables (/etc/nccl.conf, ~/.nccl.conf); NVIDIA/nccl#631",
        sign=Sign("environment", nccl_hindered, (VARIABLES,), grave=False),
    ),
    FailureRule(
        "variable-names-missing-file",
        "",
        "a setting for all programs of a session, or for pip, names a missing file or directory. A missing CA"
        " certificate file breaks every https connection, a missing preloaded library prints an error in each program,"
        " and a missing TMPDIR breaks compilers, pip builds and installers",
        "Remove the line from that file, or restore the file. The host's own CA certificates are in"
        " /etc/ssl/certs/ca-certificates.crt, which needs no variable",
        "requests, REQUESTS_CA_BUNDLE; OpenSSL, SSL_CERT_FILE; pip configuration; ld.so(8); pypi/warehouse#3645",
        sign=Sign("environment", file_gone, (VARIABLES,), grave=False),
    ),
    FailureRule(
        "path-lib-not-lib64",
        "",
        "LD_LIBRARY_PATH names the toolkit's directory lib, but the libraries are in lib64",
        "Remove the line from that file, or write lib64: programs find the stack's libraries without it",
        "NVIDIA/deepops, cuda-vars.sh",
        sign=Sign("environment", lib_not_lib64, (VARIABLES,), grave=False),
    ),
    FailureRule(
        "path-misquoted",
        "",
        "a backslash in a copied line turns the path into one name that does not exist",
        "Remove the line from that file: programs find the stack's tools and libraries without it",
        "tensorflow/tensorflow#20271",
        sign=Sign("environment", misquoted, (VARIABLES,), grave=False),
    ),
    FailureRule(
        "path-in-start-file",
        "",
        "a start file puts the stack's CUDA on a path. Only shells read it (pam_env reads /etc/environment, and on"
        " older systems ~/.pam_environment, for logins, ssh, cron and sudo); systemd units never do. The path stays at"
        " this release when the stack changes",
        "Remove the line from that file: programs find the stack's tools and libraries without variables",
        "NVIDIA's CUDA installation guide, environment setup",
        sign=Sign("environment", own_cuda, (VARIABLES, LOGIN, TOOLKITS), grave=False),
    ),
)
