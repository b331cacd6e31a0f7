"""Controllers are Linux and macOS: nothing that runs on the controller uses what only Linux has.

Hosts are Linux, so the text of remote programs may name ``/proc`` and options of GNU's tools as it likes. What Python
itself does is the controller's: the names it takes from its modules, the paths it opens, the programs it starts from
lists of words. Only these are looked at. A name asked for by ``getattr`` with a default has another way beside it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import hostwright
from tests.places import SENT_TO_HOSTS

TREE = Path(hostwright.__file__).resolve().parents[1]
#: By module, the names that Python's documentation gives to Linux alone, or not to macOS.
ONLY_LINUX = {
    "os": r"O_(TMPFILE|PATH|DIRECT|NOATIME|RSYNC|LARGEFILE)|sched_\w+|memfd_create|MFD_\w+|pidfd_\w+|P_PIDFD|waitid"
    r"|posix_fallocate|posix_fadvise|POSIX_FADV_\w+|copy_file_range|splice|SPLICE_\w+|eventfd\w*|EFD_\w+|timerfd_\w+"
    r"|fdatasync|getrandom|GRND_\w+|pipe2|(get|set|list|remove)xattr|XATTR_\w+|unshare|setns|CLONE_\w+|setresuid"
    r"|setresgid|getresuid|getresgid|sendfile|preadv2|pwritev2|RWF_\w+|process_cpu_count",
    "signal": r"SIG(RTMIN|RTMAX|PWR|STKFLT|POLL|CLD)|sigwaitinfo|sigtimedwait|pidfd_send_signal",
    "select": r"epoll|EPOLL\w+",
    "socket": r"TCP_(KEEPIDLE|USER_TIMEOUT|QUICKACK|CORK|DEFER_ACCEPT|INFO|CONGESTION|SYNCNT|LINGER2|WINDOW_CLAMP)"
    r"|SO_(PEERCRED|BINDTODEVICE|MARK|PRIORITY|DOMAIN|PROTOCOL)|SOCK_(CLOEXEC|NONBLOCK)"
    r"|AF_(NETLINK|PACKET|ALG|VSOCK|CAN|QIPCRTR|TIPC)|MSG_(NOSIGNAL|ERRQUEUE|MORE)|IP_(MTU_DISCOVER|BIND_ADDRESS_NO_PORT)",
    "fcntl": r"F_(OFD_\w+|ADD_SEALS|GET_SEALS|SETPIPE_SZ|GETPIPE_SZ|NOTIFY|SETLEASE|GETLEASE|SETSIG)|DN_\w+",
    "resource": r"prlimit|RLIMIT_(SIGPENDING|MSGQUEUE|NICE|RTPRIO|RTTIME|OFILE|SWAP|NPTS)|RUSAGE_THREAD",
    "time": r"CLOCK_(BOOTTIME|TAI|MONOTONIC_COARSE|REALTIME_COARSE)|pthread_getcpuclockid",
    "mmap": r"MAP_(POPULATE|STACK|HUGETLB)|MADV_(DONTFORK|HUGEPAGE|MERGEABLE)",
    "platform": r"freedesktop_os_release|libc_ver",
}
#: Places that only Linux has, and libraries by the names that it gives them.
LINUX_PATHS = re.compile(
    r"/(proc|sys|run)(/|$)|/dev/(shm|disk|mapper)(/|$)|/etc/(os-release|machine-id)|.*\.so(\.\d+)*$"
)
#: What opens a path here; a `PurePosixPath` is a host's.
OPENS = {"Path", "open", "CDLL", "expanded"}
#: Options of GNU's or util-linux's programs that those of macOS read otherwise or not at all.
GNU_OPTIONS = {
    "stat": r"-c.*|--format.*|--printf.*",
    "readlink": r"-[em].*|--canonicalize.*",
    "date": r"-d.*|--date.*|--iso.*|-I.*",
    "sed": r"-i|-E?i.*|--in-place.*|-r|-z",
    "cp": r"--.*|-[tTubdx].*",
    "mv": r"--.*|-[tTub].*",
    "ln": r"--.*|-[tTr].*",
    "ls": r"--.*",
    "du": r"--.*|-b",
    "ps": r"--.*|f",
    "tar": r"--(sort|mtime|owner|group).*",
    "xargs": r"-[rd].*|--.*",
    "grep": r"-P.*",
    "find": r"-printf|-regextype",
    "tail": r"--.*",
    "mktemp": r"--.*",
}
#: Programs that no macOS has.
LINUX_PROGRAMS = {
    "flock", "setsid", "ip", "ss", "systemctl", "systemd-run", "journalctl", "timeout", "sha256sum", "getent",
    "ldconfig", "dpkg", "apt", "apt-get", "nproc", "lsblk", "findmnt", "unshare", "nsenter", "chrt", "taskset",
}  # fmt: skip
#: Where the other way stands beside it, and which test takes it.
HAS_ANOTHER_WAY = {
    ("operator.py", "/proc"): "test_operator.py: without it, ps(1) says when a process began",
    ("operator.py", "/etc/machine-id"): "test_operator.py: without it, the name of the machine is hashed",
    ("aptroot.py", "apt-get"): "test_aptarchive.py: without it, the lock file comes from a machine that has it",
    ("ownership.py", "os.getxattr"): "test_foreign_sites.py: without it, the mode alone counts",
    ("aptroot.py", "platform.freedesktop_os_release"): "asked only on a machine that has apt",
}


def linux_only(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of each thing that only Linux has, in the text of a module that runs on the controller."""
    tree = ast.parse(text)
    modules = dict(_imported(tree))
    constants = dict(_constants(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for name in node.names:
                if re.fullmatch(ONLY_LINUX.get(node.module or "", "(?!)"), name.name):
                    yield node.lineno, f"{node.module}.{name.name}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id, "")
            if re.fullmatch(ONLY_LINUX.get(module, "(?!)"), node.attr):
                yield node.lineno, f"{module}.{node.attr}"
        elif isinstance(node, ast.Call):
            yield from ((node.lineno, path) for path in _opened(node, constants) if LINUX_PATHS.match(path))
        elif isinstance(node, ast.List | ast.Tuple):
            yield from ((node.lineno, word) for word in _started(node))


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names of modules as the file calls them, with the modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.asname or name.name, name.name) for name in node.names)


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that the file gives to texts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from ((target.id, node.value.value) for target in node.targets if isinstance(target, ast.Name))


def _opened(node: ast.Call, constants: dict[str, str]) -> Iterator[str]:
    """The paths in a call that opens them here."""
    called = node.func
    if isinstance(called, ast.Attribute):
        here = called.attr in OPENS or (isinstance(called.value, ast.Name) and called.value.id in {"os", "shutil"})
    else:
        here = isinstance(called, ast.Name) and called.id in OPENS
    for given in node.args if here else ():
        for part in ast.walk(given):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value
            elif isinstance(part, ast.Name) and part.id in constants:
                yield constants[part.id]


def _started(node: ast.List | ast.Tuple) -> Iterator[str]:
    """The program, or its options, of a list of words that could not be started on macOS."""
    words = [part.value if isinstance(part, ast.Constant) else None for part in node.elts]
    if len(words) < 2 or not isinstance(words[0], str):
        return
    program = words[0].rpartition("/")[2]
    options = [word for word in words[1:] if isinstance(word, str) and word.startswith("-")]
    if program in LINUX_PROGRAMS and options:
        yield program
    yield from (f"{program} {word}" for word in options if re.fullmatch(GNU_OPTIONS.get(program, "(?!)"), word))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import os\nos.memfd_create('x')", "os.memfd_create"),
        ("import os as system\nsystem.open('.', system.O_TMPFILE)", "os.O_TMPFILE"),
        ("from os import sched_getaffinity", "os.sched_getaffinity"),
        ("import select\nselect.epoll()", "select.epoll"),
        ("import socket\ns.setsockopt(6, socket.TCP_KEEPIDLE, 5)", "socket.TCP_KEEPIDLE"),
        ("import signal\nsignal.signal(signal.SIGRTMIN, f)", "signal.SIGRTMIN"),
        ("import fcntl\nfcntl.fcntl(1, fcntl.F_OFD_SETLK)", "fcntl.F_OFD_SETLK"),
        ("from pathlib import Path\nPath('/proc/self').exists()", "/proc/self"),
        ("WHERE = '/sys/class'\nPath(WHERE) / 'net'", "/sys/class"),
        ("import os\nos.listdir(f'/proc/{pid}')", "/proc/"),
        ("with open('/dev/disk/by-id') as file: ...", "/dev/disk/by-id"),
        ("import pathlib\npathlib.Path('/run/x').touch()", "/run/x"),
        ("import ctypes\nctypes.CDLL('libc.so.6').prctl(1)", "libc.so.6"),
        ("import subprocess\nsubprocess.run(['stat', '-c', '%s', path])", "stat -c"),
        ("import subprocess\nsubprocess.run(['/usr/bin/date', '-d', text])", "date -d"),
        ("import subprocess\nsubprocess.run(['flock', '-n', path])", "flock"),
    ],
)
def test_uses_of_linux_only_features_are_found(text: str, found: str) -> None:
    assert [name for _, name in linux_only(text)] == [found]


@pytest.mark.parametrize(
    "text",
    [
        "import socket\nQUICKACK = getattr(socket, 'TCP_QUICKACK', 0)",  # with another way
        "BOOT = Probe('cat /proc/sys/kernel/random/boot_id')",  # a question to a host
        "commands = sh('stat -c %%s %s && date -d %s', path, day)",  # a line of a program for a host
        "WHERE = PurePosixPath('/run/hostwright')",  # a path on a host
        "RUN_DIR = '/run/hostwright'\nprogram = sh('mkdir -p %s', RUN_DIR)",
        "import os\nos.fsync(1)\nos.kill(1, 0)",
        "import subprocess\nsubprocess.run(['git', 'status', '--porcelain'])",
        "names = ('ip', 'ss', 'flock')",  # words, and no program with its options
    ],
)
def test_what_a_host_is_asked_and_what_macos_has_too_is_not(text: str) -> None:
    assert list(linux_only(text)) == []


def test_the_controllers_code_runs_on_macos() -> None:
    sources = [*TREE.glob("hostwright/**/*.py"), *TREE.glob("roles/**/*.py"), TREE / "tasks.py"]
    files = [path for path in sources if not path.match(SENT_TO_HOSTS)]
    assert len(files) > 100
    found = {(path, line, name) for path in files for line, name in linux_only(path.read_text("utf-8"))}
    unexpected = {one for one in found if (one[0].name, one[2]) not in HAS_ANOTHER_WAY}
    assert sorted(f"{path.relative_to(TREE)}:{line}: only Linux has {name}" for path, line, name in unexpected) == []
    assert {(path.name, name) for path, _, name in found} == set(HAS_ANOTHER_WAY), "an exception that is not needed"
