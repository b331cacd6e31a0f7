"""The steps of the driver's installation, where /bin/sh can run them: what is looked at before anything is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from hostwright.common.quoting import sh
from hostwright.standard.roles.driver.states import steps as driver_steps
from hostwright.standard.roles.driver.states.gpu_use import BUSY_PROBES
from hostwright.standard.roles.driver.states.runfile import DriverState, NvidiaRunfile, WithDriver
from tests.places import PROJECT
from tests.unit.support.known import KNOWN
from tests.unit.support.mounts import in_namespace
from tests.unit.support.shell import ask, program, run
from tests.unit.support.stacks import load_stack

STACK = load_stack("tensorflow-2.9")
V = "470.182.03"


def test_new_work_stops_the_step_before_services_stop(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    program(programs, "find", "echo /proc/4711/fd/3")
    program(programs, "systemctl", f'echo "$@" >> {tmp_path}/done')
    text = driver_steps.unload(force=False, build=False).replace("/proc/$p/comm", f"{tmp_path}/$p")
    (tmp_path / "4711").write_text("python3\n")
    done = run(text, path=programs)
    assert (done.returncode, done.stdout) == (1, b"hostwright: the kernel module nvidia is in use by: python3 (4711)\n")
    assert not (tmp_path / "done").exists()


def test_services_of_ours_do_not_stop_the_step(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    program(programs, "find", "echo /proc/4711/fd/3")
    program(programs, "systemctl", f'echo "$@" >> {tmp_path}/done')
    text = driver_steps.unload(force=False, build=False).replace("/sys/module", f"{tmp_path}/module")
    (tmp_path / "4711").write_text("nv-fabricmanage\n")
    (tmp_path / "cgroup").write_text("0::/system.slice/nvidia-fabricmanager.service\n")
    text = text.replace("/proc/$p/comm", f"{tmp_path}/$p").replace("/proc/$1/cgroup", f"{tmp_path}/cgroup")
    done = run(text, path=programs)
    assert done.returncode == 0
    assert "stop nvidia-fabricmanager" in (tmp_path / "done").read_text()


def test_a_process_that_only_has_the_name_of_a_service_stops_the_step(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    program(programs, "find", "echo /proc/4711/fd/3")
    program(programs, "systemctl", f'echo "$@" >> {tmp_path}/done')
    (tmp_path / "4711").write_text("nv-fabricmanage\n")
    (tmp_path / "cgroup").write_text("0::/user.slice/user-1000.slice/nvidia-fabricmanager.service\n")
    text = driver_steps.unload(force=False, build=False).replace("/proc/$p/comm", f"{tmp_path}/$p")
    done = run(text.replace("/proc/$1/cgroup", f"{tmp_path}/cgroup"), path=programs)
    assert (done.returncode, b"nv-fabricmanage (4711)" in done.stdout) == (1, True)
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize("text", [driver_steps.LOAD, driver_steps.unload(force=True), driver_steps.unload(force=False)])
def test_the_scripts_are_posix_sh(text: str) -> None:
    runfile = NvidiaRunfile(STACK.artifact("driver"), V)
    whole = [text, driver_steps.install("/x.run", V, ()), driver_steps.rebuild(V), driver_steps.relink(V)]
    for script in [*whole, *(probe.script for probe in (*WithDriver(runfile, runfile).probes(), *BUSY_PROBES))]:
        done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
        assert done.stderr == ""
        assert done.returncode == 0


def test_a_load_that_secure_boot_refuses_shows_what_the_kernel_said(tmp_path: Path) -> None:
    """As Debian's 5.10 prints it (tests/fixtures/kernel): modprobe alone does not name the cause."""
    lines = (PROJECT / "tests/fixtures/kernel/secure-boot-unsigned.txt").read_text().splitlines()
    told, kernel = lines[1:]
    programs = tmp_path / "bin"
    program(programs, "modprobe", f'echo "{told}" >&2; exit 1')
    program(programs, "dmesg", f'echo "usb 1-1: new device"; echo "{kernel}"')
    done = run(driver_steps.LOAD, path=programs)
    assert done.returncode == 1
    assert done.stdout.decode().splitlines() == [kernel]
    failure = KNOWN.classify(done.stderr.decode() + done.stdout.decode())
    assert failure is not None
    assert failure.rule.name == "module-not-signed"


NOT_PERMITTED = "modprobe: ERROR: could not insert 'nvidia': Operation not permitted"
ALL, NO_MODULES = "000001ffffffffff", "00000000fdecbfff"  # capabilities of root, and of root in systemd-nspawn


@pytest.mark.parametrize(
    ("capabilities", "disabled", "rule"),
    [(ALL, "1", "module-loading-off"), (NO_MODULES, "0", "module-loading-off"), (ALL, "0", "module-not-signed")],
)
def test_a_host_that_may_load_no_module_at_all_is_not_taken_for_secure_boot(
    tmp_path: Path, capabilities: str, disabled: str, rule: str
) -> None:
    (tmp_path / "status").write_text(f"Name:\tsh\nCapEff:\t{capabilities}\nCapBnd:\t{ALL}\n")
    (tmp_path / "disabled").write_text(f"{disabled}\n")
    programs = tmp_path / "bin"
    program(programs, "modprobe", f'echo "{NOT_PERMITTED}" >&2; exit 1')
    program(programs, "dmesg", "exit 1")
    step = driver_steps.LOAD.replace("/proc/self/status", str(tmp_path / "status"))
    done = run(step.replace("/proc/sys/kernel/modules_disabled", str(tmp_path / "disabled")), path=programs)
    assert done.returncode == 1
    failure = KNOWN.classify(done.stderr.decode() + done.stdout.decode())
    assert failure is not None
    assert failure.rule.name == rule


def test_a_module_that_is_refused_for_another_reason_is_no_container(tmp_path: Path) -> None:
    (tmp_path / "status").write_text(f"CapEff:\t{NO_MODULES}\n")
    programs = tmp_path / "bin"
    program(programs, "modprobe", "echo \"modprobe: ERROR: could not insert 'nvidia': No such device\" >&2; exit 1")
    done = run(driver_steps.LOAD.replace("/proc/self/status", str(tmp_path / "status")), path=programs)
    assert b"hostwright:" not in done.stdout


@pytest.fixture
def loaded(tmp_path: Path) -> Path:
    """A folder of programs, for a kernel with the module nvidia and a running daemon of DCGM."""
    programs = tmp_path / "bin"
    (tmp_path / "module" / "nvidia").mkdir(parents=True)
    program(programs, "find", ":")
    program(programs, "systemctl", f'echo "$@" >>{tmp_path}/done; [ "$1" != -q ] || [ "$3" = dcgm ]')
    program(programs, "modprobe", f'echo "modprobe $@" >>{tmp_path}/done; rmdir {tmp_path}/module/nvidia')
    program(programs, "rmmod", "exit 1")
    return programs


def unloaded(loaded: Path, *, force: bool) -> tuple[int, str, list[str]]:
    """Status, output and what was done, without the questions whether services run."""
    root = loaded.parent
    text = driver_steps.unload(force=force, build=False).replace("/sys/module", f"{root}/module")
    done = run(text, path=loaded)
    lines = (root / "done").read_text().splitlines()
    return done.returncode, done.stdout.decode(), [line for line in lines if not line.startswith(("-q", "show"))]


def test_a_service_that_is_bound_to_one_of_ours_stops_the_step_and_is_stopped_first_with_force(loaded: Path) -> None:
    """NVIDIA/gpu-monitoring-tools#188: systemd stops an exporter with DCGM's daemon, and nobody starts it again."""
    root = loaded.parent
    requires = 'case "$*" in *nvidia-dcgm*) echo dcgm-exporter.service multi-user.target ;; esac'
    asked = f'case $1 in show) {requires}; exit ;; -q) [ "$3" = dcgm -o "$3" = dcgm-exporter.service ]; exit ;; esac'
    program(loaded, "systemctl", f'{asked}\necho "$@" >>{root}/done')
    program(loaded, "timeout", 'shift; "$@"')
    units = {driver_steps.UNITS: f"{root}/units", "/sys/module": f"{root}/module"}

    def text(*, force: bool) -> str:
        whole = driver_steps.unload(force=force, build=False)
        for place, made_up in units.items():
            whole = whole.replace(place, made_up)
        return whole

    done = run(text(force=False), path=loaded)
    assert done.returncode == 1
    assert done.stdout == b"hostwright: the kernel module nvidia is in use by: dcgm-exporter.service\n"
    assert not (root / "done").exists()
    assert run(text(force=True), path=loaded).returncode == 0
    assert (root / "done").read_text().splitlines()[:2] == ["stop -- dcgm-exporter.service", "stop dcgm"]
    assert (root / "units").read_text() == "dcgm-exporter.service\n"


def test_a_timer_or_socket_that_systemd_stops_along_runs_again_without_force(loaded: Path) -> None:
    root = loaded.parent
    bound = "report.timer exporter.socket"
    running = f'case " dcgm {bound} " in *" $3 "*) exit 0 ;; esac; exit 1'
    requires = f'case "$*" in *nvidia-dcgm*) echo {bound} ;; esac'
    program(loaded, "systemctl", f'case $1 in show) {requires}; exit ;; -q) {running} ;; esac\necho "$@" >>{root}/done')
    program(loaded, "timeout", 'shift; "$@"')
    text = driver_steps.unload(force=False, build=False) + driver_steps.returned()
    text = text.replace(driver_steps.UNITS, f"{root}/units").replace("/sys/module", f"{root}/module")
    done = run(text, path=loaded)
    assert done.stdout.decode().splitlines() == [
        "hostwright: note: exporter.socket was stopped for the driver and runs again",
        "hostwright: note: report.timer was stopped for the driver and runs again",
    ]
    calls = (root / "done").read_text().splitlines()
    assert [call for call in calls if call.startswith("st")] == [
        "stop dcgm", "start exporter.socket", "start report.timer",
    ]  # fmt: skip


def test_force_ends_holders_between_services_and_module(loaded: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as holder:
        stat = f"/proc/{holder.pid}/stat"  # a zombie holds nothing open
        program(loaded, "find", f'[ "$(cut -d" " -f3 {stat})" = Z ] || echo /proc/{holder.pid}/fd/3')
        status, _, done = unloaded(loaded, force=True)
        assert holder.wait(timeout=60) == -signal.SIGTERM
    assert status == 0
    assert done == ["stop dcgm", "stop display-manager", "modprobe -r nvidia"]


def test_force_stops_the_unit_of_a_holder_before_it_is_killed_and_starts_it_again(loaded: Path) -> None:
    """A killed process of a unit with Restart= comes back in the middle, until systemd starts it no more."""
    root = loaded.parent
    program(loaded, "find", f"[ -e {root}/stopped ] || echo /proc/4711/fd/3")
    program(loaded, "timeout", 'shift; "$@"')
    program(
        loaded,
        "systemctl",
        f'echo "$@" >>{root}/done; case "$*" in "stop -- train.service") touch {root}/stopped ;; esac',
    )
    (root / "cgroup").write_text("0::/system.slice/train.service\n")
    text = driver_steps.unload(force=True, build=False).replace("/sys/module", f"{root}/module")
    text = text.replace("/proc/$1/cgroup", f"{root}/cgroup").replace(driver_steps.UNITS, f"{root}/units")
    assert run(text, path=loaded).returncode == 0
    done = [line for line in (root / "done").read_text().splitlines() if not line.startswith(("-q", "show"))]
    assert done[0] == "stop -- train.service"
    assert (root / "units").read_text() == "train.service\n"
    back = run(driver_steps.returned().replace(driver_steps.UNITS, f"{root}/units"), path=loaded)
    assert back.stdout == b"hostwright: note: train.service was stopped for the driver and runs again\n"
    assert (root / "done").read_text().splitlines()[-3:-1] == ["reset-failed train.service", "start train.service"]
    assert not (root / "units").exists()


def test_force_stops_a_persons_own_unit_by_their_systemd_and_starts_it_again(loaded: Path) -> None:
    root = loaded.parent
    program(loaded, "find", f"[ -e {root}/stopped ] || echo /proc/4711/fd/3")
    program(loaded, "timeout", 'shift; "$@"')
    program(loaded, "id", "case $1 in -nu) echo ops ;; *) echo 1000 ;; esac")
    program(
        loaded,
        "runuser",
        f'echo "$XDG_RUNTIME_DIR $*" >>{root}/done; case "$*" in *" stop "*) touch {root}/stopped ;; esac',
    )
    (root / "cgroup").write_text("0::/user.slice/user-1000.slice/user@1000.service/app.slice/lab.service\n")
    text = driver_steps.unload(force=True, build=False).replace("/sys/module", f"{root}/module")
    text = text.replace("/proc/$1/cgroup", f"{root}/cgroup").replace(driver_steps.UNITS, f"{root}/units")
    assert run(text, path=loaded).returncode == 0
    assert "/run/user/1000 -u ops -- systemctl --user stop -- lab.service" in (root / "done").read_text()
    assert (root / "units").read_text() == "person/ops/lab.service\n"
    back = run(driver_steps.returned().replace(driver_steps.UNITS, f"{root}/units"), path=loaded)
    assert back.stdout == b"hostwright: note: lab.service of ops was stopped for the driver and runs again\n"
    assert "systemctl --user start -- lab.service" in (root / "done").read_text()


CONTAINER = f"docker/{'3f2a' * 16}"


def test_force_lets_docker_stop_a_holders_container_and_leaves_containerd_alone(loaded: Path) -> None:
    root = loaded.parent
    program(loaded, "find", f"[ -e {root}/stopped ] || echo /proc/4711/fd/3")
    program(loaded, "timeout", 'shift; "$@"')
    program(
        loaded,
        "docker",
        f'echo "docker $@" >>{root}/done; case $1 in stop) touch {root}/stopped ;; inspect) echo /ollama ;; esac',
    )
    _, _, identifier = CONTAINER.partition("/")
    (root / "cgroup").write_text(f"9:pids:/{CONTAINER}\n0::/system.slice/containerd.service\n")
    text = driver_steps.unload(force=True, build=False).replace("/sys/module", f"{root}/module")
    text = text.replace("/proc/$1/cgroup", f"{root}/cgroup").replace(driver_steps.UNITS, f"{root}/units")
    assert run(text, path=loaded).returncode == 0
    done = (root / "done").read_text().splitlines()
    assert f"docker stop {identifier}" in done
    assert not [line for line in done if "containerd" in line]
    assert (root / "units").read_text() == f"{CONTAINER}/ollama\n"


@pytest.mark.parametrize(
    ("start", "state", "told"),
    [
        (True, "true", "runs again"),
        (True, "false", "is down: docker logs ollama"),
        (False, "true", "is down: docker logs ollama"),
    ],
)
def test_a_container_that_was_stopped_for_the_driver_runs_again_or_is_named_as_down(
    loaded: Path, start: bool, state: str, told: str
) -> None:
    units = loaded.parent / "units"
    units.write_text(f"{CONTAINER}/ollama\n")
    program(loaded, "docker", f"[ $1 != inspect ] || echo {state}")
    done = run(driver_steps.returned(start=start).replace(driver_steps.UNITS, str(units)), path=loaded)
    note = f"hostwright: note: container ollama was stopped for the driver and {told}\n"
    assert (done.returncode, done.stdout.decode()) == (0, note)


@pytest.mark.parametrize("start", [True, False])
def test_a_unit_that_does_not_run_again_is_named_as_down(loaded: Path, start: bool) -> None:
    units = loaded.parent / "units"
    units.write_text("train.service\ntrain.service\n")
    program(loaded, "systemctl", '[ "$1" != start ]')
    done = run(driver_steps.returned(start=start).replace(driver_steps.UNITS, str(units)), path=loaded)
    told = b"hostwright: note: train.service was stopped for the driver and is down: systemctl status train.service\n"
    assert (done.returncode, done.stdout) == (0, told)


def test_busy_module_is_reported_and_services_restart(loaded: Path) -> None:
    program(loaded, "modprobe", "exit 1")
    program(loaded, "find", f"[ ! -e {loaded.parent}/done ] || echo /proc/{os.getpid()}/fd/3")
    program(loaded, "cat", "echo python3")
    status, output, done = unloaded(loaded, force=False)
    assert status == 1
    assert output == f"hostwright: the kernel module nvidia is in use by:\n  {os.getpid()} python3\n"
    assert done == ["stop dcgm", "start dcgm"]


class Installation:
    """The step that installs, on a made-up host below a directory: what the installer does is ``script``."""

    def __init__(self, root: Path):
        self.root = root
        self.programs = root / "bin"
        self.libraries = root / "lib"
        self.libraries.mkdir()
        (root / "dkms" / "nvidia" / "460.106.00").mkdir(parents=True)
        program(self.programs, "dkms", f'echo "dkms $@" >>{root}/done')
        program(
            self.programs, "ldconfig", f"printf '\\tlibcuda.so.1 (libc6,x86-64) => {self.libraries}/libcuda.so.1\\n'"
        )

    def run(self, script: str) -> subprocess.CompletedProcess[bytes]:
        installer = program(self.root, "driver.run", script)
        text = driver_steps.install(str(installer), V, ("--a b",))
        places = {"/var/lib/dkms": "dkms", "/var/lib/hostwright": "state", "/var/log": "log", "/proc/self": ""}
        for path, place in places.items():
            text = text.replace(path, f"{self.root}/{place}")
        return run(text, path=self.programs)

    def read(self, name: str) -> str | None:
        path = self.root / name
        return path.read_text() if path.exists() else None


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


def test_an_installation_forgets_other_versions_then_installs_and_records_its_files(installation: Installation) -> None:
    library = installation.libraries / f"libcuda.so.{V}"
    done = installation.run(
        f'[ -e {installation.root}/state/driver.installing ] && printf "<%s>" "$@" >>{installation.root}/done\n'
        f"printf cuda >{library}"
    )
    assert done.returncode == 0
    forgotten, flags = (installation.read("done") or "").splitlines()
    assert forgotten == "dkms remove -m nvidia -v 460.106.00 --all"
    assert flags.startswith("<--tmpdir><") and "><--silent><--dkms>" in flags
    assert flags.endswith("<--a b>")
    assert not (installation.root / "dkms" / "nvidia").exists()
    assert f"{library}|4|{int(library.stat().st_mtime)}\n" in (installation.read("state/driver.files") or "")
    assert installation.read("state/driver.installing") is None


#: How NVIDIA's archive begins: --tmpdir counts as a word of its own only, else TMPDIR; the directory is tried.
HEAD = """\
root=${TMPDIR:-/tmp}
while [ $# -gt 0 ]; do if [ "$1" = --tmpdir ]; then root=$2; shift; fi; shift; done
probe=$(mktemp "$root/probe.XXXXXX"); chmod +x "$probe"
"$probe" || { echo "ERROR: Temporary directory $root is not executable" >&2; exit 1; }
"""


@pytest.mark.parametrize("noexec", [False, True])
def test_the_archive_unpacks_where_the_job_works_and_not_where_nothing_may_execute(
    installation: Installation, noexec: bool
) -> None:
    installer = program(installation.root, "driver.run", HEAD)
    step = driver_steps.install(str(installer), V, ())
    place = installation.root / "place"
    place.mkdir()
    options = sh("mount -t tmpfs -o noexec tmpfs %s\n", place) if noexec else ""
    done = in_namespace(options + step.replace("/var/lib", str(installation.root)), TMPDIR=str(place))
    assert ("is not executable" in done.stderr) is noexec


def test_an_installation_that_fails_stays_marked_and_tells_why(installation: Installation) -> None:
    (installation.root / "log").mkdir()
    done = installation.run(f"echo 'x.c:1: error: no such thing' >{installation.root}/log/nvidia-installer.log; exit 3")
    assert done.returncode == 3
    assert done.stdout.decode().splitlines()[-1] == "x.c:1: error: no such thing"
    assert installation.read("state/driver.installing") == ""
    assert installation.read("state/driver.files") is None


def test_an_installation_whose_module_may_not_be_loaded_tells_why(installation: Installation) -> None:
    (installation.root / "log").mkdir()
    log = f"{installation.root}/log/nvidia-installer.log"
    unable = "ERROR: Unable to load the 'nvidia-drm' kernel module."
    (installation.root / "status").write_text(f"CapEff:\t{NO_MODULES}\n")
    done = installation.run(f'echo "{NOT_PERMITTED}" >{log}; echo "{unable}" >>{log}; exit 1')
    assert done.returncode == 1
    assert done.stdout.decode().splitlines()[-1].startswith("hostwright: no kernel module can be loaded on this host")


def test_driver_state_comes_from_files_and_record(tmp_path: Path) -> None:
    """All but the kernel's module and DKMS's, which this machine may have of its own."""
    programs, lib = tmp_path / "bin", tmp_path / "lib"
    lib.mkdir()
    names = ("libcuda.so", "libnvidia-ml.so")
    for name in names:
        (lib / f"{name}.{V}").write_text(name)
        (lib / f"{name}.1").symlink_to(f"{name}.{V}")
    lines = "".join(f"\\t{name}.1 (libc6,x86-64) => {lib}/{name}.1\\n" for name in names)
    program(programs, "ldconfig", f"printf '{lines}'")
    module = "/lib/modules/$2/updates/dkms/nvidia.ko"
    program(programs, "modinfo", f'echo "filename:       {module}"; echo "version:        {V}"')
    record = tmp_path / "driver.files"
    record.write_text(f"{lib}/libcuda.so.{V}|10|1\n")
    script = NvidiaRunfile(STACK.artifact("driver"), V).state_probe.script
    script = script.replace(driver_steps.RECORD, str(record)).replace(driver_steps.INSTALLING, str(tmp_path / "cut"))
    state = DriverState.read(run(f"set +eu\n{script}", path=programs).stdout.decode())
    assert (state.module, state.cut, state.record) == (V, False, True)
    assert state.linked(V)
    assert f"{lib}/libcuda.so.{V}" in state.lost
    (tmp_path / "cut").touch()
    (lib / "libcuda.so.580.159.04").write_text("newer")
    (lib / "libnvidia-container.so.1.17.8").write_text("another's")
    (lib / "libnvidia-ml.so.390.48").write_text("a package's")
    program(programs, "dpkg-query", f"echo 'libnvidia-ml1: {lib}/libnvidia-ml.so.390.48'; exit 1")
    again = DriverState.read(run(f"set +eu\n{script}", path=programs).stdout.decode())
    assert again.cut
    assert again.others == again.winning(V) == (f"{lib}/libcuda.so.580.159.04",)


def test_a_link_of_a_recorded_library_that_is_missing_or_leads_elsewhere_is_told_and_made_again(tmp_path: Path) -> None:
    """NordicHPC/sonar#303, leptonai/gpud#415: programs that open libnvidia-ml.so found no NVML; nvidia-smi worked."""
    programs, lib = tmp_path / "bin", tmp_path / "lib"
    lib.mkdir()
    names = ("libcuda.so", "libnvidia-ml.so", "libnvidia-encode.so")
    for name in names:
        (lib / f"{name}.{V}").touch()
        (lib / f"{name}.1").symlink_to(f"{name}.{V}")
        (lib / name).symlink_to(f"{name}.1")
    lines = "".join(f"\\t{name}.1 (libc6,x86-64) => {lib}/{name}.1\\n" for name in names)
    program(programs, "ldconfig", f"printf '{lines}'")
    record = tmp_path / "driver.files"
    record.write_text(f"/usr/bin/nvidia-smi|1|1\n{lib}/libcuda.so.{V}|0|1\n")
    probe = NvidiaRunfile(STACK.artifact("driver"), V).state_probe.script.replace(driver_steps.RECORD, str(record))

    def unlinked() -> tuple[str, ...]:
        return DriverState.read(run(f"set +eu\n{probe}", path=programs).stdout.decode()).unlinked

    assert unlinked() == ()
    (lib / "libnvidia-ml.so").unlink()
    (lib / "libnvidia-encode.so.1").unlink()
    (lib / "libcuda.so").unlink()
    (lib / "libcuda.so").symlink_to("libnvidia-ml.so.1")
    gone = ("libcuda.so", "libnvidia-ml.so", "libnvidia-encode.so.1", "libnvidia-encode.so")
    assert unlinked() == tuple(f"{lib}/{name}" for name in gone)
    step = driver_steps.relink(V).replace(driver_steps.RECORD, str(record))
    assert run(step, path=programs).returncode == 0
    assert unlinked() == ()
    assert (lib / "libnvidia-ml.so").readlink() == Path("libnvidia-ml.so.1")
    assert not (lib / "libnvcuvid.so").is_symlink(), "this driver has no such library"


def test_a_library_that_wins_after_any_ldconfig_is_told_with_what_names_its_directory(tmp_path: Path) -> None:
    programs, lib, stubs, conf = (tmp_path / name for name in ("bin", "lib", "stubs", "ld.so.conf.d"))
    for folder in (lib, stubs, conf):
        folder.mkdir()
    (stubs / "libcuda.so").touch()
    (stubs / "libcuda.so.1").symlink_to("libcuda.so")
    (lib / f"libnvidia-ml.so.{V}").touch()
    (tmp_path / "driver.files").write_text(f"{lib}/libcuda.so.{V}|10|1\n")
    (conf / "00-x.conf").write_text(f"# of a guide\n {tmp_path}/other/../stubs/  # for gcc\n")
    (tmp_path / "other").mkdir()
    script = NvidiaRunfile(STACK.artifact("driver"), V).state_probe.script
    script = script.replace(driver_steps.RECORD, str(tmp_path / "driver.files")).replace("/etc/ld.so.conf.d", str(conf))

    def shadows(first: Path, package: str = "") -> list[str]:
        lines = f"\\tlibcuda.so.1 (libc6,x86-64) => {first}\\n"
        program(programs, "ldconfig", f"printf '{lines}'")
        program(programs, "dpkg-query", f"[ -n '{package}' ] && echo '{package}: {first}'")
        answer = run(f"set +eu\n{script}", path=programs).stdout.decode()
        return [line for line in answer.splitlines() if line.startswith("shadow=")]

    line = f"{conf}/00-x.conf:2"
    assert shadows(stubs / "libcuda.so.1") == [f"shadow={stubs}/libcuda.so.1\t{stubs}/libcuda.so\t\t{line}"]
    assert shadows(stubs / "libcuda.so.1", "dev") == [f"shadow={stubs}/libcuda.so.1\t{stubs}/libcuda.so\tdev\t{line}"]
    (lib / "libcuda.so.1").symlink_to(stubs / "libcuda.so")
    assert shadows(lib / "libcuda.so.1", "dev") == []  # its own link is turned back
    (stubs / "libcuda.so").rename(stubs / "libcuda.so.390.48")
    (stubs / "libcuda.so.1").unlink()
    (stubs / "libcuda.so.1").symlink_to("libcuda.so.390.48")
    assert shadows(stubs / "libcuda.so.1") == []  # nobody's driver is set aside


@pytest.mark.parametrize("ending", ["", ".xz", ".zst"])
@pytest.mark.parametrize("directory", ["updates", "extra", "weak-updates/nvidia", "kernel/drivers/video"])
def test_the_module_that_wins_over_dkms_is_named_with_its_siblings(tmp_path: Path, directory: str, ending: str) -> None:
    programs, place = tmp_path / "bin", tmp_path / "lib/modules/x" / directory
    place.mkdir(parents=True)
    names = [f"{name}.ko{ending}" for name in ("nvidia", "nvidia-modeset", "nvidia-uvm", "nvidiafb")]
    for name in names:
        (place / name).touch()
    rows = (f"filename: {place}/nvidia.ko{ending}", "version: 470.161.03", "filename: /x/updates/dkms/nvidia-uvm.ko")
    program(programs, "modinfo", "\n".join(f"echo '{row}'" for row in (*rows, f"version: {V}")))
    program(programs, "dpkg-query", f"case $* in */nvidia-modeset.ko*) echo 'theirs: {place}/{names[1]}' ;; esac")
    probe = NvidiaRunfile(STACK.artifact("driver"), V).state_probe.script
    built = tmp_path / "dkms"
    script = probe.replace('"/lib/modules/$kernel/updates/dkms"/', f"{built}/")
    lines = run(f"set +eu\n{script}", path=programs).stdout.decode().splitlines()
    assert "module=470.161.03" in lines
    assert {line for line in lines if line.startswith(("stray=", "packaged="))} == {
        f"stray={place}/nvidia.ko{ending}",
        f"stray={place}/nvidia-uvm.ko{ending}",
    }
    built.mkdir()
    (built / "nvidia.ko").touch()
    again = run(f"set +eu\n{script}", path=programs).stdout.decode().splitlines()
    assert f"packaged={place}/{names[1]}, of the package theirs" in again


def test_a_module_that_is_set_aside_is_kept(tmp_path: Path) -> None:
    module = tmp_path / "nvidia.ko"
    module.write_text("older")
    program(tmp_path / "bin", "depmod", f"echo $* >{tmp_path}/done")
    step = driver_steps.modules_aside((str(module),)).replace("/opt/hostwright/set-aside", str(tmp_path / "aside"))
    assert run(step, path=tmp_path / "bin").returncode == 0
    assert [kept.read_text() for kept in (tmp_path / "aside").rglob("nvidia.ko")] == ["older"]
    assert (module.exists(), (tmp_path / "done").read_text()) == (False, "-a\n")


def holding(folder: Path, *names: str) -> None:
    """The kernel's list of the modules that use nvidia."""
    for name in names:
        (folder / "module" / "nvidia" / "holders" / name).mkdir(parents=True)


@pytest.mark.parametrize("force", [False, True])
def test_nothing_is_stopped_where_a_module_of_others_uses_the_driver(loaded: Path, force: bool) -> None:
    """modprobe -r nvidia would fail after nvidia_uvm was unloaded, and CUDA would be down on a host that worked."""
    holding(loaded.parent, "nvidia_uvm", "gdrdrv")
    text = driver_steps.unload(force=force, build=False).replace("/sys/module", f"{loaded.parent}/module")
    done = run(text, path=loaded)
    assert (done.returncode, (loaded.parent / "done").exists()) == (1, False)
    finding = KNOWN.explained(done.stdout.decode())
    assert finding is not None
    assert (finding.rule, "modprobe -r gdrdrv" in finding.cure) == ("module-held", True)


def test_the_state_names_modules_of_others_that_use_the_driver(tmp_path: Path) -> None:
    holding(tmp_path, "nvidia_uvm", "nvidia_modeset", "nv_peer_mem", "gdrdrv", "nvidia_fs")
    probe = NvidiaRunfile(STACK.artifact("driver"), V).state_probe
    said = ask(probe.script.replace("/sys/module", f"{tmp_path}/module"))[1]
    assert DriverState.read(said).holders == ("gdrdrv", "nvidia_fs")
