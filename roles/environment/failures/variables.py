"""Signs about variables that users set: another CUDA on their paths, or a path without effect.

Provisioning never edits users' files: these problems are reported, with file and line, to those who may.
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

OWN_PROFILE = "/etc/profile.d/cuda.sh"  #: the environment role's own: the plan shows any difference there
MAX_LINES = 400

#: Assignments that mention CUDA or set the loader's path, ``FILE:NUMBER:LINE``, those in system-wide files first; then
#: ``has PATH`` for each library of the stack's names in a directory that they put there.
VARIABLES = homes_probe(HAS + sh_file(__file__, "variables.sh", most=MAX_LINES), cap_bytes=512 * MAX_LINES)
PROFILES = "/etc/profile.d/"
ENVIRONMENT = "/etc/environment"
PAM = (ENVIRONMENT, "/etc/security/pam_env.conf")  #: of pam_env's, for all sessions

_LINE = Pattern(r"(/[^:]*):(\d{1,9}):(.*)")
#: a setting that makes NCCL slower for everybody, whatever it was once good for
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
_STUBS = Pattern(r"/stubs(?:/|$)")  # of a toolkit, for linking; ldconfig makes a libcuda.so.1 of them
_NO_64 = Pattern(r"/cuda(?:-\d+\.\d+)?/lib/?(?:[:\"'\s]|$)")
_MISQUOTED = Pattern(r"cuda[^:'\"\s]*\\")
_HOME = Pattern(r"^(?:\$HOME|\$\{HOME\}|~)/")
_COMMENT = Pattern(r"\s#.*")


#: for all that follows in the file, not for one command, and not in a function or a condition, whose lines are indented
_CHOICE = Pattern(
    r"(?:export |declare -x )?CUDA_VISIBLE_DEVICES(?:=|\s+(?:DEFAULT|OVERRIDE)=)"
    r"(\"[^\"]*\"|'[^']*'|[^\s;&|\"'`$]*)\s*(?:[;#].*)?"
)
_BETWEEN = Pattern(r"[=:;]+")
_CARD = Pattern(r"(?i)[0-9]{1,3}|(?:GPU|MIG)-[0-9a-f/-]{1,80}")


@dataclass(frozen=True, slots=True)
class Assignment:
    """An assignment in a user's file or the system's."""

    file: str
    line: int
    name: str
    value: str

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return f"{self.place}: {self.name}={self.value}"


def assignments(ctx: AuditContext) -> tuple[Assignment, ...]:
    """The assignments that mention CUDA. Raises ``Unread``, also if a home directory does not respond."""
    return tuple(each for each in _assigned(ctx) if "cuda" in each.value)


def _assigned(ctx: AuditContext) -> tuple[Assignment, ...]:
    """All assignments, without those of the role's own file. Raises ``Unread``."""
    answer = ctx.answer(VARIABLES)
    if not answer.ok:
        raise Unread(f"the homes did not answer within {LOOK_S} s" if answer.status in {124, 137} else "not readable")
    return _parse(answer.text)


def _parse(text: str) -> tuple[Assignment, ...]:
    lines = (match for line in text.splitlines() if (match := _LINE.fullmatch(line)))
    matches = ((line, match) for line in lines for match in _ASSIGNMENT.finditer(_COMMENT.sub("", line[3])))
    assigned = (Assignment(line[1], int(line[2]), match[1], match[2]) for line, match in matches)
    return tuple(each for each in assigned if each.file != OWN_PROFILE)


def session_path(text: str) -> Assignment | None:
    """The line of pam_env's files that gives sessions a ``PATH`` without the system's programs, from ``VARIABLES``."""
    own = {each.file: each for each in _parse(text) if each.name == "PATH" and each.file in PAM}  # the last line counts
    for file, each in own.items():
        value = each.value.strip("\"'")
        kept = file != ENVIRONMENT and ("{PATH}" in value)  # nothing is expanded in /etc/environment
        if not kept and not {part.rstrip("/") for part in value.split(":")} & {"/usr/bin", "/bin"}:
            return each
    return None


def path_without_system(ctx: AuditContext) -> Iterator[str]:
    """``PATH`` in /etc/environment or /etc/security/pam_env.conf has neither /usr/bin nor /bin."""
    if each := session_path(ctx.text(VARIABLES)):
        yield str(each)


def path_replaced(ctx: AuditContext) -> Iterator[str]:
    """The login user's shells find another ``nvcc`` first than the toolkit's, which /etc/profile.d/cuda.sh had put on
    their ``PATH`` and which is not first there in the end; bash itself tells which line sets it.
    """
    tools, answer = f"{ctx.section(CudaSection).prefix}/bin", ctx.text(LOGIN)
    first = next((line[5:] for line in answer.splitlines() if line.startswith("nvcc /")), tools)
    found = settings(answer, "PATH")
    in_the_end = found[-1].directories if found else ()
    before = in_the_end[: in_the_end.index(tools)] if tools in in_the_end else (first,)
    if first in before and first != tools and any(tools in each.directories for each in found):
        yield f"{setter(answer, 'PATH', first, tools)}: nvcc is {first}/nvcc"


def login_library(ctx: AuditContext) -> Iterator[str]:
    """In the end, the login user's shells have a directory on the loader's path before the toolkit's that has libraries
    of CUDA's, cuDNN's or the driver's.
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
    """A start file, or pam_env, puts a directory on the loader's path that has libraries of CUDA's, cuDNN's or the
    driver's, such as conda's. Those in /etc/profile.d count where the login user's shells have them before the
    stack's.
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
    """Each library in a directory that a file puts on the loader's path: the place of that line, and the library."""
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
    """A start file, or pam_env, sets PYTHONHOME, or puts a directory on PYTHONPATH that has a module of TensorFlow's or
    of those that it imports.
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
    """A start file, pam_env or pip.conf names a file of certificate authorities, a library to preload or a directory
    for temporary files (TMPDIR) that is not there.
    """
    lines = ctx.text(VARIABLES).splitlines()
    gone = {line.removeprefix("gone ") for line in lines if line.startswith("gone /")}
    for row in filter(None, map(_LINE.fullmatch, lines)):
        words = (word.strip("\"'") for word in _BETWEEN.sub(" ", _COMMENT.sub("", row[3])).split())
        if named := [word for word in words if word in gone]:
            yield f"{row[1]}:{row[2]}: {row[3].strip()}: {', '.join(named)} is not there"


def gpus_hidden(ctx: AuditContext) -> Iterator[str]:
    """A start file, or pam_env, sets CUDA_VISIBLE_DEVICES to nothing, to what is no card of the host, or, for all
    users, to fewer cards than the host has.
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
                yield f"{row[1]}:{row[2]}: CUDA_VISIBLE_DEVICES={value}: programs get {seen} of {cards} GPUs"


def nccl_hindered(ctx: AuditContext) -> Iterator[str]:
    """/etc/nccl.conf, a home's .nccl.conf, a start file or pam_env takes a way from NCCL (``NCCL_P2P_DISABLE=1``,
    ``NCCL_NET=Socket`` …) or ties it to one algorithm or protocol.
    """
    for row in filter(None, map(_LINE.fullmatch, ctx.text(VARIABLES).splitlines())):
        if setting := _NCCL.match(row[3]):
            yield f"{row[1]}:{row[2]}: {setting[1]}"


def _visible(value: str, cards: int) -> int:
    """How many cards CUDA shows: those before the first word that is none."""
    words = [word.strip() for word in value.split(",")]
    known = [bool(_CARD.fullmatch(word)) and (not word.isdigit() or int(word) < cards) for word in words]
    return len(set(words[: known.index(False)] if False in known else words))


def another_cuda(ctx: AuditContext) -> Iterator[str]:
    """A shell's or the system's start file sets a path to another release of CUDA that is there, or to ``compat``."""
    series, installed = ctx.section(CudaSection).series, toolkits(ctx)
    own = {series, series.partition(".")[0]}
    for assignment in assignments(ctx):
        others = (toolkit[1] for toolkit in _TOOLKIT.finditer(assignment.value) if toolkit[2] not in own)
        if _COMPAT.search(assignment.value) or any(_is_there(home, installed) for home in others):
            yield str(assignment)


def _is_there(home: str, installed: Mapping[str, Toolkit]) -> bool:
    """Whether a toolkit is at this path: a missing path is harmless. Paths outside /usr/local are unknown: true."""
    return installed[home].usable if home in installed else not home.startswith(f"{LINK}-")


def lib_not_lib64(ctx: AuditContext) -> Iterator[str]:
    """``LD_LIBRARY_PATH`` is set to a toolkit's directory ``lib``, which no toolkit has."""
    paths = (assignment for assignment in assignments(ctx) if assignment.name == "LD_LIBRARY_PATH")
    yield from (str(assignment) for assignment in paths if _NO_64.search(assignment.value))


def misquoted(ctx: AuditContext) -> Iterator[str]:
    r"""An assignment has a backslash after the toolkit's directory, as in ``lib64\${LD_LIBRARY_PATH…}``."""
    yield from (str(assignment) for assignment in assignments(ctx) if _MISQUOTED.search(assignment.value))


def own_cuda(ctx: AuditContext) -> Iterator[str]:
    """A shell's or the system's start file puts the stack's own toolkit on a path (``PATH``, ``LD_LIBRARY_PATH``), and
    nothing else is wrong with that line.
    """
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
        "somebody's variables name another CUDA, which programs get where that file is read: a shell's start file in"
        " that user's shells, /etc/environment (by pam_env) in logins, ssh, cron and sudo; systemd's units get neither",
        "Take the line out of that file; tools and libraries of the stack are found without any variable",
        "NVIDIA's CUDA installation guide, environment setup",
        sign=Sign("environment", another_cuda, (VARIABLES, TOOLKITS), grave=False),
    ),
    FailureRule(
        "path-replaced",
        "",
        "a start file sets PATH after the stack's does, so login shells do not find the toolkit's own programs first",
        "Let the line keep what was there, PATH=$PATH:DIRECTORY, or take it out of that file",
        "bash(1), INVOCATION",
        sign=Sign("environment", path_replaced, (LOGIN,), grave=False),
    ),
    FailureRule(
        "path-without-system",
        "",
        "pam_env gives sessions a PATH without the system's programs, so commands over ssh find none of them, nor nvcc",
        "Name the system's directories in that line, or take it out: in /etc/environment no variable is expanded, so"
        " $PATH does not keep what was there",
        "pam_env(8); archcraft-os/archcraft#455",
        sign=Sign("environment", path_without_system, (VARIABLES,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "library-path-first",
        "",
        "somebody's LD_LIBRARY_PATH leads to other copies of CUDA's, cuDNN's or the driver's libraries, which programs"
        " get where that file is read, before the stack's",
        "Take the directory out of that line: a conda environment finds its own libraries without it, and those of the"
        " stack are found without any variable",
        "ld.so(8), tensorflow/tensorflow#52988",
        sign=Sign("environment", another_library, (VARIABLES, LOGIN, TOOLKITS), grave=False),
    ),
    FailureRule(
        "python-path-first",
        "",
        "somebody's PYTHONPATH or PYTHONHOME puts other modules before those of every virtual environment: where that"
        " file is read, TensorFlow's programs import them",
        "Take the directory out of that line, and let those who need it read it in their own shells (ROS: source"
        " setup.bash there); python3 -E runs a program without these variables",
        "Python documentation, command line and environment; catkin_pip#49",
        sign=Sign("environment", other_modules, (VARIABLES,), grave=False),
    ),
    FailureRule(
        "gpus-hidden",
        "",
        "CUDA_VISIBLE_DEVICES hides GPUs from every program where that file is read: TensorFlow runs on the processor,"
        " or on fewer cards, though driver and cards are well (nvidia-smi shows them all)",
        "Take the line out of that file; who wants a program without GPUs sets the variable for that program alone"
        " (CUDA_VISIBLE_DEVICES=-1 python …)",
        "CUDA C++ Programming Guide, CUDA environment variables; tensorflow/tensorflow#2175",
        sign=Sign("environment", gpus_hidden, (VARIABLES, PCI), grave=False),
    ),
    FailureRule(
        "nccl-hindered",
        "",
        "a file that every program with NCCL reads takes a way between the cards or hosts from it (peer access, shared"
        " memory, InfiniBand, NVLink SHARP), or ties it to one algorithm: training on several GPUs is slow for all",
        "Ask who set it: often it went around a fault of one day. Where nobody needs it, take the line out; who does"
        " sets it for that program alone. NCCL_DEBUG=INFO says at a program's start which ways NCCL takes",
        "NCCL user guide, environment variables (/etc/nccl.conf, ~/.nccl.conf); NVIDIA/nccl#631",
        sign=Sign("environment", nccl_hindered, (VARIABLES,), grave=False),
    ),
    FailureRule(
        "variable-names-missing-file",
        "",
        "a setting for all programs of a session, or for pip, names a file or directory that is not there: with"
        " certificate authorities every https connection of those programs fails, with a library to preload each prints"
        " an error, and without its TMPDIR compilers, pip builds and installers fail",
        "Take the line out of that file, or bring the file back; the host's own authorities are"
        " /etc/ssl/certs/ca-certificates.crt, which needs no variable",
        "requests, REQUESTS_CA_BUNDLE; OpenSSL, SSL_CERT_FILE; pip configuration; ld.so(8); pypi/warehouse#3645",
        sign=Sign("environment", file_gone, (VARIABLES,), grave=False),
    ),
    FailureRule(
        "path-lib-not-lib64",
        "",
        "LD_LIBRARY_PATH names the toolkit's directory lib, and the libraries are in lib64",
        "Take the line out of that file, or write lib64; the stack's libraries are found without it",
        "NVIDIA/deepops, cuda-vars.sh",
        sign=Sign("environment", lib_not_lib64, (VARIABLES,), grave=False),
    ),
    FailureRule(
        "path-misquoted",
        "",
        "a backslash of a copied line makes the path one name that does not exist",
        "Take the line out of that file; tools and libraries of the stack are found without it",
        "tensorflow/tensorflow#20271",
        sign=Sign("environment", misquoted, (VARIABLES,), grave=False),
    ),
    FailureRule(
        "path-in-start-file",
        "",
        "somebody's start file puts the stack's CUDA on a path: only shells read it (pam_env reads /etc/environment,"
        " for logins, ssh, cron and sudo, and on older systems ~/.pam_environment), systemd's units never do, and it"
        " still leads to this release when the stack has moved on",
        "Take the line out of that file; tools and libraries of the stack are found without any variable",
        "NVIDIA's CUDA installation guide, environment setup",
        sign=Sign("environment", own_cuda, (VARIABLES, LOGIN, TOOLKITS), grave=False),
    ),
)
