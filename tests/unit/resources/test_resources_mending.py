"""A dpkg that was interrupted: what the plan says that mending takes is what happens, with the real apt and dpkg.

dpkg works on a root of its own, which only root may make it do.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from hostwright.plan.host import release
from hostwright.plan.model import Answer, Change, Facts
from hostwright.resources.packages.dpkg import mend_script, mending
from hostwright.resources.packages.packages import DpkgInOrder
from hostwright.standard.roles.container.running import DockerRuns
from tests.unit.support.aptroot import AptRoot, deb, installed, repository, states, work_for_real
from tests.unit.support.shell import ask, program, run

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="dpkg --root needs root")


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AptRoot:
    apt = AptRoot(tmp_path)
    work_for_real(apt, tmp_path, monkeypatch)
    return apt


def lists(apt: AptRoot, folder: Path, *packages: Path) -> None:
    """apt's lists are fetched and name these packages."""
    repository(folder, *packages)
    apt.source(f"deb [trusted=yes] file:{folder} stable main\n")
    assert run("apt-get -q update").returncode == 0


def plan(apt: AptRoot, *leaving: str, origin: Path | None = None) -> Change | None:
    """What is planned, from the answers of this root."""
    state = DpkgInOrder(leaving)
    scripts = {probe: probe.script.replace("/var/lib/dpkg", str(apt.dpkg)) for probe in state.probes()}
    answers = {probe: Answer(*ask(script, origin=origin)) for probe, script in scripts.items()}
    change = state.plan(Facts(answers))
    assert change is None or isinstance(change, Change)
    return change


def mend(apt: AptRoot, *leaving: str, origin: Path | None = None) -> CompletedProcess[bytes]:
    change = plan(apt, *leaving, origin=origin)
    assert change is not None
    script = change.steps[0].script.replace("Acquire::Retries=3", "Acquire::Retries=0")
    script = script.replace("/var/lib/dpkg", str(apt.dpkg)).replace("/usr/sbin/policy-rc.d", f"{apt.root}/policy")
    return run(script, origin=origin)


def test_a_host_in_order_plans_nothing_and_asks_apt_nothing(apt: AptRoot) -> None:
    apt.status(installed("tool"))
    assert ask(mending().script.replace("/var/lib/dpkg", str(apt.dpkg))) == (0, "")
    assert plan(apt) is None


def test_a_half_configured_package_is_configured_and_nothing_else(apt: AptRoot) -> None:
    apt.status(installed("tool", state="install ok half-configured"))
    change = plan(apt)
    assert change is not None
    assert (change.have, change.want) == ("interrupted (tool)", "in order")
    assert mend(apt).returncode == 0
    assert states(apt) == {"tool": "ii"}


def test_what_is_missing_comes_and_what_is_recommended_does_not(apt: AptRoot, tmp_path: Path) -> None:
    lists(apt, tmp_path / "r", deb(tmp_path, "lib"), deb(tmp_path, "extra"))
    apt.status(installed("tool", state="install ok unpacked", Depends="lib", Recommends="extra"))
    change = plan(apt)
    assert change is not None
    assert change.want == "in order (lib installed)"
    assert mend(apt).returncode == 0
    assert states(apt) == {"tool": "ii", "lib": "ii"}
    assert plan(apt) is None


def test_a_package_whose_dependency_nobody_has_is_removed_as_the_plan_says(apt: AptRoot) -> None:
    """``dpkg -i`` of a file from somewhere, whose dependencies no repository has: apt's way out is to remove it."""
    apt.status(installed("downloaded", state="install ok unpacked", Depends="nowhere"), installed("tool"))
    change = plan(apt)
    assert change is not None
    assert change.want == "in order (downloaded removed)"
    assert mend(apt).returncode == 0
    assert states(apt) == {"tool": "ii"}


def test_nothing_is_removed_that_the_plan_did_not_show(apt: AptRoot) -> None:
    apt.status(installed("downloaded", state="install ok unpacked", Depends="nowhere"))
    done = run(mend_script())
    assert done.returncode == 1
    assert b"hostwright: error: apt would also remove: downloaded (to mend dpkg" in done.stdout
    assert states(apt) == {"downloaded": "iU"}


def test_what_was_cut_off_is_unpacked_again(apt: AptRoot, tmp_path: Path) -> None:
    lists(apt, tmp_path / "r", deb(tmp_path, "tool"))
    apt.status(installed("tool", state="install reinstreq half-installed"))
    change = plan(apt)
    assert change is not None
    assert change.want == "in order (tool unpacked again)"
    assert mend(apt).returncode == 0
    assert states(apt) == {"tool": "ii"}


def test_files_that_a_crash_cut_short_are_unpacked_again(
    apt: AptRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the packages in the list, those that are not what dpkg's sums say; a file that somebody changed stays."""
    monkeypatch.setenv("DPKG_ROOT", str(apt.root))
    packages = [with_settings(tmp_path, name) for name in ("tool", "whole", "settings")]
    lists(apt, tmp_path / "r", *packages)
    assert run(f"dpkg --install {' '.join(map(str, packages))}").returncode == 0
    file, settings, edited = (apt.root / path for path in ("usr/share/tool/file", "etc/settings", "etc/whole"))
    file.write_text("")
    settings.write_text("")
    edited.write_text("mine")
    origin = tmp_path / "origin"
    origin.mkdir()
    (origin / "unsynced").write_text("another boot\nsettings\ntool\nwhole\n")
    change = plan(apt, origin=origin)
    assert change is not None
    assert change.have == "not written to the disk when the host stopped (settings; tool; whole)"
    done = mend(apt, origin=origin)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count(b"was unpacked again") == 2
    assert (file.read_text(), settings.read_text(), edited.read_text()) == ("1", "on", "mine")
    assert plan(apt, origin=origin) is None
    assert not (origin / "unsynced").exists()


def with_settings(folder: Path, name: str) -> Path:
    """A package with a file in ``/etc`` of its own name, which people may change."""
    packed = deb(folder, name)
    tree = folder / f"tree-{name}-1"
    (tree / "etc").mkdir()
    (tree / f"etc/{name}").write_text("on")
    (tree / "DEBIAN/conffiles").write_text(f"/etc/{name}\n")
    sums = f"{hashlib.md5(b'1', usedforsecurity=False).hexdigest()}  usr/share/{name}/file\n"
    (tree / "DEBIAN/md5sums").write_text(sums)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, packed], check=True, capture_output=True)
    return packed


def test_what_was_cut_off_is_looked_for_in_new_lists_before_it_goes(apt: AptRoot, tmp_path: Path) -> None:
    repository(tmp_path / "r", deb(tmp_path, "tool"))
    apt.source(f"deb [trusted=yes] file:{tmp_path}/r stable main\n")
    apt.status(installed("tool", state="install reinstreq half-installed"))
    change = plan(apt)
    assert change is not None
    assert change.want == "in order (tool unpacked again or, if no repository has it, removed)"
    assert mend(apt).returncode == 0
    assert states(apt) == {"tool": "ii"}


def test_what_was_cut_off_and_no_repository_has_goes_as_the_plan_says(apt: AptRoot, tmp_path: Path) -> None:
    lists(apt, tmp_path / "r", deb(tmp_path, "other"))
    apt.status(installed("tool", state="install reinstreq half-installed"), installed("bash"))
    assert mend(apt).returncode == 0
    assert states(apt) == {"bash": "ii"}


def test_a_dead_network_removes_nothing(apt: AptRoot) -> None:
    """Only what repositories have decides, and none of them could be asked."""
    apt.source("deb http://127.0.0.1:9/debian stable main\n")
    apt.status(installed("tool", state="install reinstreq half-installed"))
    done = mend(apt)
    assert done.returncode == 100
    assert b"hostwright: error: apt has no list with tool, and could not fetch http://127.0.0.1:9/debian" in done.stdout
    assert states(apt) == {"tool": "iHR"}


def test_an_archive_that_is_listed_and_cannot_be_fetched_removes_nothing(apt: AptRoot, tmp_path: Path) -> None:
    lists(apt, tmp_path / "r", deb(tmp_path, "tool"))
    (tmp_path / "r/pool/tool_1_amd64.deb").unlink()
    apt.status(installed("tool", state="install reinstreq half-installed"))
    done = mend(apt)
    assert done.returncode == 100
    assert b"pool/tool_1_amd64.deb" in done.stdout
    assert states(apt) == {"tool": "iHR"}


def test_a_held_package_that_is_half_configured_stays_held(apt: AptRoot) -> None:
    apt.status(installed("tool", state="hold ok half-configured"))
    assert mend(apt).returncode == 0
    assert states(apt) == {"tool": "hi"}


def test_a_dpkg_at_work_is_not_simulated(apt: AptRoot) -> None:
    """A run whose controller is gone installs on: the next run must find it at once."""
    (apt.dpkg / "status").write_text(
        "Package: tool\nStatus: install ok unpacked\nVersion: 1\nArchitecture: all\nMaintainer: X <x@example.org>\n"
    )
    with (apt.dpkg / "lock-frontend").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        change = plan(apt)
    assert change is not None
    assert change.want == "in order (other changes unknown: dpkg is at work right now)"
    change = plan(apt)
    assert change is not None
    assert "at work" not in change.want


# --- what a role of the host takes away


def failing(apt: AptRoot, folder: Path, name: str, **fields: str) -> None:
    """A package whose own script fails is installed, as one whose module does not build: half-configured."""
    path = deb(folder, name, **fields)
    script = folder / f"tree-{name}-1/DEBIAN/postinst"
    script.write_text("#!/bin/sh\necho bad exit status: 2\nexit 10\n")
    script.chmod(0o755)
    run(f"dpkg-deb --root-owner-group -b {script.parents[1]} {path} && dpkg --install {path}")
    assert states(apt)[name] == "iF"


def waiting(apt: AptRoot, folder: Path, name: str, depends: str) -> None:
    """A package that waits for another is installed."""
    run(f"dpkg --install {deb(folder, name, Depends=depends)}")
    assert states(apt)[name] == "iU"


def test_what_a_role_takes_away_need_not_be_configured(apt: AptRoot, tmp_path: Path) -> None:
    """mailrocketsystems/CudaSetupUbuntu20#1; pop-os/system76-power#350: a stranger's package depends on it."""
    failing(apt, tmp_path, "odd-dkms-510")
    waiting(apt, tmp_path, "odd-510", "odd-dkms-510")
    waiting(apt, tmp_path, "theirs-odd", "odd-510")
    run(f"dpkg --install {deb(tmp_path, 'odd-utils-510')} {deb(tmp_path, 'tool')}")
    change = plan(apt, "odd-*")
    assert change is not None
    assert change.have == "interrupted (odd-510, odd-dkms-510, theirs-odd)"
    assert change.want == (
        "in order (odd-510, odd-dkms-510, odd-utils-510 removed, because the host's roles replace it; "
        "theirs-odd removed)"
    )
    assert change.disturbs == "removes packages that a role replaces"
    done = mend(apt, "odd-*")
    assert done.returncode == 0, done.stdout
    assert b"bad exit status" not in done.stdout
    assert states(apt) == {"tool": "ii"}
    assert plan(apt, "odd-*") is None


def test_without_such_a_role_the_script_that_fails_is_what_the_step_says(apt: AptRoot, tmp_path: Path) -> None:
    failing(apt, tmp_path, "odd-dkms")
    for patterns in ((), ("other-*",)):
        done = mend(apt, *patterns)
        assert done.returncode != 0
        assert b"bad exit status: 2" in done.stdout
        assert states(apt) == {"odd-dkms": "iF"}


def refusing(apt: AptRoot, folder: Path) -> Path:
    """A package is half-configured whose script starts a service that does not start; the place of the host's policy
    for services."""
    policy = folder / "policy-rc.d"
    path = deb(folder, "engine")
    script = folder / "tree-engine-1/DEBIAN/postinst"
    script.write_text(
        f"#!/bin/sh\n[ ! -x {policy} ] || {policy} engine.service start || [ $? != 101 ] || exit 0\nexit 1\n"
    )
    script.chmod(0o755)
    run(f"dpkg-deb --root-owner-group -b {script.parents[1]} {path} && dpkg --install {path}")
    assert states(apt)["engine"] == "iF"
    program(folder / "bin", "systemctl", f'echo "$*" >>{folder}/asked; [ "$1" != start ]')
    return policy


def mend_with(apt: AptRoot, policy: Path) -> CompletedProcess[bytes]:
    change = plan(apt)
    assert change is not None
    script = change.steps[0].script.replace("/var/lib/dpkg", str(apt.dpkg))
    return run(script.replace("/usr/sbin/policy-rc.d", str(policy)))


def test_a_service_that_does_not_start_does_not_keep_its_package_unconfigured(apt: AptRoot, tmp_path: Path) -> None:
    """ApolloAuto/apollo#12485: a later role writes the file for which it does not start."""
    policy = refusing(apt, tmp_path)
    program(
        tmp_path / "bin", "systemctl", f'echo "$*" >>{tmp_path}/asked; case $1 in is-active | start) exit 1 ;; esac'
    )
    done = mend_with(apt, policy)
    assert done.returncode == 0, done.stdout
    assert b"hostwright: note: engine does not start; its package was configured without it" in done.stdout
    assert "start -- engine" in (tmp_path / "asked").read_text()
    assert states(apt) == {"engine": "ii"}
    assert not policy.exists()


def test_a_policy_of_the_hosts_own_is_left_alone(apt: AptRoot, tmp_path: Path) -> None:
    policy = refusing(apt, tmp_path)
    policy.write_text("#!/bin/sh\nexit 0\n")
    policy.chmod(0o755)
    assert mend_with(apt, policy).returncode != 0
    assert policy.read_text() == "#!/bin/sh\nexit 0\n"


def test_a_policy_that_a_kill_left_forbids_nothing_and_goes(apt: AptRoot, tmp_path: Path) -> None:
    policy = refusing(apt, tmp_path)
    program(tmp_path / "bin", "sort", f"cp {policy} {tmp_path}/left; exec /usr/bin/sort")
    trap = "trap 'rm -f -- \"$policy\"' EXIT"
    change = plan(apt)
    assert change is not None
    assert trap in change.steps[0].script
    script = change.steps[0].script.replace(trap, ":").replace("/var/lib/dpkg", str(apt.dpkg))
    run(script.replace("/usr/sbin/policy-rc.d", str(policy)))
    assert policy.exists()
    assert run(f"{policy} other.service start").returncode == 0
    assert not policy.exists()


def test_others_that_are_not_in_order_are_mended_beside_it(apt: AptRoot, tmp_path: Path) -> None:
    lists(apt, tmp_path / "r", deb(tmp_path, "lib"), deb(tmp_path, "odd-dkms", "2"), deb(tmp_path, "cut"))
    apt.status(
        installed("odd-510", state="install ok unpacked", Depends="odd-dkms"),
        installed("odd-dkms", state="hold reinstreq half-installed"),
        installed("half", state="install ok half-configured"),
        installed("tool", state="install ok unpacked", Depends="lib"),
        installed("cut", state="install reinstreq half-installed"),
    )
    change = plan(apt, "odd-*")
    assert change is not None
    assert change.want == (
        "in order (odd-510, odd-dkms removed, because the host's roles replace it; cut unpacked again; lib installed)"
    )
    done = mend(apt, "odd-*")
    assert done.returncode == 0, done.stdout
    assert states(apt) == {"half": "ii", "tool": "ii", "lib": "ii", "cut": "ii"}


def test_what_is_in_order_stays_for_its_role_to_take_away(apt: AptRoot) -> None:
    apt.status(installed("odd"), installed("tool", state="install ok half-configured"))
    change = plan(apt, "odd")
    assert change is not None
    assert (change.want, change.disturbs) == ("in order", "")
    assert mend(apt, "odd").returncode == 0
    assert states(apt) == {"odd": "ii", "tool": "ii"}


def test_a_journal_keeps_nothing_from_going(apt: AptRoot, tmp_path: Path) -> None:
    failing(apt, tmp_path, "odd-dkms")
    (apt.dpkg / "updates/0001").write_text(installed("tool", state="install ok half-configured") + "\n")
    assert mend(apt, "odd-*").returncode == 0
    assert states(apt) == {"tool": "ii"}


# --- what lacks a package that it needs


def test_a_package_that_lacks_what_it_needs_gets_it(apt: AptRoot, tmp_path: Path) -> None:
    lists(apt, tmp_path / "r", deb(tmp_path, "lib"))
    apt.status(installed("tool", Depends="lib"))
    change = plan(apt)
    assert change is not None
    assert (change.have, change.want) == ("unmet dependencies (tool (Depends: lib))", "in order (lib installed)")
    assert mend(apt).returncode == 0
    assert states(apt) == {"tool": "ii", "lib": "ii"}
    assert plan(apt) is None


def test_what_apt_cannot_correct_is_left_to_the_role_that_can(apt: AptRoot) -> None:
    """A held package, and another version of the one that it needs: NVIDIA's newest NCCL over a stack's."""
    apt.status(installed("lib"), installed("tool", state="hold ok installed", Depends="lib (= 2)"))
    change = plan(apt)
    assert change is not None
    assert (change.have, change.want.partition(":")[0]) == (
        "unmet dependencies (tool (Depends: lib))",
        "in order (other changes unknown",
    )
    done = mend(apt)
    assert (done.returncode, states(apt)) == (0, {"lib": "ii", "tool": "hi"})
    assert b"hostwright: note: apt cannot correct this" in done.stdout


def test_apt_is_not_asked_again_what_is_unmet_before_dpkg_has_changed_something(apt: AptRoot, tmp_path: Path) -> None:
    apt.status(installed("tool", Depends="lib"))
    sound, status = tmp_path / "release.json", apt.dpkg / "status"
    sound.touch()
    script = mending().script.replace("/var/lib/dpkg", str(apt.dpkg)).replace(release.PATH, str(sound))
    os.utime(status, (1, 1))
    assert ask(script) == (0, "")
    os.utime(sound, (1, 1))
    assert ask(script)[1].startswith("unmet tool (Depends: lib)\n")


def test_what_a_role_takes_away_goes_before_apt_is_asked_for_what_it_lacks(apt: AptRoot, tmp_path: Path) -> None:
    """Debian's driver of which two packages were removed by force: apt installs nothing, least of all build tools."""
    lists(apt, tmp_path / "r", deb(tmp_path, "odd-alternative"), deb(tmp_path, "libodd1"))
    apt.status(
        installed("odd-driver", Depends="odd-alternative (= 1), libodd1"),
        installed("libodd1", Depends="odd-alternative"),
        installed("libodd-container1"),
        installed("site-tools", Depends="odd-driver"),
        installed("tool"),
    )
    change = plan(apt, "!libodd-container*", "odd-*", "libodd*")
    assert change is not None
    assert change.want == (
        "in order (libodd1, odd-driver removed, because the host's roles replace it; site-tools removed)"
    )
    done = mend(apt, "!libodd-container*", "odd-*", "libodd*")
    assert done.returncode == 0, done.stdout
    assert states(apt) == {"libodd-container1": "ii", "tool": "ii"}
    assert plan(apt, "odd-*") is None


def test_nothing_of_a_role_goes_where_more_would_go_than_was_shown(apt: AptRoot) -> None:
    apt.status(installed("odd-driver", Depends="odd-alternative"))
    change = plan(apt, "odd-*")
    assert change is not None and change.want == "in order (odd-driver removed, because the host's roles replace it)"
    apt.status(installed("odd-driver", Depends="odd-alternative"), installed("site-tools", Depends="odd-driver"))
    done = run(change.steps[0].script.replace("/var/lib/dpkg", str(apt.dpkg)))
    assert done.returncode == 1
    assert b"hostwright: error: apt would also remove: site-tools" in done.stdout
    assert states(apt) == {"odd-driver": "ii", "site-tools": "ii"}


#: gVisor's script (google/gvisor#6408)
RESTARTS = """#!/bin/sh
set -e
# it must not stop containerd
if [ -f /etc/docker/daemon.json ]; then
    systemctl restart docker
fi
"""


def restarting(apt: AptRoot, script: str) -> Change:
    """What is planned where this script of a package waits, and a container runs."""
    apt.status(installed("runsc", state="install ok unpacked"), installed("tool"))
    (apt.dpkg / "info").mkdir(exist_ok=True)
    for name, text in (("runsc", script), ("tool", RESTARTS)):
        (apt.dpkg / f"info/{name}.postinst").write_text(text)
    container = "4711 9cd078cb21bc" + 52 * "0" + " /postgres no\n"
    condition = DockerRuns(restarts=True)
    show, listed = condition.probes()
    state = DpkgInOrder((), (("docker", condition), ("containerd", condition)))
    own = {probe: Answer(*ask(probe.script.replace("/var/lib/dpkg", str(apt.dpkg)))) for probe in state.probes()[:3]}
    facts = Facts({**own, show: Answer(0, "ActiveState=active\n"), listed: Answer(0, f"spared false\n{container}")})
    change = state.plan(facts)
    assert isinstance(change, Change)
    assert state.users(facts) == (("container 9cd078cb21bc (pid 4711) postgres",) if change.disturbs else ())
    return change


def test_a_script_that_waits_and_restarts_docker_disturbs_its_containers(apt: AptRoot) -> None:
    change = restarting(apt, RESTARTS)
    assert change.want == "in order (scripts of runsc may restart docker)"
    assert change.disturbs == "runs scripts of runsc that may restart docker"


@pytest.mark.parametrize(
    "script", ["#!/bin/sh\nsystemctl restart ssh\n", "#!/bin/sh\n# restart docker\ntrue\n", "docker"]
)
def test_a_script_that_waits_and_restarts_nothing_with_work_disturbs_nobody(apt: AptRoot, script: str) -> None:
    change = restarting(apt, script)
    assert (change.want, change.disturbs) == ("in order", "")
