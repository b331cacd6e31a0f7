"""Room for what is to be installed, on filesystems as hosts really have them: each test mounts its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.common.quoting import sh, sh_file
from hostwright.plan.model import Refusal
from hostwright.plan.testing import facts_for
from hostwright.resources.system import room as module
from hostwright.resources.system.room import FreeSpace
from hostwright.stack.stack import BOOT, WORK, Share
from tests.unit.support.forks import forks
from tests.unit.support.mounts import in_namespace

MB = 1_000_000
DIRECTORIES = (
    "boot", "opt", "tmp", "usr/bin", "usr/local", "var/cache", "var/lib/dpkg/info", "var/lib/dkms",
)  # fmt: skip

SHARES = (
    Share("the driver", "/usr/bin/smi", WORK, 25),
    Share("the driver", "/usr/bin/smi", "/usr", 15),
    Share("the driver", "/usr/bin/smi", BOOT, 0),
    Share("the toolkit", "/usr/local/tool/bin/cc", "/var/cache/hostwright/artifacts", 10),
    Share("the toolkit", "/usr/local/tool/bin/cc", "/usr/local/tool", 30),
    Share("Python", "/opt/science/bin/python", "/opt/hostwright/venvs", 20),
)


class Host:
    """A host's directories below a directory: what is mounted there, and what a plan says of it."""

    def __init__(self, root: Path):
        self.root = root
        self.script = ""
        for name in DIRECTORIES:
            (root / name).mkdir(parents=True)
        (root / "boot" / "initrd.img-5.10.0-1-amd64").write_bytes(bytes(10 * MB))

    def mount(self, directory: str, options: str) -> Host:
        path = self.root / directory.lstrip("/")
        self.script += sh("mkdir -p %s; mount -t tmpfs -o %s tmpfs %s\n", path, options, path)
        return self

    def run(self, command: str) -> Host:
        self.script += f"cd {self.root}\n{command}\n"
        return self

    def sentence(self, total_bytes: int = 100 * MB) -> str:
        """Why the host is refused, with its paths as a host has them; empty where it is not."""
        space = FreeSpace(total_bytes, SHARES)
        done = in_namespace(self.script + self._here(space.probes()[0].script))
        assert done.returncode == 0, done.stderr
        mount = in_namespace(f"findmnt -n -o TARGET -T {self.root}").stdout.strip()  # this machine's
        answer = done.stdout.replace(str(self.root), "").replace(f"\t{mount}\t", "\t/\t")
        planned = space.plan(facts_for(space, {"findmnt": answer}))
        assert planned is None or isinstance(planned, Refusal)
        return planned.sentence if planned else ""

    def _here(self, script: str) -> str:
        """The probe, asking for the directories below the root in their places."""
        values = {
            "directories": tuple(f"{self.root}{name}" for name in self._asked()),
            "paths": tuple(f"{self.root}{share.unless}" for share in SHARES),
        }
        text = sh_file(module.__file__, "sh/room.sh", **values)
        assert all(name in script for name in self._asked())
        return "set +e\n" + text.replace("/boot/initrd", f"{self.root}/boot/initrd")

    @staticmethod
    def _asked() -> tuple[str, ...]:
        return tuple({share.directory for share in SHARES} - {WORK}) + tuple(module._ALWAYS) + module.WORK_DIRS


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.mark.parametrize(
    ("directory", "options"),
    [
        ("tmp", "noexec,nosuid,nodev"),
        ("tmp", "size=1m"),
        ("home", "noexec"),
        ("run", "noexec"),
        ("var/log", "size=1m"),
        ("var/lib/docker", "noexec"),
        ("var/tmp", "noexec,nosuid,nodev"),
        ("usr", "nodev"),
        ("var", "nosuid,nodev"),
        ("boot", "noexec,nosuid,size=15m"),
        ("opt", "nosuid,nodev"),
    ],
)
def test_what_does_not_matter_refuses_nobody(host, directory, options):
    keep = "cp -a var/. keep; cp boot/* keep" if directory in {"var", "boot"} else ""
    host.run(f"mkdir keep; {keep}")
    host.mount(directory, options)
    if directory == "var":
        host.run("cp -a keep/. var")
    if directory == "boot":
        host.run("head -c 5000000 /dev/zero >boot/initrd.img-5.10.0-1-amd64")
    assert host.sentence() == ""


def test_a_noexec_var_is_refused_because_packages_scripts_run_there(host):
    host.mount("/var", "noexec,nosuid,nodev").run("mkdir -p var/lib/dpkg/info")
    assert host.sentence() == (
        "/var is mounted noexec, and maintainer scripts of packages run from /var/lib/dpkg/info: mount -o remount,exec"
        " /var (and in /etc/fstab)"
    )


def test_a_host_that_has_everything_starts_no_process_to_say_so(tmp_path):
    (tmp_path / "tool").touch()
    whole = Share("the tool", str(tmp_path / "tool"), "/opt", 100)
    assert forks(FreeSpace(MB, (whole,)).probes()[0].script) == 0


def test_a_noexec_var_of_a_host_that_has_everything_is_its_own_affair(host):
    for share in SHARES:
        host.run(sh("mkdir -p %s", f".{share.unless}"))
    assert host.mount("/var", "noexec").sentence() == ""


@pytest.mark.parametrize(
    ("directory", "options", "what"),
    [
        ("/usr/local", "ro", "/usr/local is mounted read-only, and the toolkit goes to /usr/local/tool"),
        ("/usr/local", "noexec", "/usr/local is mounted noexec, and the toolkit goes to /usr/local/tool"),
        ("/opt", "ro", "/opt is mounted read-only, and Python goes to /opt/hostwright/venvs"),
        ("/opt", "noexec", "/opt is mounted noexec, and Python goes to /opt/hostwright/venvs"),
        ("/usr", "ro", "/usr is mounted read-only, and the driver goes to /usr"),
        ("/boot", "ro", "/boot is mounted read-only, and the driver goes to /boot"),
        ("/usr/local/tool", "ro", "/usr/local/tool is mounted read-only, and the toolkit goes to /usr/local/tool"),
        ("/var/cache/hostwright", "ro", "/var/cache/hostwright is mounted read-only, and the toolkit goes to"),
    ],
)
def test_what_cannot_be_written_or_run_is_said_with_what_to_do(host, directory, options, what):
    sentence = host.mount(directory, options).sentence()
    assert sentence.startswith(what)
    assert f": mount -o remount,{'exec' if options == 'noexec' else 'rw'} {directory} (and in /etc/fstab)" in sentence


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (
            "touch opt/hostwright",
            "/opt/hostwright is not a directory, and Python goes to /opt/hostwright/venvs: move it",
        ),
        (
            "touch usr/local/tool",
            "/usr/local/tool is not a directory, and the toolkit goes to /usr/local/tool: move it",
        ),
        ("rmdir opt; ln -s /not/there opt", "/opt is a broken link, and Python goes to /opt/hostwright/venvs: move it"),
        ("mkdir -p var/lib; touch var/lib/hostwright", "/var/lib/hostwright is not a directory, and Hostwright"),
    ],
)
def test_what_is_in_a_directorys_place_is_named(host, made, what):
    assert host.run(made).sentence().startswith(what)


def test_a_link_to_another_filesystem_is_counted_there(host):
    host.mount("/data", "size=10m").run("mkdir data/opt; rmdir opt; ln -s data/opt opt")
    assert host.sentence() == (
        "too little disk for the driver, the toolkit, Python: /data has 10 MB free and 20 MB are needed; free some or"
        " enlarge it"
    )


def test_two_mounts_of_one_filesystem_are_added_up(host):
    host.mount("/data", "size=45m").run("mkdir data/opt data/local")
    host.run("mount --bind data/opt opt; mount --bind data/local usr/local")
    assert "has 47 MB free and 50 MB are needed" in host.sentence()


def test_a_small_tmp_and_var_are_passed_over_for_the_work(host):
    small = host.mount("tmp", "size=1m").mount("/var/lib/hostwright", "size=1m").mount("/opt", "size=30m")
    assert "/opt has" not in small.sentence(), "20 MB for Python there; the 25 MB of work find more room elsewhere"


def test_a_directory_that_is_not_there_yet_counts_where_it_will_be(host):
    host.run("rmdir opt").mount("/usr/local", "size=10m")
    assert host.sentence().startswith("too little disk for the driver, the toolkit, Python: /usr/local has 10 MB free")


def test_inodes_count_as_well(host):
    host.mount("/opt", "size=100m,nr_inodes=20")
    assert "/opt has 19 inodes free and 200 are needed" in host.sentence()


def test_a_full_boot_is_named_before_the_initramfs_is_rebuilt(host):
    host.mount("/boot", "size=15m").run("head -c 10000000 /dev/zero >boot/initrd.img-5.10.0-1-amd64")
    sentence = host.sentence()
    assert "/boot has 6 MB free and 10 MB are needed to write another initramfs (apt-get autoremove --purge" in sentence


def test_where_no_program_may_run_at_all_it_is_said_before(host):
    for directory in ("tmp", "/var/lib/hostwright", "/opt/hostwright/work", "/usr/local/lib"):
        host.mount(directory, "noexec")
    sentence = host.sentence()
    assert sentence.startswith(
        "programs cannot be executed on /opt/hostwright/work, /tmp, /usr/local/lib, /var/lib/hostwr"
    )
    assert "run mount -o remount,exec for one of these, and remove noexec in /etc/fstab" in sentence
