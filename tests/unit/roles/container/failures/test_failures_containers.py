"""Rules for Docker and the container toolkit find their failures on a host, and none on a sound host."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit.failures.rule import FailureRule
from hostwright.audit.judging.context import Unread
from hostwright.plan.host.release import RELEASE
from hostwright.plan.model import Answer, Facts, Probe
from hostwright.resources.packages.packages import DPKG
from hostwright.resources.system.services import Disturbing, RestartedAfter
from hostwright.standard.roles.container.engine import SNAP_DOCKER
from hostwright.standard.roles.container.failures import FAILURES as CONTAINERS
from hostwright.standard.roles.container.failures import units
from hostwright.standard.roles.container.failures.access import ACCESS
from hostwright.standard.roles.container.failures.docker import HOOK_THERE, LINKS
from hostwright.standard.roles.container.failures.state import (
    COMMAND,
    CONTEXT,
    INFO,
    SETTINGS,
    NotJson,
    options,
    settings,
)
from hostwright.standard.roles.container.failures.toolkit import FORMER_SOURCES, NO_CGROUPS, REACHES_DRIVER
from hostwright.standard.roles.container.section import ContainerSection
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI
from tests.unit.roles import test_role_base, test_role_container
from tests.unit.support.auditcontexts import DESIRED, EXEC, STACK, evidence, look_at, show, shown
from tests.unit.support.known import BY_NAME
from tests.unit.support.shell import ask, program, run

STATES, FILES = units.UNITS.states, units.FILES
SIGNED = [rule for rule in CONTAINERS if rule.sign]
WANTED = STACK.section(ContainerSection).toolkit.version
BASE, DOCKER = test_role_base.PROVISIONED, test_role_container.DPKG
RESTART = next(
    one.resource.probes()[0]
    for one in DESIRED.roles[1].resources
    if isinstance(one, Disturbing) and isinstance(one.resource, RestartedAfter)
)
DEVICES = LINKS.probes()[0]
NO_DOCKER = BASE + DOCKER.partition("\n")[2]
EXITED = {"active": "failed", "sub": "failed", "result": "exit-code"}
JSON = SETTINGS[1]


@pytest.mark.parametrize("rule", SIGNED, ids=lambda rule: rule.name)
def test_nothing_is_seen_on_a_host_that_is_as_desired(rule: FailureRule) -> None:
    assert not any(look_at().changes.values())
    assert evidence(rule.name) == []


@pytest.mark.parametrize("rule", SIGNED, ids=lambda rule: rule.name)
def test_nothing_is_said_of_a_host_that_was_not_asked(rule: FailureRule) -> None:
    assert rule.sign is not None
    probes = dict.fromkeys(rule.sign.probes or (RESTART,))
    with pytest.raises(Unread):
        evidence(rule.name, probes)


@pytest.mark.parametrize("rule", SIGNED, ids=lambda rule: rule.name)
@given(text=st.text(alphabet=string.printable + "\x1b\x00²\u202e", max_size=300), status=st.sampled_from([0, 1, 124]))
def test_garbage_never_raises(rule: FailureRule, text: str, status: int) -> None:
    assert rule.sign is not None
    with suppress(Unread):
        evidence(rule.name, dict.fromkeys(rule.sign.probes, Answer(status, text)))


def test_docker_from_snap_is_recognised() -> None:
    assert evidence("docker-snap", {SNAP_DOCKER: "2915\n"}) == ["/snap/docker/current points to 2915"]


def test_a_docker_that_was_removed_is_missed_only_where_it_was() -> None:
    assert evidence("docker-gone", {DPKG: NO_DOCKER}) == ["no package of Docker is installed"]
    half = f"{NO_DOCKER}docker.io:amd64\t20.10.5\tiF \tamd64\tdocker.io\n"
    assert evidence("docker-gone", {DPKG: half}) == [], "ApolloAuto/apollo#12485: it is there, half configured"
    assert evidence("docker-gone", {DPKG: NO_DOCKER, RELEASE: Answer(1, "")}) == []
    assert evidence("docker-gone", {DPKG: NO_DOCKER, SNAP_DOCKER: "1\n"}) == []


@pytest.mark.parametrize(
    "text, seen",
    [
        (show("docker.service", "inactive", "dead"), ["docker.service is inactive (dead)"]),
        (show("docker.service", "activating", "start"), []),
        (show("docker.service", "inactive", "dead", load="masked"), []),
        (show("docker.service", **EXITED), []),
    ],
)
def test_a_stopped_docker_is_seen(text: str, seen: list[str]) -> None:
    assert evidence("docker-stopped", {STATES: shown(docker=text)}) == seen


@pytest.mark.parametrize("job, seen", [("72", False), ("0", True), ("", True)])
def test_a_docker_that_waits_for_its_turn_at_boot_has_not_stopped(job: str, seen: bool) -> None:
    text = shown(docker=show("docker.service", "inactive", "dead") + f"Job={job}\n")
    assert bool(evidence("docker-stopped", {STATES: text})) is seen


def test_a_host_without_docker_has_none_that_stands_still() -> None:
    text = shown(docker=show("docker.service", "inactive", "dead", load="not-found"))
    assert evidence("docker-stopped", {STATES: text, DPKG: NO_DOCKER}) == []


@pytest.mark.parametrize("text", ['{"runtimes": ', "[]", '"x"', '{"debug": NaN}'])
def test_a_daemon_json_that_is_no_object_is_seen(text: str) -> None:
    (line,) = evidence("daemon-json", {JSON: text})
    assert line.startswith("/etc/docker/daemon.json: ")
    assert evidence("daemon-json-twice", {JSON: text}) == []
    assert evidence("runtime-unknown", {JSON: text}) == []


def test_a_daemon_json_without_end_is_no_object() -> None:
    ctx = look_at()
    with pytest.raises(NotJson):
        settings(replace(ctx, facts=Facts({**ctx.facts, JSON: Answer(0, "[" * 100_000)})))


@pytest.mark.parametrize("differs", [{JSON: "  \n"}, {SETTINGS[0]: Answer(1, ""), JSON: Answer(1, "")}])
def test_an_empty_daemon_json_is_none(differs: Mapping[Probe, Any]) -> None:
    assert evidence("daemon-json", differs) == []
    assert evidence("runtime-unknown", differs) == ["/etc/docker/daemon.json names no runtime nvidia"]


def test_a_daemon_json_that_was_cut_off_is_not_judged() -> None:
    with pytest.raises(Unread):
        evidence("daemon-json", {JSON: Answer(0, '{"a": ', truncated=True)})


def test_hosts_beside_the_packaged_units_own_are_seen() -> None:
    text = json.dumps({**test_role_container.RUNTIMES, "hosts": ["tcp://0.0.0.0:2376"]})
    assert evidence("daemon-json-twice", {JSON: text}) == [
        "hosts: in /etc/docker/daemon.json and on the command line of docker.service"
        " (/lib/systemd/system/docker.service, /etc/systemd/system/docker.service.d/a.conf)"
    ]


def test_runtimes_may_be_said_twice() -> None:
    line = EXEC.replace("$DOCKER_OPTS", "--add-runtime nvidia=/usr/bin/nvidia-container-runtime")
    assert evidence("daemon-json-twice", {COMMAND: line}) == []


@pytest.mark.parametrize(
    "line, keys",
    [
        ("dockerd", set()),
        ("dockerd -H fd:// --containerd=/run/containerd/containerd.sock", {"hosts", "containerd"}),
        ("dockerd --exec-opt native.cgroupdriver=cgroupfs -D", {"exec-opts", "debug"}),
        ("dockerd $DOCKER_OPTS", {"data-root", "log-opts"}),
        ("dockerd ${DOCKER_OPTS}", {"data-root", "log-opts"}),
    ],
)
def test_the_command_line_is_read(line: str, keys: set[str]) -> None:
    text = f"ExecStart={{ path=/x ; argv[]=/usr/bin/{line} ; ignore_errors=no ; pid=1 }}\n"
    given_ = f'{text}DOCKER_OPTS="--dns 8.8.8.8"\nDOCKER_OPTS="--data-root /data --log-opt max-size=1m"\n'
    assert options(look_at({COMMAND: given_})) == keys


def test_a_runtime_that_docker_does_not_know_yet_is_seen() -> None:
    told = "runtime io.containerd.runc.v2\nruntime runc\ncgroup systemd\n"
    assert evidence("runtime-unknown", {INFO: told}) == ["Docker has the runtimes io.containerd.runc.v2, runc"]


def test_a_docker_that_does_not_run_knows_nothing() -> None:
    stopped = {INFO: Answer(3, ""), STATES: shown(docker=show("docker.service", "inactive", "dead"))}
    assert evidence("runtime-unknown", stopped) == []
    with pytest.raises(Unread):
        evidence("runtime-unknown", {INFO: Answer(124, "")})


def test_a_bare_host_is_spared_what_only_docker_can_lack() -> None:
    bare = {DPKG: BASE, JSON: Answer(1, ""), SETTINGS[0]: Answer(1, ""), HOOK_THERE: ""}
    for name in ("runtime-unknown", "no-gpu-in-docker", "toolkit-not-held", "toolkit-moved", "docker-stopped"):
        assert evidence(name, bare) == []


def test_a_missing_hook_is_seen() -> None:
    assert evidence("no-gpu-in-docker", {HOOK_THERE: ""}) == ["nvidia-container-runtime-hook is not there"]


def test_a_runtime_of_daemon_json_whose_program_is_gone_is_told_with_its_reach() -> None:
    """NVIDIA/nvidia-container-runtime#98: the toolkit was purged, and not even a container without GPU started."""
    program = test_role_container.RUNTIMES["runtimes"]["nvidia"]["path"]
    purged: dict[Probe, Any] = {HOOK_THERE: f"gone {program}\n"}
    told = f"/etc/docker/daemon.json: the runtime nvidia is {program}, which is not there"
    assert evidence("runtime-gone", purged) == [told]
    default = json.dumps({**test_role_container.RUNTIMES, "default-runtime": "nvidia"})
    assert evidence("runtime-gone", {**purged, JSON: default}) == [
        f"{told}, and nvidia is the default-runtime: no container starts at all"
    ]
    assert evidence("no-gpu-in-docker", purged) == evidence("other-runtime-gone", purged) == []
    other = {**test_role_container.RUNTIMES["runtimes"], "gvisor": {"path": "/opt/runsc"}}
    gone: dict[Probe, Any] = {HOOK_THERE: "/usr/bin/nvidia-container-runtime-hook\ngone /opt/runsc\n"}
    answers = {**gone, JSON: json.dumps({"runtimes": other})}
    assert evidence("runtime-gone", answers) == []
    (line,) = evidence("other-runtime-gone", answers)
    assert "reinstall the package with /opt/runsc" in BY_NAME["other-runtime-gone"].finding((line,)).cure.lower()


def test_programs_of_runtimes_and_the_sockets_group_are_looked_for(tmp_path: Path) -> None:
    programs, settings = tmp_path / "bin", tmp_path / "daemon.json"
    settings.write_text(
        json.dumps({"runtimes": {"a": {"path": "sh"}, "b": {"path": "/no/b"}, "c": {"path": "c", "x": []}}}, indent=1)
    )
    program(programs, "systemctl", "echo planted")
    program(programs, "getent", "exit 2")
    script = HOOK_THERE.script.replace("/etc/docker/daemon.json", str(settings))
    told = run(script, path=programs).stdout.decode().splitlines()
    assert told == ["gone /no/b", "gone c", "group planted"]
    program(programs, "nvidia-container-runtime-hook", "true")
    program(programs, "getent", "exit 0")
    settings.unlink()
    assert run(script, path=programs).stdout.decode().splitlines() == [f"{programs}/nvidia-container-runtime-hook"]


def test_a_restart_that_is_due_is_seen() -> None:
    assert evidence("docker-restart-due", {RESTART: "/etc/docker/daemon.json\n"}) == [
        "/etc/docker/daemon.json is newer than the running Docker"
    ]


def test_a_restart_is_due_only_where_it_mends() -> None:
    """If Docker's input is wrong, that is the finding, and its fix includes the restart."""
    newer: dict[Probe, Any] = {RESTART: "/etc/docker/daemon.json\n"}
    twice = json.dumps({**test_role_container.RUNTIMES, "hosts": ["fd://"]})
    told = "runtime runc\ncgroup systemd\n"
    moved = BASE + DOCKER.replace(WANTED, "1.18.0-1")
    for probe, reply in ((JSON, '{"a": '), (JSON, "{}"), (JSON, twice), (INFO, told), (DPKG, moved)):
        assert evidence("docker-restart-due", {**newer, probe: reply}) == []
    for probe, unread in ((INFO, None), (COMMAND, None), (JSON, None), (INFO, Answer(124, ""))):
        assert evidence("docker-restart-due", {**newer, probe: unread})


def test_missing_links_matter_where_systemd_makes_the_cgroups() -> None:
    missing = {DEVICES: "device nvidia0\ndevice nvidiactl\nlink ../nvidiactl\n"}
    assert evidence("dev-char-links-missing", missing) == ["links in /dev/char: none to nvidia0"]
    assert evidence("dev-char-links-missing", {**missing, INFO: "runtime runc\ncgroup cgroupfs\n"}) == []
    with pytest.raises(Unread):
        evidence("dev-char-links-missing", {**missing, INFO: Answer(3, "")})


def test_a_toolkit_of_mixed_versions_is_seen() -> None:
    text = DOCKER.replace(f"libnvidia-container1\t{WANTED}", "libnvidia-container1\t1.18.0-1")
    assert evidence("toolkit-moved", {DPKG: BASE + text}) == [
        f"libnvidia-container1 1.18.0-1, but the stack has {WANTED}"
    ]


def test_a_toolkit_that_moved_is_told_from_a_stack_that_did() -> None:
    newer = {DPKG: BASE + DOCKER.replace(WANTED, "1.18.0-1")}
    assert len(evidence("toolkit-moved", newer)) == 4
    record = json.dumps({"schema": 1, "roles": {}, "versions": {"container-toolkit": "1.18.0-1"}})
    assert evidence("toolkit-moved", {**newer, RELEASE: record}) == []


def test_a_lost_hold_is_seen() -> None:
    text = DOCKER.replace(f"libnvidia-container1\t{WANTED}\thi", f"libnvidia-container1\t{WANTED}\tii")
    assert evidence("toolkit-not-held", {DPKG: BASE + text}) == ["libnvidia-container1 is not held"]


def test_former_names_are_seen() -> None:
    line = "/etc/apt/sources.list.d/nvidia-docker.list:deb https://nvidia.github.io/nvidia-docker/ubuntu20.04/amd64 /\n"
    text = BASE + DOCKER + "nvidia-docker2\t2.11.0-1\tii \nnvidia-docker\t1\trc \n"
    seen = evidence("toolkit-former-names", {DPKG: text, FORMER_SOURCES: line})
    assert seen[0] == "nvidia-docker2 2.11.0-1 is installed"
    assert seen[1].startswith("/etc/apt/sources.list.d/nvidia-docker.list: deb ")
    assert len(seen) == 2


NO_DRIVER = "nvidia-container-cli: initialization error: nvml error: driver not loaded\n"
DAMAGED = "nvidia-container-cli: error while loading shared libraries: libnvidia-container.so.1\n"


def test_a_toolkit_without_its_driver_is_seen() -> None:
    assert evidence("container-without-driver", {REACHES_DRIVER: Answer(1, NO_DRIVER)}) == [NO_DRIVER.strip()]
    assert evidence("toolkit-fails", {REACHES_DRIVER: Answer(1, NO_DRIVER)}) == []


def test_a_library_that_the_toolkit_does_not_find_is_not_told_as_a_driver_that_is_not_loaded() -> None:
    line = "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open"
    failing = {REACHES_DRIVER: Answer(1, f"{line}\n")}
    assert evidence("driver-library-not-in-cache", failing) == [line]
    assert evidence("container-without-driver", failing) == evidence("toolkit-fails", failing) == []


def test_a_driver_that_differs_speaks_for_itself() -> None:
    ctx = look_at({REACHES_DRIVER: Answer(1, NO_DRIVER)})
    change = next(iter(look_at({DPKG: BASE}).changes["container"]))
    differing = replace(ctx, changes={**ctx.changes, "driver": (change,)})
    rule = next(rule for rule in CONTAINERS if rule.name == "container-without-driver")
    assert rule.sign is not None
    assert list(rule.sign.seen(differing)) == []


def test_a_toolkit_that_fails_for_itself_is_seen() -> None:
    failing = {REACHES_DRIVER: Answer(127, DAMAGED)}
    assert evidence("toolkit-fails", failing) == [DAMAGED.strip()]
    assert evidence("container-without-driver", failing) == []
    assert evidence("toolkit-fails", {**failing, NVIDIA_SMI: Answer(15, "")}) == [], "the card is the cause"
    assert evidence("toolkit-fails", {**failing, HOOK_THERE: "", DPKG: NO_DOCKER}) == [], "the layer differs"


def test_no_cgroups_of_a_rootless_guide_is_named_with_file_and_line() -> None:
    line = "2:no-cgroups = true"
    assert evidence("toolkit-no-cgroups", {NO_CGROUPS: line}) == [f"/etc/nvidia-container-runtime/config.toml:{line}"]


def test_a_path_of_the_toolkits_configuration_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        f'[nvidia-container-cli]\n#root = "/run/nvidia/driver"\npath = "{tmp_path}"\n'
        f'ldconfig = "@{tmp_path}/ldconfig.real"\n'
    )
    path = "/etc/nvidia-container-runtime/config.toml"
    status, text = ask(NO_CGROUPS.script.replace(path, str(config)))
    assert (status, text) == (0, f"gone ldconfig {tmp_path}/ldconfig.real\n")
    told = [f"{path}: ldconfig = {tmp_path}/ldconfig.real, which does not exist"]
    assert (evidence("toolkit-config", {NO_CGROUPS: text}), evidence("toolkit-no-cgroups", {NO_CGROUPS: text})) == (
        told,
        [],
    )


@pytest.mark.parametrize(
    ("row", "end"),
    [
        ("socket 666 root:docker", "mode 666: every account of the host can use it and thereby become root"),
        ("socket 660 root:root", "mode 660: the group docker cannot use it"),
        ("socket 600 root:docker", "mode 600: the group docker cannot use it"),
        ("socket 660 root:docker", ""),
    ],
)
def test_a_socket_that_is_not_as_docker_makes_it_is_named(row: str, end: str) -> None:
    told = evidence("docker-socket-mode", {ACCESS: f"{row}\n"})
    assert [line.endswith(end) for line in told] == ([True] if end else [])
    assert evidence("docker-socket-mode", {ACCESS: f"{row}\n", DPKG: NO_DOCKER}) == []


def test_a_proxy_of_dockers_that_cannot_be_one_is_named_without_its_password(tmp_path: Path) -> None:
    words = "HTTP_PROXY=http://ann:s3cret@127.0.0.1:1/ HTTPS_PROXY=http://no.such.host.invalid:3128 NO_PROXY=localhost"
    program(tmp_path, "systemctl", f"echo '{words}'")
    program(tmp_path, "ss", "exit 0")
    program(tmp_path, "getent", "exit 2")
    text = run(ACCESS.script, path=tmp_path).stdout.decode()
    assert evidence("docker-proxy-dead", {ACCESS: text}) == [
        "docker.service: HTTP_PROXY is 127.0.0.1:1: nothing listens there on this host",
        "docker.service: HTTPS_PROXY is no.such.host.invalid:3128: its name does not resolve",
    ]
    program(tmp_path, "ss", "echo LISTEN")
    program(tmp_path, "getent", "echo 10.0.0.1")
    assert "proxy" not in run(ACCESS.script, path=tmp_path).stdout.decode()


def test_a_context_that_leads_roots_docker_elsewhere_is_named() -> None:
    desktop = '/root/.docker/config.json:"currentContext": "desktop-linux"'
    own = (
        '/root/.docker/config.json:"currentContext": "default"',
        "/etc/environment:DOCKER_HOST=unix:///run/docker.sock",
        "/etc/profile.d/docker.sh:export DOCKER_CONTEXT='default'",
    )
    other = "/etc/profile.d/docker.sh:export DOCKER_HOST=unix:///run/user/1000/docker.sock"
    assert evidence("docker-context", {CONTEXT: "\n".join((desktop, *own, other))}) == [desktop, other]
    assert evidence("docker-context", {CONTEXT: desktop, DPKG: NO_DOCKER}) == []


def test_a_toolkit_that_hangs_is_not_judged() -> None:
    for name in ("toolkit-fails", "container-without-driver"):
        with pytest.raises(Unread):
            evidence(name, {REACHES_DRIVER: Answer(124, "")})


def test_a_docker_that_stands_still_is_not_started_by_the_question(tmp_path: Path) -> None:
    """Docker's socket would start it."""
    program(tmp_path, "systemctl", "exit 3")
    program(tmp_path, "docker", f"touch {tmp_path}/asked")
    assert run(INFO.script, path=tmp_path).returncode == 3
    assert not (tmp_path / "asked").exists()


def test_docker_is_asked_for_runtimes_and_cgroups(tmp_path: Path) -> None:
    runtimes = {"io.containerd.runc.v2": {"path": "runc", "status": {"features": '{"a":{"path":"x"}}'}}}
    runtimes |= {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}, "other": {"runtimeType": "io.other.v1"}}
    answer = json.dumps({"ID": "A", "CgroupDriver": "systemd", "Runtimes": runtimes}, separators=(",", ":"))
    (tmp_path / "answer").write_text(answer)
    expected = ["cgroup systemd", *(f"runtime {name}" for name in runtimes)]
    program(tmp_path, "systemctl", "exit 0")
    program(tmp_path, "curl", f"cat {tmp_path}/answer")
    assert run(INFO.script, path=tmp_path).stdout.decode().splitlines() == expected
    program(tmp_path, "curl", "exit 127")
    called = '[ "$*" = "-H unix:///var/run/docker.sock info --format {{json .}}" ] && cat'
    program(tmp_path, "docker", f"{called} {tmp_path}/answer")
    assert run(INFO.script, path=tmp_path).stdout.decode().splitlines() == expected


def test_the_toolkit_is_not_missed_where_it_is_not() -> None:
    answer = Answer(run(REACHES_DRIVER.script).returncode, "")
    assert evidence("container-without-driver", {REACHES_DRIVER: answer}) == []


def test_a_unit_that_covers_the_packages_and_wants_a_file_that_is_not_there_is_named() -> None:
    """docker/for-linux#162"""
    unit = "/etc/systemd/system/docker.service"
    text = (
        f"unit docker.service {unit} of /lib/systemd/system/docker.service\n"
        f"gone docker.service /etc/sysconfig/docker {unit} \n"
    )
    failed = shown(docker=show("docker.service", **EXITED))
    assert evidence("container-unit-failed", {FILES: text, STATES: failed}) == []
    (line,) = evidence("unit-names-missing-file", {FILES: text})
    finding = BY_NAME["unit-names-missing-file"].finding((line,))
    assert "it needs the missing file /etc/sysconfig/docker" in finding.cause
    assert unit in finding.cure
    assert evidence("program-replaced", {FILES: "replaced docker.service /usr/bin/dockerd\n"}) == [
        "docker.service runs from /usr/bin/dockerd, which was replaced since"
    ]


@pytest.mark.parametrize("there", [True, False])
def test_a_program_for_passwords_that_is_not_on_the_host_is_named(tmp_path: Path, there: bool) -> None:
    (tmp_path / "config.json").write_text('{"auths": {}, "credsStore": "desktop"}')
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", "systemctl", "exit 0")
    if there:
        program(tmp_path / "bin", "docker-credential-desktop", "exit 0")
    script = ACCESS.script.replace("/root/.docker/config.json", f"{tmp_path}/config.json")
    text = run(script, path=tmp_path / "bin").stdout.decode()
    told = evidence("docker-credentials-helper", {ACCESS: text})
    assert told == ([] if there else [f"{tmp_path}/config.json: credsStore is desktop: no docker-credential-desktop"])
