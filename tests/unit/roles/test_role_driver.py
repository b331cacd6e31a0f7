"""The role driver: what is due for each state of a host, when it is refused, and the traps of R470's installer."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import pytest

from hostwright.plan.model import Answer, Change, Deferred, Facts, Reboot, Refusal, Resource
from hostwright.plan.roles.role import RoleContext
from hostwright.resources.files.files import File
from hostwright.resources.packages.dpkg import HOLD
from hostwright.resources.packages.packages import hold_script
from hostwright.resources.system.services import Disturbing
from hostwright.stack.store.hostcache import host_path
from hostwright.standard.roles.driver import Driver, driver
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.driver.states import steps as driver_steps
from hostwright.standard.roles.driver.states.others import no_other_driver
from hostwright.standard.roles.driver.states.runfile import DriverState
from tests.unit.support.facts import facts_for
from tests.unit.support.stacks import load_stack

STACK = load_stack("tensorflow-2.9")
OTHERS = tuple(no_other_driver(RoleContext(STACK)))  # which test_role_base is about


def resources_of(variables: Driver) -> tuple[Resource, ...]:
    """The states of the role, but for those against other drivers."""
    return tuple(one for one in driver.resources(variables, RoleContext(STACK)) if one not in OTHERS)


RESOURCES = resources_of(Driver())

V = "470.182.03"
OTHER = "470.256.02"

T4 = "0x10de 0x030200 0x1eb8\n"
NVSWITCH = "0x10de 0x068000 0x1af1\n"
RUNNING = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"
GONE = "LoadState=not-found\nActiveState=inactive\nUnitFileState=\n"
ONE_ROW = "bash\t5.1\tii \n"
FM = "nvidia-fabricmanager-470\t470.182.03-1\thi \n"


def state(**differs: str) -> str:
    """The answer of a host that has the driver whole; a value of ``""`` takes a line away."""
    lines = {
        "module": V,
        "loaded": V,
        "uvm": "yes",
        "dkms": "yes",
        "source": "yes",
        "libcuda.so.1": f"/usr/lib/x86_64-linux-gnu/libcuda.so.{V}",
        "libnvidia-ml.so.1": f"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{V}",
        "record": "yes",
    }
    return "".join(f"{key}={value}\n" for key, value in {**lines, **differs}.items() if value)


BARE = "module=\nlibcuda.so.1=\nlibnvidia-ml.so.1=\nlost=/usr/bin/nvidia-smi\n"


def files(resources: Iterable[Resource]) -> list[File]:
    plain = (one.resource if isinstance(one, Disturbing) else one for one in resources)
    return [one for one in plain if isinstance(one, File)]


def host(resources: Iterable[Resource], **differs: str | Answer) -> Facts:
    right: dict[str, str | Answer] = {
        "modinfo -k": state(),
        "dpkg-query": ONE_ROW,
        "drivers/nouveau": "",
        "/boot/vmlinuz": "",
        "module_blacklist": "",
        "SecureBoot": "off\n",
        "display-manager": "",
        "find -H /proc": "",
        "/dev/char": "",
        "read -r c <": T4,
        "systemctl show -p LoadState": RUNNING,
        "getent passwd": "nvidia-persistenced:x:998:998::/nonexistent:/usr/sbin/nologin\n",
    }
    for one in files(resources):
        stat, content, _ = one.probes()
        right[stat.script] = f"regular file|{one.mode}|{one.owner}\n"
        right[content.script] = one.content
    return facts_for(resources, {**right, **differs})


def plan(variables: Driver | None = None, **differs: str | Answer) -> list[Change]:
    resources = RESOURCES if variables is None else resources_of(variables)
    facts = host(resources, **differs)
    return [change for one in resources if (change := one.plan(facts)) is not None]


def scripts(change: Change) -> list[str]:
    return [step.script for step in change.steps]


def installs(change: Change) -> bool:
    return any(host_path(STACK.artifact("driver")) in one for one in scripts(change))


def test_a_provisioned_host_plans_nothing() -> None:
    assert plan() == []


def test_a_bare_host_gets_everything_in_one_plan() -> None:
    facts = facts_for(
        RESOURCES, {"modinfo -k": BARE, "dpkg-query": ONE_ROW, "read -r c <": T4, "show -p LoadState": GONE}
    )
    changes = [change for one in RESOURCES if (change := one.plan(facts)) is not None]
    assert [change.what for change in changes] == [
        "file /etc/modules-load.d/hostwright-nvidia.conf",
        "NVIDIA driver",
        "user nvidia-persistenced",
        "file /etc/systemd/system/nvidia-persistenced.service",
        "service nvidia-persistenced.service",
        "restart of nvidia-persistenced.service",
    ]
    assert changes[1].artifacts == ("driver",)
    assert changes[1].have == "absent"
    assert all(isinstance(change, Change) for change in changes)


def assigned(script: str, name: str) -> list[str]:
    """The words of the value that a script gives a name first."""
    line = next(line for line in script.splitlines() if line.startswith(f"{name}="))
    return shlex.split(*shlex.split(line.partition("=")[2]))


def test_the_flags_are_those_that_r470_has() -> None:
    """Each of the named ones is fatal on R470, where the whole command line is refused."""
    (change,) = plan(**{"modinfo -k": BARE})
    assert assigned(scripts(change)[1], "installer") == [host_path(STACK.artifact("driver"))]
    assert assigned(scripts(change)[1], "flags") == [
        "--silent", "--dkms", "--no-cc-version-check", "--disable-nouveau", "--no-install-compat32-libs",
        "--no-check-for-alternate-installs", "--log-file-name=/var/log/nvidia-installer.log",
    ]  # fmt: skip


def test_further_flags_reach_the_installer_as_words() -> None:
    (change,) = plan(Driver(flags=("--no-drm", "--x-prefix=/a b")), **{"modinfo -k": BARE})
    assert assigned(scripts(change)[1], "flags")[-2:] == ["--no-drm", "--x-prefix=/a b"]


def test_headers_and_compiler_are_looked_for_before_anything_is_stopped_or_removed() -> None:
    """With --dkms the installer removes the old driver first, and then fails (its install-from-cwd.c, 470.182.03)."""
    (change,) = plan(**{"modinfo -k": BARE})
    first = scripts(change)[0]
    assert first.index("hostwright: no headers of the running kernel") < first.index("systemctl stop")
    assert first.index("hostwright: no C compiler") < first.index("systemctl stop")


def test_a_stale_dkms_entry_goes_before_the_installer_adds_its_own() -> None:
    (change,) = plan(**{"modinfo -k": BARE})
    script = scripts(change)[1]
    forgets = [script.index("dkms remove -m nvidia"), script.index("rm -rf /var/lib/dkms/nvidia\n")]
    assert forgets == sorted(forgets)
    assert forgets[-1] < script.index('\nsh "$installer"')


def test_a_failure_shows_the_installers_log_and_makes() -> None:
    (change,) = plan(**{"modinfo -k": BARE})
    script = scripts(change)[1]
    assert script.startswith(f"version={V}\ninstaller_log=/var/log/nvidia-installer.log\n")
    assert 'for log in "$installer_log" "/var/lib/dkms/nvidia/$version/build/make.log"; do' in script


def test_an_installation_that_was_cut_is_run_again() -> None:
    (change,) = plan(**{"modinfo -k": state() + "cut=yes\n"})
    assert installs(change)
    script = scripts(change)[1]
    assert assigned(script, "installing") == [driver_steps.INSTALLING]
    assert script.index(': >"$installing"') < script.index('\nsh "$installer"')
    assert script.rstrip().endswith(f"rm -f {driver_steps.INSTALLING}")


@pytest.mark.parametrize(
    "damage",
    [
        {"libcuda.so.1": f"/usr/lib/x86_64-linux-gnu/libcuda.so.{OTHER}", "record": ""},
        {"libnvidia-ml.so.1": "", "lost": f"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{V}"},
        {"lost": "/usr/bin/nvidia-smi"},
        {"source": ""},
    ],
)
def test_damaged_user_space_is_installed_again(damage: dict[str, str]) -> None:
    (change,) = plan(**{"modinfo -k": state(**damage)})
    assert change.what == "NVIDIA driver"
    assert installs(change)
    assert isinstance(change, Change)


@pytest.mark.parametrize(
    "turned", ["", "/usr/lib/libcuda.so.1", f"/usr/lib/libnvidia-ml.so.{V}", f"/x/libcuda.so.{OTHER}"]
)
def test_a_turned_link_is_turned_back_without_touching_who_uses_the_gpu(turned: str) -> None:
    (change,) = plan(**{"modinfo -k": state(**{"libcuda.so.1": turned})})
    assert not installs(change)
    assert (type(change), change.disturbs) == (Change, "")
    assert "ln -sfn" in scripts(change)[0]
    assert f"libcuda.so.1 is {turned.rpartition('/')[2] or 'absent'}" in change.have


BESIDE = "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04"


@pytest.mark.parametrize("turned", [True, False])
def test_a_newer_library_of_nobodys_is_set_aside_or_ldconfig_would_turn_the_link_again(turned: bool) -> None:
    found = state(**({"libcuda.so.1": BESIDE} if turned else {}))
    (change,) = plan(**{"modinfo -k": f"{found}other={BESIDE}\nother=/usr/lib/x86_64-linux-gnu/libcuda.so.390.48\n"})
    assert change.want == f"links to {V}, without {BESIDE}"
    assert 'keep_aside "$file"\n  rm -f -- "$file"' in scripts(change)[0]
    assert BESIDE in scripts(change)[0]
    assert "390.48" not in scripts(change)[0]  # ldconfig takes the highest number
    assert change.warnings[0].endswith(f"/DATE: {BESIDE}")


@pytest.mark.parametrize("path", ["/etc/passwd", "/usr/lib/libcuda.so.1/../../../etc/shadow", "/lib/libc.so.6"])
def test_nothing_but_a_drivers_library_is_set_aside_whatever_a_host_says(path: str) -> None:
    (change,) = plan(**{"modinfo -k": state(**{"libcuda.so.1": path}) + f"other={path}\n"})
    assert change.warnings == ()


STUB = "/usr/local/cuda-11.2/targets/x86_64-linux/lib/stubs/libcuda.so"


@pytest.mark.parametrize("there", [{}, {"record": "", "lost": "/usr/bin/nvidia-smi", "source": "", "module": ""}])
@pytest.mark.parametrize(
    ("shadow", "sentence"),
    [
        (
            f"/opt/stubs/libcuda.so.1\t{STUB}\tcuda-driver-dev-11-2\t/etc/ld.so.conf.d/00-cuda-stubs.conf:1",
            "/etc/ld.so.conf.d/00-cuda-stubs.conf:1 names the directory of /opt/stubs/libcuda.so.1, which takes"
            " precedence over the driver's library; remove that line from /etc/ld.so.conf.d/00-cuda-stubs.conf, then"
            " run `ldconfig`",
        ),
        (
            f"/usr/local/lib/libcuda.so.1\t{STUB}\tdev\t/etc/ld.so.conf.d/libc.conf:2",
            f"/usr/local/lib/libcuda.so.1, which leads to {STUB} of the package dev, takes precedence over the"
            " driver's library; remove /usr/local/lib/libcuda.so.1, then run `ldconfig`",
        ),
        (
            "/lib/x86_64-linux-gnu/haswell/libcuda.so.1\t/usr/lib/x86_64-linux-gnu/haswell/libcuda.so.1\tfast\t",
            "/lib/x86_64-linux-gnu/haswell/libcuda.so.1 of the package fast takes precedence over the"
            " driver's library; remove the package fast, then run `ldconfig`",
        ),
    ],
)
def test_what_wins_after_any_ldconfig_is_named_and_nothing_is_tried(
    shadow: str, sentence: str, there: dict[str, str]
) -> None:
    answer = state(**{**there, "libcuda.so.1": shadow.split("\t")[1]}) + f"shadow={shadow}\n"
    (refusal,) = plan(**{"modinfo -k": answer})
    assert isinstance(refusal, Refusal)
    assert refusal.sentence == sentence
    assert f"libcuda.so.1 is {shadow.partition(chr(9))[0]}" in refusal.have
    (change,) = plan(**{"modinfo -k": answer, "dpkg-query": f"{ONE_ROW}libcuda1\t470\tii \n"})
    assert installs(change), "the library of a driver's package goes with it"


STRAY = "/lib/modules/5.10.0-46-amd64/updates/nvidia.ko.xz"


@pytest.mark.parametrize("differs", [{"module": OTHER}, {}])
def test_a_module_of_nobodys_that_wins_over_dkms_is_named_and_set_aside(differs: dict[str, str]) -> None:
    line = "/etc/depmod.d/own.conf:override nvidia * extra"
    found = state(**differs) + f"stray={STRAY}\npreferred={line}\n"
    (change,) = plan(**{"modinfo -k": found})
    assert f"module {differs.get('module', V)} ({STRAY}), loaded {V}" in change.have
    assert STRAY in scripts(change)[0]
    assert scripts(change)[0].endswith("depmod -a\n")
    assert "dkms install --force" in scripts(change)[1]
    assert change.warnings[0].endswith(f"/DATE: {STRAY}")
    assert line in change.warnings[1]
    assert not installs(change)


def test_a_driver_that_is_replaced_leaves_no_module_that_wins() -> None:
    (change,) = plan(**{"modinfo -k": state(source="", module=OTHER) + f"stray={STRAY}\n"})
    assert installs(change)
    assert "depmod -a" in scripts(change)[2]
    assert change.warnings[0].endswith(f"/DATE: {STRAY}")


def test_a_module_of_a_package_that_wins_over_dkms_is_left_and_named() -> None:
    found = state(module=OTHER) + f"packaged={STRAY}, of the package backport\n"
    (refusal,) = plan(**{"modinfo -k": found})
    assert isinstance(refusal, Refusal)
    assert refusal.sentence == (
        f"{STRAY}, of the package backport, takes precedence over the module that DKMS built; remove that package,"
        " then run `depmod -a`"
    )


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/lib/modules/x/../../../etc/nvidia.ko/shadow", "/lib/modules/x/ext4.ko"]
)
def test_nothing_but_a_drivers_module_is_set_aside_whatever_a_host_says(path: str) -> None:
    (change,) = plan(**{"modinfo -k": state(module=OTHER) + f"stray={path}\n"})
    assert change.warnings == ()
    assert path not in "".join(scripts(change))


@pytest.mark.parametrize("damage", [{"module": ""}, {"module": OTHER}, {"dkms": ""}])
def test_a_lost_module_is_rebuilt_without_touching_who_uses_the_gpu(damage: dict[str, str]) -> None:
    (change,) = plan(**{"modinfo -k": state(**damage)})
    assert change.what == "NVIDIA kernel module"
    assert change.artifacts == ()
    assert (type(change), change.disturbs) == (Change, "")
    assert not installs(change)
    assert 'dkms install --force -m nvidia -v "$version" -k "$kernel"' in scripts(change)[0]
    assert len(change.steps) == 1  # it is loaded already


def test_a_module_that_is_on_disk_is_loaded_and_not_rebooted_for() -> None:
    (change,) = plan(**{"modinfo -k": state(loaded="", uvm="")})
    assert scripts(change) == [driver_steps.LOAD]
    (change,) = plan(**{"modinfo -k": state(uvm="")})
    assert change.have == "nvidia-uvm not loaded"


def test_a_loaded_module_of_another_version_wants_a_reboot_as_a_state() -> None:
    (change,) = plan(**{"modinfo -k": state(loaded=OTHER)})
    assert isinstance(change, Reboot)
    assert change.reason == f"driver {OTHER} is loaded and {V} is installed"


def test_what_needs_the_driver_comes_after_the_reboot() -> None:
    changes = plan(**{"modinfo -k": state(loaded=OTHER), "systemctl show -p LoadState": GONE})
    assert [(type(change), change.what, change.until) for change in changes[1:]] == [
        (Deferred, "service nvidia-persistenced.service", "reboot")
    ]


def test_another_version_is_replaced_by_unloading_it_first() -> None:
    libraries = {
        name: f"/usr/lib/x86_64-linux-gnu/{name[:-2]}.{OTHER}" for name in ("libcuda.so.1", "libnvidia-ml.so.1")
    }
    (change,) = plan(**{"modinfo -k": state(module=OTHER, loaded=OTHER, source="", dkms="", **libraries)})
    unload, install, load = scripts(change)
    assert assigned(unload, "modules")[-4:] == ["nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia"]
    assert "systemctl stop" in unload
    assert "hostwright: the kernel module $module is in use" in unload
    assert load == driver_steps.LOAD
    assert "kill" not in unload
    assert V in install
    assert "DKMS" not in change.have  # whose sources of the other version are there


def test_nouveau_bound_means_after_the_reboot_and_not_a_guess() -> None:
    (change,) = plan(**{"modinfo -k": BARE, "drivers/nouveau": "0000:3b:00.0 nouveau\n"})
    assert (type(change), change.until) == (Deferred, "reboot")
    assert change.artifacts == ("driver",)  # a file that is missing is told before the reboot


def test_secure_boot_without_an_enrolled_key_is_refused_with_the_cure() -> None:
    (change,) = plan(**{"modinfo -k": BARE, "SecureBoot": "on\n"})
    assert isinstance(change, Refusal)
    assert "Secure Boot" in change.sentence
    assert "mokutil --import" in change.sentence
    (change,) = plan(**{"modinfo -k": BARE, "SecureBoot": "enrolled\n"})
    assert installs(change)
    assert plan(**{"SecureBoot": "on\n"}) == []


def test_a_screen_is_refused_only_when_the_driver_is_due() -> None:
    shown = {"display-manager": "gdm.service\nX server 900\n"}
    (change,) = plan(**{"modinfo -k": BARE, **shown})
    assert isinstance(change, Refusal)
    assert "(gdm.service, X server 900)" in change.sentence
    assert "driver_force: true" in change.sentence
    assert plan(**shown) == []
    (change,) = plan(Driver(force=True), **{"modinfo -k": BARE, **shown})
    assert isinstance(change, Change)


def test_a_module_of_others_that_uses_the_driver_is_refused_only_when_the_driver_is_due() -> None:
    held = "holder=gdrdrv\nholder=nvidia_fs\nholder=gdrdrv\n"
    assert plan(**{"modinfo -k": state() + held}) == []
    (change,) = plan(Driver(force=True), **{"modinfo -k": state(lost="/usr/bin/nvidia-smi") + held})
    assert isinstance(change, Refusal)
    assert "modprobe -r gdrdrv nvidia_fs" in change.sentence


def test_replacing_a_loaded_driver_disturbs() -> None:
    (first,) = plan(**{"modinfo -k": BARE})
    assert first.disturbs == ""
    (again,) = plan(**{"modinfo -k": state(lost="/usr/bin/nvidia-smi")})
    assert (type(again), again.disturbs) == (Change, "replaces the driver")
    assert "kill" not in scripts(again)[0]


def test_force_ends_gpu_users_gently_first() -> None:
    (change,) = plan(Driver(force=True), **{"modinfo -k": state(lost="/usr/bin/nvidia-smi")})
    unload = scripts(change)[0]
    assert (type(change), change.disturbs) == (Change, "")
    assert unload.index("signal TERM") < unload.index("signal KILL") < unload.index("modprobe -r")


def test_removed_kernel_is_rebooted_before_the_module_is_built() -> None:
    (change,) = plan(**{"modinfo -k": BARE, "/boot/vmlinuz": "5.10.0-30-amd64\n"})
    assert (type(change), change.until, change.artifacts) == (Deferred, "reboot", ("driver",))
    changes = plan(**{"modinfo -k": state(module="", dkms=""), "/boot/vmlinuz": "5.10.0-30-amd64\n"})
    assert [(change.what, change.until) for change in changes] == [("NVIDIA kernel module", "reboot")]


def test_a_reload_of_systemd_disturbs_where_it_takes_gpus_from_containers() -> None:
    unit = next(one for one in files(RESOURCES) if one.path.endswith("nvidia-persistenced.service"))
    disabled = {unit.probes()[1].script: "[]", "systemctl show -p LoadState": RUNNING.replace("=enabled", "=disabled")}
    taken = {"find -H /proc": "812 3f2a1b2c3d4e 812 python3\n", "/dev/char": "device nvidia0\n"}
    assert [bool(change.disturbs) for change in plan(**disabled)] == [False, False, False]
    assert [bool(change.disturbs) for change in plan(**disabled, **taken)] == [True, True, False]


def test_packages_of_another_driver_make_the_installer_due() -> None:
    """The base role purges them, and their removal takes links of the .run's libraries along."""
    (change,) = plan(**{"dpkg-query": f"{ONE_ROW}libnvidia-compute-470\t{OTHER}-1\tii \n"})
    assert "libnvidia-compute-470" in change.have
    assert installs(change)
    assert plan(**{"dpkg-query": f"{ONE_ROW}libnvidia-container1\t1.17.8-1\tii \n"}) == []


def test_a_driver_that_was_installed_by_hand_is_taken_as_it_is() -> None:
    (change,) = plan(**{"modinfo -k": state(record="")})
    assert not installs(change)
    assert driver_steps.RECORD in scripts(change)[0]


def test_a_host_without_a_card_is_refused() -> None:
    (change,) = plan(**{"read -r c <": ""})
    assert "no NVIDIA GPU" in change.sentence


def test_fabric_manager_of_exactly_the_drivers_version_and_held_where_nvswitches_are() -> None:
    hgx = {"read -r c <": T4 + NVSWITCH}
    assert STACK.section(DriverSection).fabric_manager is not None
    assert STACK.section(DriverSection).fabric_manager.version == f"{V}-1"
    assert plan(**hgx, **{"dpkg-query": ONE_ROW + FM}) == []
    (missing,) = plan(**hgx)
    assert missing.artifacts == ("fabric-manager",)
    assert f"{HOLD}nvidia-fabricmanager-470" in scripts(missing)[0]
    (other,) = plan(**hgx, **{"dpkg-query": ONE_ROW + FM.replace(V, "470.199.02")})
    assert other.have == "470.199.02-1"
    (unheld,) = plan(**hgx, **{"dpkg-query": ONE_ROW + FM.replace("hi", "ii")})
    assert scripts(unheld) == [hold_script(("nvidia-fabricmanager-470",))]


def test_fabric_manager_stays_away_where_no_nvswitch_is() -> None:
    assert not [change for change in plan(**{"systemctl show -p LoadState": GONE}) if "fabric" in change.what]


def test_only_the_drifted_part_is_mended() -> None:
    unit = next(one for one in files(RESOURCES) if one.path.endswith("nvidia-persistenced.service"))
    changed, restarted = plan(**{unit.probes()[1].script: "[Unit]\n"})
    assert changed.what == f"file {unit.path}"
    assert "systemctl daemon-reload" in scripts(changed)[0]
    assert restarted.what == "restart of nvidia-persistenced.service"
    (change,) = plan(**{"getent passwd": Answer(2, "")})
    assert change.what == "user nvidia-persistenced"
    (change,) = plan(**{"systemctl show -p LoadState": RUNNING.replace("=active", "=failed")})
    assert change.what == "service nvidia-persistenced.service"


def test_a_garbled_answer_is_an_absent_driver_and_no_error() -> None:
    garbled = DriverState.read("\x1b[31m=\nlibcuda.so.1=\n\n=====\nnonsense")
    assert garbled.absent
    assert str(garbled) == "absent"


FORMER = {
    "module": "460.32.03",
    "loaded": "460.32.03",
    "libcuda.so.1": "/usr/lib/x86_64-linux-gnu/libcuda.so.460.32.03",
    "record": "",
}
PROVISIONED = '{"schema": 2, "roles": {"driver": {"desired": "x"}}}'


@pytest.mark.parametrize(
    ("differs", "release", "lost"),
    [
        (FORMER, "", "the driver 460.32.03 that somebody else installed"),  # gridhead/nvidia-auto-installer#82
        ({**FORMER, "libcuda.so.1": ""}, "", "the driver 460.32.03 that somebody else installed"),
        ({**FORMER, "ours": "460.32.03", "theirs": "yes"}, PROVISIONED, FORMER["module"]),
        ({**FORMER, "ours": "460.32.03"}, PROVISIONED, ""),
        (FORMER, PROVISIONED, ""),  # our record of its files is lost
        ({**FORMER, "cut": "yes"}, "", ""),  # whoever began that agreed
        ({"source": ""}, "", ""),  # the same version again
    ],
)
def test_a_driver_of_somebody_else_is_lost_only_with_a_yes(differs: dict[str, str], release: str, lost: str) -> None:
    answers: dict[str, str | Answer] = {"modinfo -k": state(**differs), "release.json": release}
    assert any(map(installs, plan(**answers)))
    losses = [loss for one in RESOURCES for loss in one.losses(host(RESOURCES, **answers))]
    assert [lost in loss for loss in losses] == ([True] if lost else [])
