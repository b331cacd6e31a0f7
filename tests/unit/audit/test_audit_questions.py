"""Tests of the values program, run by this machine's shell on a made-up host."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit.readings.answers import VALUE_CHARACTERS, check_lines, is_meant, meant, read_answers, value_probes
from hostwright.audit.readings.program import package_patterns, root_program, user_program
from hostwright.plan.roles.auditvalue import (
    PRODUCT,
    AuditValue,
    FileLine,
    LibraryVersion,
    PackageVersion,
    UnitProperty,
    VenvPython,
    VenvVersion,
)
from hostwright.plan.roles.role import RoleContext
from hostwright.resources.files.files import File
from hostwright.resources.python.environments import EnvironmentVariables
from hostwright.standard.roles.base import Base, base
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.cudnn import Cudnn
from hostwright.standard.roles.cudnn.section import CudnnSection
from hostwright.standard.roles.driver import Driver, driver
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.environment import Environment, environment
from hostwright.standard.roles.tensorflow.section import TensorflowSection
from tests.unit.support.auditvalues import role_context, values
from tests.unit.support.madeup import VENV, MadeUp, bare, provisioned
from tests.unit.support.stacks import load_stack, with_values

STACK = load_stack("tensorflow-2.9")
ALL = values(STACK)
NAMES = {one.where.line: one.name for one in reversed(ALL)}


@pytest.fixture
def host(tmp_path: Path) -> MadeUp:
    return provisioned(tmp_path, STACK)


def answers(host: MadeUp) -> dict[str, str]:
    """The answers of the host, by the names of lines and of the values in them."""
    found = read_answers(host.ask(user_program(ALL, PRODUCT)))
    return found | {NAMES[line]: text for line, text in found.items() if line in NAMES}


def python(version: str) -> dict[str, str]:
    """The answer about the Python in TensorFlow's environment."""
    return {VenvPython(VENV).line: version}


def wrong(found: dict[str, str]) -> dict[str, str]:
    """The differences from the stack, by layer and name."""
    compared = (value for value in meant(ALL, found) if value.want is not None and not value.root)
    return {
        f"{value.layer} {value.name}": have
        for value in compared
        if (have := found.get(value.where.line, "")) != value.want
    }


def test_a_provisioned_host_has_every_value_that_the_stack_wants(host: MadeUp):
    assert wrong(answers(host)) == {}


def test_what_no_stack_pins_is_read_as_well(host: MadeUp):
    found = answers(host)
    assert {name: found[name] for name in ("kernel", "distribution", "cpu", "microcode", "memory", "product")} == {
        "kernel": "5.10.0-28-amd64",
        "distribution": "Debian GNU/Linux 11 (bullseye)",
        "cpu": "AMD EPYC 7543",
        "microcode": "0xa0011d1",
        "memory": "503 GiB",
        "product": "PowerEdge R7525",
    }
    assert (found["docker"], found["toolkits"], found["python"]) == ("docker.io 20.10.5+dfsg1-1", "11.2", "3.9")
    assert (found["secure boot"], found["bios version"]) == ("off", "")
    assert found["record at"] == "2026-11-21T10:00:00"


def test_a_bare_host_says_that_nothing_is_there(tmp_path: Path):
    found = answers(bare(tmp_path))
    assert found["complete"] == "yes"
    assert not any(found[name] for name in ("loaded", "module", "cuda link", "toolkits", "python", "tensorflow"))
    assert {found[name] for name in ("driver pins", "nvidia-smi", "profile", "nvidia runtime")} == {"no"}
    differing = {name.partition(" ")[0] for name in wrong(found)}
    assert differing == {"base", "driver", "cuda", "cudnn", "environment", "tensorflow", "container", "release"}


@pytest.mark.parametrize(
    "path, differing",
    [
        ("/sys/module/nvidia/version", {"driver loaded": ""}),
        ("/var/lib/dkms/nvidia", {"driver dkms": ""}),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.470.182.03", {"driver libcuda": ""}),
        ("/usr/bin/nvidia-smi", {"driver nvidia-smi": "no"}),
        ("/usr/local/cuda-11.2/bin/nvcc", {"cuda nvcc": ""}),
        ("/usr/local/cuda", {"cuda link": ""}),
        ("/usr/local/cuda-11.2/targets/x86_64-linux/lib/libcudnn_ops_infer.so.8", {"cudnn libcudnn_ops_infer": ""}),
        ("/usr/local/cuda-11.2/targets/x86_64-linux/lib/libcudnn.so.8.1.0", {"cudnn libcudnn": ""}),
        ("/usr/local/cuda-11.2/targets/x86_64-linux/include/cudnn_version.h", {"cudnn header": ""}),
        ("/etc/profile.d/cuda.sh", {"environment profile": "no"}),
        (f"{VENV}/lib/python3.9/site-packages/numpy-1.26.4.dist-info", {"tensorflow numpy": ""}),
        ("/etc/docker/daemon.json", {"container nvidia runtime": "no"}),
        ("/etc/apt/preferences.d/hostwright-no-other-driver", {"driver driver pins": "no"}),
        ("/var/lib/hostwright/release.json", {"release stack": ""}),
    ],
)
def test_one_thing_that_is_gone_is_one_value_that_differs(host: MadeUp, path: str, differing: dict[str, str]):
    host.remove(path)
    assert wrong(answers(host)) == differing


def test_other_versions_are_read_as_what_they_are(host: MadeUp):
    host.program("modinfo", "echo 470.256.02")
    host.write("/usr/local/lib/libcudnn.so.8.2.4")
    site = f"{VENV}/lib/python3.9/site-packages"
    host.write(f"{site}/protobuf-4.21.12.dist-info/RECORD")
    assert wrong(answers(host)) == {
        "driver module": "470.256.02",
        "driver dkms": "",  # built for the version on disk; this version was not built
        "cudnn strays": "/usr/local/lib/libcudnn.so.8.2.4",
        "tensorflow protobuf": "3.19.6 4.21.12",
    }


def test_a_library_that_a_package_owns_is_no_stray(host: MadeUp):
    host.program("dpkg-query", "exit 0")
    host.write("/usr/local/lib/libcudnn.so.8.2.4")
    assert answers(host)["cudnn strays 8"] == ""


def test_a_package_that_is_not_held_or_only_configured_is_seen(host: MadeUp):
    host.program("dpkg-query", "echo 'installed mark cuda-toolkit-11-2=install'; echo 'unpacked package dkms=2.8'")
    found = answers(host)
    assert found["mark cuda-toolkit-11-2"] == "not held"
    assert "package dkms" not in found


def test_what_drives_a_card_and_secure_boot_are_read(host: MadeUp):
    host.write("/sys/bus/pci/drivers/nouveau/0000:3b:00.0/x")
    host.write("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", b"\x06\0\0\0\x01")
    found = answers(host)
    assert (found["nouveau"], found["secure boot"]) == ("bound", "on")


def test_a_second_toolkit_is_read_beside_the_first(host: MadeUp):
    host.write("/usr/local/cuda-11.8/targets/x")
    host.write("/usr/local/cuda-11.8;reboot/targets/x")
    host.write("/usr/local/cuda-11.9/left-behind")
    assert answers(host)["toolkits"] == "11.2 11.8"
    assert wrong(answers(host)) == {}


def test_apt_sources_of_cuda_are_named(host: MadeUp):
    host.write("/etc/apt/sources.list.d/cuda-local.list", "deb [signed-by=/k] file:///var/cuda-repo /\n")
    host.write("/etc/apt/sources.list.d/old.list", "# deb https://example.org/cuda /\n")
    host.write("/etc/apt/sources.list.d/net.sources", "Types: deb\nURIs: https://example.org/compute/cuda/repos\n")
    assert answers(host)["cuda sources"] == "cuda-local.list net.sources"


def test_no_value_passes_for_another_name(host: MadeUp):
    host.program("modinfo", "printf '1\\nloaded=9\\ncomplete=9\\n'")
    host.write("/sys/class/dmi/id/board_name", "x\x85loaded=9\rkernel=9\n")
    found = answers(host)
    assert (found["module"], found["loaded"], found["complete"]) == ("1", STACK.section(DriverSection).version, "yes")
    assert found["board"] == "x\x85loaded=9\rkernel=9"


def test_a_long_value_is_cut(host: MadeUp):
    host.write("/sys/module/nvidia/version", "4" * 100_000)
    assert answers(host)["loaded"] == "4" * VALUE_CHARACTERS


def test_files_in_the_directory_of_the_login_are_no_package_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    host = bare(tmp_path)
    host.program("dpkg-query", 'shift 3; echo "installed package seen=$*"')
    (tmp_path / "cuda_11.run").touch()
    monkeypatch.chdir(tmp_path)
    assert answers(host)["package seen"].split()[0] == "cuda*"


def test_docker_is_asked_only_where_it_runs(host: MadeUp):
    host.program("curl", "touch /run/asked; exit 7")
    info = '{"CgroupDriver":"systemd","Runtimes":{"runc":{"path":"runc"}},"DefaultRuntime":"runc"}'
    host.program("docker", f"touch /run/asked; echo '{info}'")
    assert read_answers(host.ask(root_program(ALL))) == {
        "docker default runtime": "", "docker cgroup driver": "", "docker firewall rules": "", "complete": "yes",
    }  # fmt: skip
    assert not host.place("/run/asked").exists()
    host.write("/run/docker.pid", "77")
    host.place("/proc/77/x").mkdir()
    found = read_answers(host.ask(root_program(ALL)))
    assert (found["docker default runtime"], found["docker cgroup driver"]) == ("runc", "systemd")


@pytest.mark.parametrize(
    ("rules", "shown"),
    [("-A FORWARD -j DOCKER-FORWARD\n-A PREROUTING -j DOCKER", "there"), ("", "gone from nat filter")],
)
def test_dockers_firewall_rules_are_missed(host: MadeUp, rules: str, shown: str):
    host.program("curl", "echo '{}'")
    host.program("iptables", f"echo '{rules}'")
    host.write("/run/docker.pid", "77")
    host.place("/proc/77/x").mkdir()
    assert read_answers(host.ask(root_program(ALL)))["docker firewall rules"] == shown


def test_stored_answers_can_be_compared_with_another_stack():
    newer = STACK.model_copy(
        update={
            "driver": STACK.section(DriverSection).model_copy(update={"version": "470.256.02"}),
            "cuda": STACK.section(CudaSection).model_copy(update={"version": "11.4.4", "package": "cuda-toolkit-11-4"}),
            "cudnn": STACK.section(CudnnSection).model_copy(update={"version": "8.2.4.15"}),
            "name": "newer",
        }
    )
    assert value_probes(values(newer)) == value_probes(ALL)
    assert values(newer) != ALL


def test_one_question_as_the_user_and_one_as_root():
    assert [probe.root for probe in value_probes(ALL)] == [False, True]


def test_each_program_is_started_once_for_the_values_of_all_roles(host: MadeUp):
    for name in ("dpkg-query", "ldconfig", "systemctl"):
        program = (host.root / "programs" / name).read_text().partition("\n")[2]
        host.program(name, f"echo {name} >>{host.place('/run/started')}\n{program}")
    more = (
        AuditValue("package", PackageVersion("libnccl2"), "2.8", layer="nccl"),
        AuditValue("library", LibraryVersion("libnccl.so.2"), "2.8", layer="nccl"),
        AuditValue("daemon", UnitProperty("nccl.service", "SubState"), layer="nccl"),
    )
    assert "complete" in read_answers(host.ask(user_program((*ALL, *more))))
    assert sorted(host.place("/run/started").read_text().split()) == ["dpkg-query", "ldconfig", "systemctl"]


def test_a_package_of_no_family_is_asked_for_by_its_name():
    own = with_values(STACK, cuda={"components": {"graphviz": "1"}})
    assert package_patterns(values(own)) == (*package_patterns(ALL), "graphviz")
    assert package_patterns(ALL)[-1] == "dkms"


def test_the_wanted_numpy_depends_on_the_python_version():
    def numpy(version: str) -> str | None:
        return next(value.want for value in meant(ALL, python(version)) if value.name == "numpy")

    assert (numpy("3.8"), numpy("3.9"), numpy("3.12"), numpy("")) == ("1.24.4", "1.26.4", None, None)


def test_without_an_environment_nothing_is_asked_of_tensorflow():
    assert "tensorflow" not in {one.layer for one in values(STACK, "base", "driver", "cuda")}


@pytest.mark.parametrize("version", ["3.9", "3.12", ""])
def test_a_layer_and_a_name_mean_one_value(version: str):
    asked = meant(ALL, python(version))
    names = [(one.layer, one.name) for one in asked]
    assert len(set(names)) == len(names) == len({(one.layer, one.name) for one in ALL})
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9 ._+-]*", one.name) for one in ALL)


def test_the_program_prints_every_value_that_is_compared(host: MadeUp):
    printed = {*answers(host), *read_answers(host.ask(root_program(ALL)))}
    there = {one.where.line for one in meant(ALL, python("3.9"))} | {one.among.line for one in ALL if one.among}
    assert {NAMES[line] for line in there - printed} == {"fabric manager"}  # only on hosts with NVSwitches


def test_fabric_manager_is_found_by_any_branch(host: MadeUp):
    host.program("dpkg-query", "echo 'installed package nvidia-fabricmanager-470=470.182.03-1'")
    assert answers(host)["fabric manager"] == "470.182.03-1"


def test_the_paths_are_those_of_the_roles():
    text = user_program(ALL)
    states = (*base.resources(Base(), RoleContext(STACK)), *driver.resources(Driver(), RoleContext(STACK)))
    written = [one.path for one in states if isinstance(one, File)]
    written = [path for path in written if path.startswith("/etc/apt/")]
    written += [
        one.path
        for one in environment.resources(Environment(), RoleContext(STACK))
        if getattr(one, "check", "") == "sh -n %s"
    ][:1]
    assert len(written) == 3
    assert [path for path in (*written, *Cudnn().loader_directories) if f" {path}" not in text] == []
    assert STACK.section(TensorflowSection).home(EnvironmentVariables().path) == VENV


def test_checks_are_lines_of_six_fields_without_the_record():
    lines = [line.split("\t") for line in check_lines(role_context(STACK).audit_values)]
    loaded, numpy = FileLine("/sys/module/nvidia/version").line, VenvVersion(VENV, "numpy").line
    assert {len(line) for line in lines} == {6}
    assert ["driver", "loaded", loaded, "", "", "470.182.03"] in lines
    assert ["tensorflow", "numpy", numpy, VenvPython(VENV).line, "3.9", "1.26.4"] in lines
    assert "release" not in {line[0] for line in lines}


@given(st.text())
def test_answers_of_any_text_are_short_and_of_one_line(text: str):
    for name, value in read_answers(text).items():
        assert re.fullmatch(r"[A-Za-z0-9 ._+-]+", name)
        assert "\n" not in value
        assert len(value) <= VALUE_CHARACTERS


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z0-9 ]{0,20}", fullmatch=True), st.text(st.characters(exclude_characters="\n"))
    )
)
def test_what_is_printed_is_read(pairs: dict[str, str]):
    text = "".join(f"{name}={value}\n" for name, value in pairs.items())
    assert read_answers(text) == {name: value.strip()[:VALUE_CHARACTERS] for name, value in pairs.items()}


def test_a_line_that_was_cut_is_no_answer():
    assert read_answers("kernel=5.10.0\nloaded=470.1") == {"kernel": "5.10.0"}


def test_a_condition_is_met_by_that_answer_alone():
    one = AuditValue("numpy", VenvVersion(VENV, "numpy"), given=(VenvPython(VENV), "3.9"))
    assert is_meant(one, python("3.9"))
    assert not is_meant(one, python("3.90"))
    assert not is_meant(one, {})
