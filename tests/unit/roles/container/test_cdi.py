"""Mode of the toolkit's runtime, CDI specification of the host, and engines without support for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.plan.model import Change, Probe, Refusal
from hostwright.plan.roles.role import RoleContext
from hostwright.resources.packages.dpkg import HOLD
from hostwright.resources.system.services import Disturbing
from hostwright.stack.fitting import Misfit
from hostwright.stack.rules import HostFacts, check_host, check_stack
from hostwright.stack.stack import Stack
from hostwright.standard.roles.container import Container, container
from hostwright.standard.roles.container.cdi import (
    REFRESH,
    CdiSpecification,
    GpusFlagWorks,
    NoRefresh,
    Refreshable,
    RuntimeMode,
)
from hostwright.standard.roles.container.engines import Numbers, loses_gpus_flag, numbers
from hostwright.standard.roles.container.section import ContainerSection
from hostwright.standard.roles.driver.states.gpu_use import ReloadTakesGpus
from tests.unit.support.facts import changes_of, facts_for, only
from tests.unit.support.library_contexts import asked, write
from tests.unit.support.shell import program, run
from tests.unit.support.stacks import RULES, STACKS, load_stack

TODAY, FORMER = load_stack("pytorch-2.14"), load_stack("tensorflow-2.9")
DEVICES = "Character devices:\n195 nvidia\n195 nvidiactl\n509 nvidia-uvm\n237 nvidia-caps\n\nBlock devices:\n8 sd\n"
SPEC = """---
cdiVersion: 0.7.0
containerEdits:
  additionalGids:
  - 44
  deviceNodes:
  - fileMode: 8630
    major: 195
    minor: 255
    path: /dev/nvidiactl
    permissions: rwm
  - path: /dev/nvidia-uvm
    major: %d
  - hostPath: /dev/nvidia-caps/nvidia-cap1
    path: /dev/nvidia-caps/nvidia-cap1
    major: 237
  hooks:
  - hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
  mounts:
  - containerPath: /usr/lib/libcuda.so.580.159.04
    hostPath: /lib/libcuda.so.580.159.04
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
      major: 195
  name: "0"
kind: nvidia.com/gpu
"""
PLACES = (
    "/etc/systemd/system/", "/etc/nvidia-container-toolkit/", "/var/run/cdi/", "/proc/devices", "/lib/libcuda",
    "/lib/systemd/system/", "/dev/nvidia[0-9]*", "/dev/nvidiactl /dev/nvidia-uvm",
)  # fmt: skip


def own(base: str, folder: Path, container_values: str) -> Stack:
    """Return a site's stack that changes only the container part of a standard stack."""
    write(folder / "own.yml", f"extends: {base}\ndescription: ours\ncontainer: {container_values}\n")
    return load_stack("own", [folder, STACKS])


def rules(stack: Stack, distribution: str, release: str) -> dict[str, Misfit]:
    """Return the rules that this host breaks with this stack."""
    return {one.rule: one for one in check_host(stack, HostFacts(distribution, release), RULES)}


def host(root: Path, uvm: int = 509, *, card: bool = True, listed: str = "GPU 0: Tesla T4 (UUID: GPU-1)") -> None:
    """Return a host whose specification has the major number ``uvm`` for nvidia-uvm, with this nvidia-smi output."""
    program(root / "bin", "nvidia-smi", f"echo '{listed}'")
    write(root / "proc/devices", DEVICES)
    write(root / "lib/libcuda.so.580.159.04", "x")
    write(root / "var/run/cdi/nvidia.yaml", (SPEC % uvm).replace("hostPath: /lib", f"hostPath: {root}/lib"))
    write(root / f"etc/systemd/system/multi-user.target.wants/{REFRESH}", "x")
    if card:
        write(root / "dev/nvidia0", "")


def found(root: Path) -> str:
    """Return the output of the state's probe on this host."""
    probe, _ = CdiSpecification().probes()
    script = probe.script.replace("nvidia-smi -L", f"{root}/bin/nvidia-smi -L")
    return asked(Probe(script), root, *PLACES).text


def wrong(root: Path) -> str:
    """Return the state's finding on this host; empty if none."""
    changes = changes_of((CdiSpecification(),), {"cdi_refreshed": found(root)})
    return only(changes).have if changes else ""


def test_a_specification_of_this_boot_and_driver_is_left_alone(tmp_path: Path) -> None:
    host(tmp_path)
    assert wrong(tmp_path) == ""


def test_a_stale_number_of_nvidia_uvm_is_found_and_the_unit_writes_it_anew(tmp_path: Path) -> None:
    """NVIDIA/nvidia-container-toolkit#1934: major 510 in the specification, 509 in the kernel; cuInit returns 999."""
    host(tmp_path, 510)
    assert wrong(tmp_path) == "/dev/nvidia-uvm has the major number 510 in it, and 509 in the kernel"
    (change,) = changes_of((CdiSpecification(),), {"cdi_refreshed": "number /dev/nvidia-uvm 510 509\n"})
    assert f"unit={REFRESH}" in change.steps[0].script
    assert 'systemctl restart -- "$unit"' in change.steps[0].script
    assert change.steps[0].script.index("nvidia-modprobe -u") < change.steps[0].script.index("systemctl restart")


def test_one_of_a_former_driver_and_one_that_nobody_wrote_are_found(tmp_path: Path) -> None:
    host(tmp_path)
    (tmp_path / "lib/libcuda.so.580.159.04").unlink()
    assert wrong(tmp_path) == "names /lib/libcuda.so.580.159.04, which is not there"
    (tmp_path / "var/run/cdi/nvidia.yaml").unlink()
    assert wrong(tmp_path) == "none"


def left(root: Path) -> str:
    """Return the finding of the state for a toolkit without the units."""
    (probe,) = NoRefresh().probes()
    text = asked(
        probe, root, "/etc/systemd/system/", "/etc/nvidia-container-toolkit/", "/lib/systemd", "/var/run/cdi/"
    ).text
    changes = changes_of((NoRefresh(),), {"nvidia-cdi-refresh": text.replace(str(root), "")})
    return only(changes).have if changes else ""


def test_an_older_toolkit_takes_what_the_units_wrote(tmp_path: Path) -> None:
    """1.20.0 to 1.17.8: dpkg removes the units' files, but not their links and output."""
    host(tmp_path)
    link = tmp_path / f"etc/systemd/system/multi-user.target.wants/{REFRESH}"
    link.unlink()
    assert left(tmp_path) == "", "an operator's own"
    link.symlink_to("/lib/systemd/system/gone")
    assert left(tmp_path) == f"/var/run/cdi/nvidia.yaml; /etc/systemd/system/multi-user.target.wants/{REFRESH}"
    link.unlink()
    write(tmp_path / f"lib/systemd/system/{REFRESH}", "[Unit]\n")
    assert left(tmp_path) == "/var/run/cdi/nvidia.yaml", "before the older one comes"
    write(
        tmp_path / "etc/nvidia-container-toolkit/nvidia-cdi-refresh.env", "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/x/y.yaml\n"
    )
    assert left(tmp_path) == ""


def test_only_paths_of_such_files_are_removed() -> None:
    rows = "specification /etc/passwd\nlink /etc/passwd\nspecification /a b.yaml\nlink /etc/systemd/system/../x\n"
    assert changes_of((NoRefresh(),), {"nvidia-cdi-refresh": rows}) == ()


@pytest.mark.parametrize(("version", "there"), [("1.17.8-1", True), ("1.20.0-1", False)])
def test_it_comes_before_the_packages_of_an_older_toolkit(tmp_path: Path, version: str, there: bool) -> None:
    stack = own("pytorch-2.14", tmp_path, f"{{toolkit: {{version: {version}}}}}")
    states = [type(state).__name__ for state in container.resources(Container(), RoleContext(stack))]
    assert ("NoRefresh" in states) == there
    if there:
        assert states.index("NoRefresh") < states.index("Debs")
    assert any(isinstance(one, NoRefresh) for one in CdiSpecification().removal())


def test_one_that_is_not_written_at_boot_is_found(tmp_path: Path) -> None:
    host(tmp_path)
    (tmp_path / f"etc/systemd/system/multi-user.target.wants/{REFRESH}").unlink()
    assert wrong(tmp_path) == f"{REFRESH} does not start at boot"


def test_it_may_lie_where_the_units_variables_say(tmp_path: Path) -> None:
    host(tmp_path)
    (tmp_path / "var/run/cdi/nvidia.yaml").rename(tmp_path / "own.yaml")
    variables = f"# of ours\nNVIDIA_CTK_CDI_OUTPUT_FILE_PATH={tmp_path}/own.yaml\n"
    write(tmp_path / "etc/nvidia-container-toolkit/nvidia-cdi-refresh.env", variables)
    assert wrong(tmp_path) == ""


def test_a_device_file_that_it_does_not_name_is_found(tmp_path: Path) -> None:
    """The case that /dev/nvidia-uvm did not exist when the specification was written."""
    host(tmp_path)
    probe, _ = CdiSpecification().probes()
    script = probe.script.replace("in /dev/nvidiactl /dev/nvidia-uvm", "in /dev/null")
    script = script.replace("nvidia-smi -L", f"{tmp_path}/bin/nvidia-smi -L")
    assert asked(Probe(script), tmp_path, *PLACES).text == "lacks /dev/null\n"
    assert only(changes_of((CdiSpecification(),), {"cdi_refreshed": "lacks /dev/nvidia-uvm\n"})).have == (
        "does not name /dev/nvidia-uvm"
    )


def test_a_host_without_cards_needs_none(tmp_path: Path) -> None:
    """Before the toolkit's installation, the state is unknown; with the toolkit, its units fail."""
    host(tmp_path, 510, card=False)
    assert found(tmp_path) == ""
    write(tmp_path / "lib/systemd/system/nvidia-cdi-refresh.path", "[Unit]\n")
    assert found(tmp_path) == "unlisted\n"
    assert wrong(tmp_path) == ""


@pytest.mark.parametrize("listed", ["", "No devices were found"])
def test_where_nvidia_smi_lists_no_card_a_note_says_why_there_is_none(tmp_path: Path, listed: str) -> None:
    """The unit first runs nvidia-smi and fails there: a restart would stop the installation of the whole layer."""
    host(tmp_path, listed=listed)
    state = Disturbing(CdiSpecification(), "reloads", ReloadTakesGpus())
    assert found(tmp_path) == "", "a whole one is not asked about"
    (tmp_path / "var/run/cdi/nvidia.yaml").unlink()
    facts = facts_for((state,), {"cdi_refreshed": found(tmp_path)})
    assert state.plan(facts) is None
    assert not Refreshable().holds(facts)
    assert state.notes(facts) == (f"no GPU: nvidia-smi lists none, so that {REFRESH} fails and containers get no GPU",)


def test_a_unit_that_failed_while_the_driver_was_away_is_run_again(tmp_path: Path) -> None:
    host(tmp_path)
    answers = {"cdi_refreshed": found(tmp_path), "systemctl show": "LoadState=loaded\nActiveState=failed\n"}
    assert only(changes_of((CdiSpecification(),), answers)).have == f"{REFRESH} failed"
    answers["systemctl show"] = "LoadState=loaded\nActiveState=inactive\n"
    assert changes_of((CdiSpecification(),), answers) == ()


@pytest.mark.parametrize(
    ("listed", "runs"), [("GPU 0: Tesla T4 (UUID: GPU-1)", True), ("No devices were found", False)]
)
def test_the_unit_is_not_run_where_nvidia_smi_lists_no_card(tmp_path: Path, listed: str, runs: bool) -> None:
    for name in ("nvidia-modprobe", "journalctl"):
        program(tmp_path / "bin", name, "exit 0")
    program(tmp_path / "bin", "nvidia-smi", f"echo '{listed}'")
    program(tmp_path / "bin", "systemctl", f'echo "$1" >>{tmp_path}/asked')
    (change,) = changes_of((CdiSpecification(),), {"cdi_refreshed": "lacks /dev/nvidia-uvm\n"})
    done = run(f"PATH={tmp_path}/bin:$PATH\n{change.steps[0].script}")
    assert done.returncode == 0
    assert ("restart" in (tmp_path / "asked").read_text().split()) is runs


def test_what_no_probe_of_ours_prints_says_nothing() -> None:
    assert changes_of((CdiSpecification(),), {"cdi_refreshed": "number\nunknown x\nmissing a b c\n"}) == ()


CONFIG = """disable-require = false

[nvidia-container-cli]
mode = "of another table"

[nvidia-container-runtime]
#debug = "/var/log/nvidia-container-runtime.log"
mode = "auto"
runtimes = ["runc"]

[nvidia-container-runtime.modes.cdi]
default-kind = "nvidia.com/gpu"
"""


@pytest.mark.parametrize(
    ("config", "mode"),
    [
        (CONFIG, "auto"), (CONFIG.replace('mode = "auto"', 'mode = "cdi"'), "cdi"), ("", "auto"),
        (CONFIG.replace('mode = "auto"\n', ""), "auto"),
    ],
)  # fmt: skip
def test_the_mode_is_read_and_set_and_nothing_else_changes(tmp_path: Path, config: str, mode: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(config)
    (probe,) = RuntimeMode("legacy").probes()

    def have() -> str:
        return asked(probe, tmp_path, "/etc/nvidia-container-runtime/").text.strip() or "auto"

    write(tmp_path / "etc/nvidia-container-runtime/config.toml", config)
    assert have() == mode
    (change,) = changes_of((RuntimeMode("legacy"),), {"config.toml": f"{mode}\n"})
    script = change.steps[0].script.replace(
        "/etc/nvidia-container-runtime", str(tmp_path / "etc/nvidia-container-runtime")
    )
    assert run(script).returncode == 0
    assert have() == "legacy"
    text = (tmp_path / "etc/nvidia-container-runtime/config.toml").read_text()
    kept = [line for line in config.splitlines() if line and line not in ('mode = "auto"', 'mode = "cdi"')]
    assert [line for line in text.splitlines() if line in kept] == kept
    assert changes_of((RuntimeMode("legacy"),), {"config.toml": "legacy\n"}) == ()


@pytest.mark.parametrize("mode", ["cdi", "jit-cdi"])
def test_a_docker_whose_flag_needs_the_hook_refuses_these_modes(mode: str) -> None:
    state = GpusFlagWorks(mode)
    (refused,) = changes_of((state,), {"dpkg-query": "docker.io\t28.2.2-0ubuntu1~24.04.1\tii \n"})
    assert isinstance(refused, Refusal)
    assert f"the mode {mode}; set container.toolkit.mode to auto, or install Docker 29.2 or newer" in refused.sentence
    assert changes_of((state,), {"dpkg-query": "docker-ce\t5:29.2.0-1~debian.12~bookworm\tii \n"}) == ()
    assert changes_of((state,), {"dpkg-query": "bash\t5\tii \n"}) == ()


def test_the_distributions_docker_refuses_these_modes_before_it_is_installed(tmp_path: Path) -> None:
    stack = own("pytorch-2.14", tmp_path, "{toolkit: {mode: cdi}}")
    old, older = rules(stack, "debian", "13"), rules(stack, "debian", "12")
    assert older["container-cdi-engine"].sentence.startswith(
        "Docker 20.10.24 runs `docker run --gpus` only through the"
    )
    assert old["container-cdi-engine"].nearest == "mode: auto, or Docker 29.2 or newer"
    assert "container-cdi-engine" not in rules(stack, "ubuntu", "24.04"), "its Docker changes, and is not known yet"
    new = "{toolkit: {mode: cdi}, docker: docker-ce, docker_versions: {docker-ce: '5:29.7.2-1~debian.12~bookworm'}}"
    assert "container-cdi-engine" not in rules(own("pytorch-2.14", tmp_path, new), "debian", "12")


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ("{toolkit: {mode: jit-cdi, version: 1.17.8-1}}", "container-mode"),
        ("{docker_versions: {docker-ce: '5:29.7.2-1'}}", "container-docker-versions"),
    ],
)
def test_a_stack_that_contradicts_itself_is_refused(tmp_path: Path, values: str, rule: str) -> None:
    stack = own("pytorch-2.14", tmp_path, values)
    assert rule in [one.rule for one in check_stack(stack, RULES)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [("5:29.7.2-1~debian.12~bookworm", (29, 7, 2)), ("4.9.3+ds1-1ubuntu0.2", (4, 9, 3)), ("", ()), ("x", ())],
)
def test_numbers_of_a_version(text: str, parts: Numbers) -> None:
    assert numbers(text) == parts
    assert not loses_gpus_flag("auto", text)


def test_new_stacks_give_cdi_devices_and_the_former_ones_stay_as_they_were() -> None:
    today, former = (stack.section(ContainerSection).toolkit for stack in (TODAY, FORMER))
    assert (today.mode, today.gives_cdi) == ("auto", True)
    assert (former.mode, former.gives_cdi, former.version) == ("legacy", False, today.version)


def test_an_older_pin_has_no_unit_and_changes_no_setting_of_docker(tmp_path: Path) -> None:
    """A stack at 1.17.8 has none of the states for 1.18."""
    old = own("tensorflow-2.9", tmp_path, "{toolkit: {version: 1.17.8-1}}")
    kinds = {type(one).__name__ for one in container.resources(Container(), RoleContext(old))}
    assert "CdiSpecification" not in kinds
    assert not old.section(ContainerSection).toolkit.gives_cdi


def test_a_docker_of_an_exact_version_is_held(tmp_path: Path) -> None:
    stack = own("tensorflow-2.9", tmp_path, "{docker_versions: {docker.io: 20.10.5+dfsg1-1+deb11u2}}")
    assert stack.section(ContainerSection).versions()["docker"] == "20.10.5+dfsg1-1+deb11u2"
    changes = changes_of(container.resources(Container(), RoleContext(stack)), {"dpkg-query": "bash\t5\tii \n"})
    engine = next(one for one in changes if one.what == "packages docker.io")
    assert isinstance(engine, Change)
    assert "docker.io=20.10.5+dfsg1-1+deb11u2" in engine.steps[0].script
    assert f"{HOLD}docker.io" in engine.steps[0].script
