"""A driver from a .run taken away, whole or half: the real commands on a made-up host below a directory."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.plan.model import Answer, Change, Facts, Refusal
from hostwright.resources.system.services import Service
from hostwright.standard.roles.driver.states import steps as driver_steps
from hostwright.standard.roles.driver.states.gpu_use import DISPLAY
from hostwright.standard.roles.driver.states.removal import STATE, DriverGone, Remains
from hostwright.standard.roles.driver.states.runfile import NvidiaRunfile, WithDriver
from tests.unit.support.facts import changes_of, facts_for
from tests.unit.support.shell import ask, program, run
from tests.unit.support.stacks import load_stack

V = "470.182.03"
LIB = "usr/lib/x86_64-linux-gnu"
MODULE = "lib/modules/5.10.0/updates/dkms/nvidia.ko"
RUNFILE = NvidiaRunfile(load_stack("tensorflow-2.9").artifact("driver"), V)

#: what the installer leaves, with links as ``-> target``
WHOLE = {
    f"{LIB}/libcuda.so.{V}": "cuda",
    f"{LIB}/libcuda.so.1": f"-> libcuda.so.{V}",
    f"{LIB}/libcuda.so": "-> libcuda.so.1",
    f"{LIB}/libnvidia-ml.so.{V}": "ml",
    f"{LIB}/libnvidia-ml.so.1": f"-> libnvidia-ml.so.{V}",
    "usr/bin/nvidia-smi": "smi",
    "usr/bin/nvidia-installer": "installer",
    "usr/share/doc/NVIDIA_GLX-1.0/README.txt": "read me",
    "etc/OpenCL/vendors/nvidia.icd": "icd",
    "etc/modprobe.d/nvidia-installer-disable-nouveau.conf": "blacklist nouveau",
    f"usr/src/nvidia-{V}/dkms.conf": "dkms",
    f"var/lib/dkms/nvidia/{V}/source": "source",
    "var/lib/dkms/nvidia/kernel-5.10.0-x86_64": f"-> {V}/5.10.0",
    MODULE: "module",
}
#: of these, what counts only beside something that is surely a driver's
SAYS_LITTLE = {"usr/bin/nvidia-smi", "usr/share/doc/NVIDIA_GLX-1.0/README.txt", "etc/OpenCL/vendors/nvidia.icd"}
#: what others have beside it
OTHERS = {
    f"{LIB}/libnvidia-container.so.1.17.8": "toolkit",
    f"{LIB}/libnvidia-container.so.1": "-> libnvidia-container.so.1.17.8",
    f"{LIB}/libc.so.6": "c",
    "usr/bin/nvidia-ctk": "toolkit",
    "etc/modprobe.d/site.conf": "site",
    "lib/modules/5.10.0/kernel/net.ko": "net",
    "lib/modules/5.10.0/modules.dep": "index",
    "var/log/nvidia-installer.log": "history",
}


class Host:
    """A directory that stands for a host's root; ``dpkg-query -S`` answers from the file ``owned``."""

    def __init__(self, root: Path):
        self.root = root
        self.bin = root / "bin"
        (root / "owned").touch()
        program(
            self.bin,
            "dpkg-query",
            'shift; [ "$1" != -- ] || shift; status=1\nfor p; do while read -r o; do case $o in $p) '
            f'echo "pkg: $o"; status=0 ;; esac; done <{root}/owned; done; exit $status',
        )
        program(self.bin, "modinfo", f"[ -e {root}/{MODULE} ] && echo {root}/{MODULE}")
        program(self.bin, "dkms", f'rm -f {root}/{MODULE}; echo "$@" >>{root}/dkms.log; exit 1')
        program(self.bin, "depmod", f'echo "$@" >>{root}/depmod.log')
        program(self.bin, "ldconfig", f"echo >>{root}/ldconfig.log")

    def put(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text.startswith("-> "):
                path.symlink_to(text[3:])
            else:
                path.write_text(text)

    def owned(self, *names: str) -> None:
        with (self.root / "owned").open("a") as file:
            file.writelines(f"{self.root / name}\n" for name in names)

    def uninstaller(self, script: str) -> None:
        path = program(self.root / "usr/bin", "nvidia-uninstall", f"cd {self.root}\n{script}")
        assert path.exists()

    def record(self, *names: str) -> None:
        """Our record of the driver's files, as they are now."""
        path = self.root / driver_steps.RECORD.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        stats = [(self.root / name, (self.root / name).stat()) for name in names]
        path.write_text("".join(f"{one}|{stat.st_size}|{int(stat.st_mtime)}\n" for one, stat in stats))

    def script(self, text: str) -> str:
        path = f"PATH={self.bin}:{self.root}/usr/bin:{os.environ['PATH']}\n"
        return path + re.sub(r"(?<=[\s\"'=])/(usr|var|etc|lib|sys)/", rf"{self.root}/\1/", text)

    def plan(self) -> Change | None:
        answers = {STATE: Answer(*ask(self.script(STATE.script))), DISPLAY: Answer(0, "")}
        return DriverGone().plan(Facts(answers))

    def remove(self) -> None:
        change = self.plan()
        assert change is not None
        assert run(self.script(change.steps[-1].script)).returncode == 0
        assert self.plan() is None, "one look and one run take it all"

    def tree(self) -> dict[str, str]:
        names = ("usr", "etc", "lib", "var")
        paths = [path for name in names for path in (self.root / name).rglob("*")]
        return {
            str(path.relative_to(self.root)): f"-> {path.readlink()}" if path.is_symlink() else path.read_text()
            for path in paths
            if path.is_symlink() or path.is_file()
        }


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path)
    made.put(OTHERS)
    made.owned(f"{LIB}/libnvidia-container.so.1.17.8", "usr/bin/nvidia-ctk")
    return made


def test_a_host_without_a_driver_has_nothing_to_take_away(host: Host) -> None:
    assert host.plan() is None


def test_the_uninstaller_is_asked_first_and_what_it_leaves_goes_by_name(host: Host) -> None:
    host.put(WHOLE)
    host.uninstaller(f"rm {LIB}/libcuda.so*; rm -r usr/bin/nvidia-smi usr/bin/nvidia-uninstall")
    host.remove()
    assert host.tree() == OTHERS
    assert (host.root / "ldconfig.log").exists()
    assert (host.root / "depmod.log").read_text() == "-a 5.10.0\n"


def test_a_half_removed_driver_comes_out_clean(host: Host) -> None:
    host.put(WHOLE)
    (host.root / "usr/bin/nvidia-installer").unlink()
    host.remove()
    assert host.tree() == OTHERS
    assert not (host.root / "etc/OpenCL").exists()
    assert f"remove -m nvidia -v {V} --all" in (host.root / "dkms.log").read_text()


@pytest.mark.parametrize("left", sorted(set(WHOLE) - SAYS_LITTLE))
def test_any_one_thing_that_is_left_is_seen_and_goes(host: Host, left: str) -> None:
    host.put({left: WHOLE[left]})
    host.remove()
    assert left not in host.tree()


@pytest.mark.parametrize("program_of", ["usr/bin/nvidia-smi", "etc/OpenCL/vendors/nvidia.icd"])
def test_a_file_that_only_has_such_a_name_stays(host: Host, program_of: str) -> None:
    """A wrapper of the site's, say, that the uninstaller gave back."""
    host.put({program_of: "the site's"})
    assert host.plan() is None


def test_recorded_driver_files_go_and_replaced_ones_stay(host: Host) -> None:
    host.put({"usr/bin/nvidia-smi": "ours", "usr/bin/nvidia-modprobe": "ours too"})
    host.record("usr/bin/nvidia-smi", "usr/bin/nvidia-modprobe")
    (host.root / "usr/bin/nvidia-smi").write_text("the site's own, of another size")
    host.remove()
    assert host.tree() == {**OTHERS, "usr/bin/nvidia-smi": "the site's own, of another size"}


def test_what_the_uninstaller_gives_back_stays(host: Host) -> None:
    host.put(WHOLE)
    host.record("usr/bin/nvidia-smi")
    host.uninstaller(
        f"rm -r {LIB}/libcuda.so* {LIB}/libnvidia-ml.so* usr/src usr/share usr/bin/nvidia-*install* "
        f"etc/modprobe.d/nvidia* var/lib/dkms {MODULE}; echo 'the wrapper of before' >usr/bin/nvidia-smi"
    )
    host.remove()
    assert host.tree()["usr/bin/nvidia-smi"] == "the wrapper of before\n"


def test_a_distributions_driver_is_left_alone(host: Host) -> None:
    theirs = {**WHOLE, f"{LIB}/libnvidia-cfg.so.1": "-> /etc/alternatives/libnvidia-cfg"}
    del theirs["usr/bin/nvidia-installer"], theirs["etc/modprobe.d/nvidia-installer-disable-nouveau.conf"]
    host.put(theirs)
    host.owned(*(name for name in theirs if not name.startswith(("var", "lib/modules"))), f"usr/src/nvidia-{V}")
    (host.root / "sys/module/nvidia").mkdir(parents=True)
    (host.root / "sys/module/nvidia/version").write_text(V)
    assert host.plan() is None


def test_another_module_of_nvidias_makes_no_distributions_driver(host: Host) -> None:
    host.put({MODULE: "module", "usr/src/nvidia-fs-2.20/dkms.conf": "gds", "var/lib/dkms/nvidia-fs/2.20/source": "gds"})
    host.owned("usr/src/nvidia-fs-2.20", "usr/src/nvidia-fs-2.20/dkms.conf")
    host.remove()
    assert MODULE not in host.tree()
    assert "var/lib/dkms/nvidia-fs/2.20/source" in host.tree()


def test_a_file_that_dpkg_knows_under_its_other_name_is_owned(host: Host) -> None:
    """With merged /usr dpkg may know /lib/… for what lies in /usr/lib/…"""
    functions = STATE.script.partition("there()")[0]
    program(host.bin, "dpkg-query", "for p; do [ \"$p\" != /lib/x/a.so ] || echo 'pkg:amd64, other: /lib/x/a.so'; done")
    done = run(host.script("").strip() + "\n" + functions + "printf '/usr/lib/x/a.so\\n/usr/lib/x/b.so\\n' | unowned")
    assert done.stdout == b"/usr/lib/x/b.so\n"


def test_a_loaded_module_leaves_the_kernel_first_and_that_disturbs() -> None:
    answer = {"loaded=": f"loaded={V}\nfile=/usr/bin/nvidia-installer\n", "display-manager": ""}
    (change,) = changes_of(DriverGone(), answer)
    assert len(change.steps) == 2
    assert "modprobe -r" in change.steps[0].script
    assert "no headers of the running kernel" not in change.steps[0].script  # nothing shall be built
    assert change.disturbs == "takes the driver away"
    (change,) = changes_of(DriverGone(force=True), answer)
    assert change.disturbs == "takes the driver away"  # whoever uses it is named before the end
    (change,) = changes_of(DriverGone(force=True, allowed=True), answer)
    assert change.disturbs == ""
    (change,) = changes_of(DriverGone(), {**answer, "loaded=": "file=/usr/bin/nvidia-installer\n"})
    assert (len(change.steps), change.disturbs) == (1, "")


@pytest.mark.parametrize(
    ("marks", "release", "lost"),
    [
        ((), "", "the driver 460.32.03 that somebody else installed"),
        (
            (".theirs", ""),
            '{"schema": 2, "roles": {"driver": {}}}',
            "the driver 460.32.03 that somebody else installed",
        ),
        (("",), "", ""),
        ((), '{"schema": 2, "roles": {"driver": {}}}', ""),
    ],
)
def test_a_driver_that_was_there_before_is_taken_away_only_with_a_yes(
    marks: tuple[str, ...], release: str, lost: str
) -> None:
    lines = [
        "file=/usr/lib/x86_64-linux-gnu/libcuda.so.460.32.03",
        *(f"mark={driver_steps.RECORD}{mark}" for mark in marks),
    ]
    facts = facts_for(DriverGone(), {"loaded=": "\n".join(lines), "display-manager": "", "release.json": release})
    assert DriverGone().losses(facts) == ((lost,) if lost else ())


def test_a_host_that_shows_a_screen_is_refused_unless_forced() -> None:
    answer = {"loaded=": f"loaded={V}\n", "display-manager": "gdm.service\n"}
    (change,) = changes_of(DriverGone(), answer)
    assert isinstance(change, Refusal) and "gdm.service" in change.sentence
    (change,) = changes_of(DriverGone(force=True), answer)
    assert isinstance(change, Change) and change.steps


def test_the_driver_and_what_works_with_it_are_taken_away() -> None:
    assert RUNFILE.removal() == (DriverGone(),)
    service = Service("nvidia-persistenced.service")
    assert WithDriver(RUNFILE, service).removal() == service.removal() != ()
    assert DriverGone().removal() == ()


@given(st.text(max_size=80) | st.from_regex(r"(loaded|file|dkms|mark)=.*", fullmatch=True))
def test_any_answer_is_read(text: str) -> None:
    remains = Remains.read(text)
    assert (str(remains) == "absent") == (remains == Remains("", (), (), ()))
