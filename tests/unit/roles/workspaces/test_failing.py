"""A failing change of a workspace: its message and leftovers, in a real shell with a made-up Docker."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hostwright.plan.host.jobs import ERROR
from hostwright.plan.model import Change
from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry
from hostwright.standard.roles.workspaces.states.running import CLOSED
from tests.unit.roles.workspaces.spaces import IMAGE, planned, variables
from tests.unit.support.stubs import stub

#: containers and networks are files; the command in FAILS (``create``, ``stop workspace-carol``) prints FAILURE
DOCKER = """
case "$* " in "$FAILS "*) [ -z "$FAILS" ] || { echo "$FAILURE" >&2; exit "${STATUS:-125}"; } ;; esac
has="$DOCKER/$1"
case "$1 $2" in
"image inspect") printf "${IMAGE_ENV:-}" ;;
"cp -L") [ -e "$DOCKER/image${3#*:}" ] || { echo "${NO_FILE:-Error: No such container:path: $3}" >&2; exit 1; } ;;
"container inspect")
  shift 2
  [ "$1" != --format ] || { format=$2; shift 2; }
  [ -e "$DOCKER/container/$1" ] || exit 1
  case ${format:-} in
  *Config.Env*) printf "${IMAGE_ENV:-}" ;;
  *Running*) echo yes ;;
  *Status*) echo "${STATE:-running 0 0}" ;;
  esac ;;
"network inspect") [ -e "$DOCKER/network/$3" ] ;;
"network create") for last; do :; done; : >"$DOCKER/network/$last" ;;
"network rm") rm "$DOCKER/network/$3" ;;
"network ls") printf "${NETWORKS:-}" ;;
"ps -a") printf "${USED:-}" ;;
"create --name") echo new >"$DOCKER/container/$3"; echo "$*" >"$DOCKER/created" ;;
"rm -f") shift 2; rm "$(printf "$DOCKER/container/%s" "$1")" ;;
rename*) [ ! -e "$DOCKER/container/$3" ] && mv "$DOCKER/container/$2" "$DOCKER/container/$3" ;;
logs*) printf 'starting\\nOSError: [Errno 99] Cannot assign requested address\\n\\n' ;;
start*) [ -e "$DOCKER/container/$2" ] && echo "$2" >>"$DOCKER/started" ;;
esac
"""


@dataclass(frozen=True)
class Done:
    """End of the step: exit status, message, and leftovers."""

    status: int
    told: str
    containers: dict[str, str]
    networks: list[str]
    files: list[str]
    started: list[str]


JUPYTER = WorkspaceEntry("bob", "jupyter", image=IMAGE)


def change(
    folder: Path,
    fails: str = "",
    failure: str = "",
    *,
    before: str = "",
    entry: WorkspaceEntry = JUPYTER,
    has: tuple[str, ...] = (),
    getent: str = "exit 2",
    **environment: str,
) -> Done:
    """Create the workspace ``carol`` on a host with the container ``before``.

    The image has the files ``has``; the host's time zones are in the directory ``zoneinfo``.
    """
    for part in ("docker/container", "docker/network", "srv", "state"):
        (folder / part).mkdir(parents=True)
    for file in has:
        path = folder / "docker/image" / file.removeprefix("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    if before:
        (folder / "docker/container/workspace-carol").write_text(before)
    v = replace(variables(carol=entry), directory=f"{folder}/srv")
    plan = planned(v)["workspace carol"]
    assert isinstance(plan, Change)
    assert plan.alone
    script = plan.steps[0].script.replace("/var/lib/hostwright/workspaces", f"{folder}/state")
    script = script.replace("zoneinfo=/usr/share/zoneinfo ", f"zoneinfo={folder}/zoneinfo ")
    script = script.replace("/etc/systemd/system", f"{folder}/systemd")
    script = script.replace(CLOSED, "true").replace(
        "timeout 10 bash -c", "ANSWERS=${ANSWERS:-} sh -c '[ -n \"$ANSWERS\" ]' ignored"
    )
    known = stub(folder, docker=DOCKER, chown="exit 0", sleep="exit 0", systemctl="exit 0", getent=getent)
    known |= {"DOCKER": f"{folder}/docker", "FAILS": fails, "FAILURE": failure, "ANSWERS": "yes", **environment}
    done = subprocess.run(["/bin/sh", "-euc", script], env=known, capture_output=True, text=True, check=False)
    told = [line.removeprefix(ERROR) for line in done.stdout.splitlines() if line.startswith(ERROR)]
    assert len(told) == (done.returncode != 0), done.stdout + done.stderr
    started = folder / "docker/started"
    return Done(
        done.returncode,
        "".join(told),
        {path.name: path.read_text().strip() for path in (folder / "docker/container").iterdir()},
        [path.name for path in (folder / "docker/network").iterdir()],
        sorted(str(path.relative_to(folder)) for top in ("srv", "state") for path in (folder / top).rglob("*")),
        started.read_text().split() if started.exists() else [],
    )


def test_one_that_goes_well_has_its_container_network_and_files(tmp_path: Path) -> None:
    done = change(tmp_path)
    assert done.status == 0
    assert done.containers == {"workspace-carol": "new"}
    assert done.networks == ["hostwright-bob"]
    assert {"state/carol/definition.json", "state/carol/token", "srv/bob/carol"} <= set(done.files)


@pytest.mark.parametrize(
    ("fails", "failure", "told"),
    [
        ("create", "Error response from daemon: Range of CPUs is from 0.01 to 8.00, as there are only 8 CPUs available",
         "Docker does not make its container: Error response from daemon: Range of CPUs is from 0.01 to 8.00, as there "
         "are only 8 CPUs available (give it fewer (cpus: …))"),
        ("create", "Error response from daemon: mkdir /var/lib/docker/overlay2/8-init: no space left on device",
         "(free space on the host (df -h), or inodes (df -i), then run the same command again)"),
        ("start", "Error response from daemon: driver failed: Bind for 127.0.0.1:64302 failed: port is already "
         "allocated\nError: failed to start containers: head", "another program has its port: ss -ltnp on the host"),
        ("start", "Error response from daemon: failed to add the host (veth7) <=> sandbox (veth1) pair interfaces: "
         "operation not supported", "reboot the host"),
        ("network create", "Error response from daemon: no available network", "The network hostwright-bob"),
        ("network create", "Error response from daemon: could not find an available, non-overlapping IPv4 address pool "
         "among the defaults to assign to the network", "(give Docker more addresses: default-address-pools in"),
        ("network create", "Error response from daemon: all predefined address pools have been fully subnetted",
         "(give Docker more addresses: default-address-pools in"),
        ("rename", "Error response from daemon: the daemon is shutting down", "could not take its place"),
        ("start", 'OCI runtime create failed: exec: "nvidia-container-runtime": executable file not found in $PATH',
         "the host has lost nvidia-container-runtime: `invoke provision --roles container`"),
    ],
)  # fmt: skip
def test_a_new_one_that_fails_leaves_nothing(tmp_path: Path, fails: str, failure: str, told: str) -> None:
    done = change(tmp_path, fails, failure)
    assert done.status == 1
    assert done.told.startswith("workspace carol: ")
    assert told.lower() in done.told.lower()
    assert done.told.endswith("; nothing of it was left running")
    assert (done.containers, done.networks, done.files) == ({}, [], [])


@pytest.mark.parametrize("fails", ["create", "stop", "rename workspace-carol workspace-carol.old", "start"])
def test_what_was_there_stays_whichever_step_fails(tmp_path: Path, fails: str) -> None:
    once = {"STATUS": "1"}
    done = change(tmp_path, fails, "the daemon is shutting down", before="old", **once)
    assert done.status == 1
    assert done.containers == {"workspace-carol": "old"}
    if fails != "start":  # a container that cannot start cannot be restarted either, and the message says so
        assert done.told.endswith(("; it goes on as it was", "; it is as it was before"))
    else:
        assert "what it had before is not back: fix the cause" in done.told


def test_one_that_does_not_answer_is_taken_back(tmp_path: Path) -> None:
    done = change(tmp_path, before="old", ANSWERS="", STATE="exited 0 7")
    assert done.containers == {"workspace-carol": "old"}
    assert done.started == ["workspace-carol", "workspace-carol"]
    assert "it ended soon after its start (status 7): OSError: [Errno 99] Cannot assign requested address" in done.told
    assert "(its image, command or files (also the person's own packages in ~/.local) are wrong" in done.told
    assert done.told.endswith("; it is as it was before")


def test_a_docker_that_hangs_is_told(tmp_path: Path) -> None:
    done = change(tmp_path, "create", "", STATUS="124")
    assert "Docker did not answer within 90 s (systemctl status docker containerd" in done.told


@pytest.mark.parametrize(
    ("image", "given"),
    [
        ("PATH=/bin\nNOLANG=1\n", True),
        ("PATH=/bin\n", True),
        ("LANG=de_DE.UTF-8\n", False),
        ("A=1\nLC_ALL=C.UTF-8\n", False),
    ],
)
def test_an_image_without_a_locale_gets_one_with_all_letters(tmp_path: Path, image: str, given: bool) -> None:
    """tensorflow#20380: print() of a non-ASCII letter. The workspace's own environment overrides the default."""
    assert change(tmp_path, IMAGE_ENV=image).status == 0
    words = (tmp_path / "docker/created").read_text().split()
    assert ("--env=LANG=C.UTF-8" in words) is given
    assert not given or words.index("--env=LANG=C.UTF-8") < words.index("HOME=/workspace")


def test_a_host_with_too_many_networks_names_those_without_a_container(tmp_path: Path) -> None:
    """for-linux#599: no message named the unused networks."""
    failure = "Error response from daemon: all predefined address pools have been fully subnetted"
    done = change(
        tmp_path, "network create", failure, NETWORKS="old\nhostwright-eve\nhostwright-al\n", USED="hostwright-al,x\n"
    )
    assert failure in done.told
    assert "docker network rm old hostwright-eve)" in done.told, "one of a container that does not run stays, too"
    assert "default-address-pools in /etc/docker/daemon.json" in done.told


def run_of(first_line: str, *mounts: str, **variables: str) -> WorkspaceEntry:
    """Return a batch run whose script begins so."""
    script = f"{first_line}\nprint hello\n"
    return WorkspaceEntry("bob", "batch", image=IMAGE, script=script, mounts=mounts, environment=variables)


@pytest.mark.parametrize(
    ("first_line", "named"),
    [
        ("#!/usr/bin/zsh", "/usr/bin/zsh"),
        ("#! /usr/bin/zsh -f", "/usr/bin/zsh"),
        ("#!/usr/bin/env ruby", "ruby"),
        ("#!/usr/bin/env -S A=b ruby -w", "ruby"),
    ],
)
@pytest.mark.parametrize("no_file", ["", "Error response from daemon: Could not find the file /x in container y"])
def test_an_interpreter_that_the_image_lacks_is_told_before_the_run_is_queued(
    tmp_path: Path, first_line: str, named: str, no_file: str
) -> None:
    """moby#22469: the run ended with 127 and "not found" for an existing file, only when its turn came."""
    done = change(tmp_path, entry=run_of(first_line), has=("/bin/bash", "/usr/bin/env"), NO_FILE=no_file)
    assert done.status == 1
    told = f"the first line of its script names the interpreter {named}, which the image {IMAGE} does not have: "
    assert told in done.told
    assert (done.containers, done.files) == ({}, [])


@pytest.mark.parametrize(
    ("entry", "more"),
    [
        (run_of("#!/bin/bash"), {}),
        (run_of("#!/usr/bin/env bash"), {}),
        (run_of("#!/usr/bin/env -S bash -u"), {}),
        (run_of("#!/usr/bin/env tool"), {"IMAGE_ENV": "PATH=/bin:/opt/tools/bin\\nA=b\\n"}),
        (run_of("#!/usr/bin/env mine"), {"IMAGE_ENV": "PATH=/bin:/workspace/.local/bin\\n"}),
        (run_of("#!/workspace/venv/bin/python"), {}),
        (run_of("#!/data/conda/bin/python", "/srv/data:/data"), {}),
        (run_of("#!/usr/bin/env -S 'a b'"), {}),
        (run_of("#!"), {}),
        (run_of("echo without a first line"), {}),
        (run_of("#!/usr/bin/zsh"), {"NO_FILE": "Error response from daemon: the daemon is shutting down"}),
    ],
)
def test_an_interpreter_that_is_there_or_may_be_is_not_refused(
    tmp_path: Path, entry: WorkspaceEntry, more: dict[str, str]
) -> None:
    entry = replace(entry, mounts=tuple(f"{tmp_path}:{mount.partition(':')[2]}" for mount in entry.mounts))
    done = change(tmp_path, entry=entry, has=("/bin/bash", "/opt/tools/bin/tool"), **more)
    assert done.status == 0, done.told


BERLIN = run_of("#!/bin/sh", TZ="Europe/Berlin")


def test_a_container_has_the_zone_of_its_environment_whatever_its_image_has(tmp_path: Path) -> None:
    """tianon/docker-brew-ubuntu-core#154: UTC's time under the zone's name."""
    zone = tmp_path / "zoneinfo/Europe/Berlin"
    zone.parent.mkdir(parents=True)
    zone.write_bytes(b"TZif2\0\0")
    assert change(tmp_path, entry=BERLIN, has=("/bin/sh",)).status == 0
    mount = f"--mount=type=bind,source={tmp_path}/state/carol/zone,target={zone},readonly"
    assert mount in (tmp_path / "docker/created").read_text().split()
    assert (tmp_path / "state/carol/zone").read_bytes() == zone.read_bytes()


def test_a_host_without_the_zone_leaves_it_to_the_image(tmp_path: Path) -> None:
    has = ("/bin/sh", f"{tmp_path}/zoneinfo/Europe/Berlin")
    assert change(tmp_path, entry=BERLIN, has=has).status == 0
    assert "zoneinfo" not in (tmp_path / "docker/created").read_text()


def test_a_zone_that_neither_has_is_told(tmp_path: Path) -> None:
    done = change(tmp_path, entry=BERLIN, has=("/bin/sh",))
    assert f"neither the image {IMAGE} nor this host has the time zone Europe/Berlin (TZ): install tzdata" in done.told
    assert (done.containers, done.files) == ({}, [])


def test_a_rule_or_utc_needs_no_file(tmp_path: Path) -> None:
    for number, value in enumerate(("CET-1CEST,M3.5.0,M10.5.0/3", "UTC", "Etc/UTC", ":GMT0", "/workspace/zone", "")):
        (folder := tmp_path / str(number)).mkdir()
        assert change(folder, entry=run_of("#!/bin/sh", TZ=value), has=("/bin/sh",)).status == 0, value


def test_people_have_a_name_with_which_git_commits(tmp_path: Path) -> None:
    """jupyter/docker-stacks#552: "empty ident name not allowed". The full name comes from the host's account if
    possible.
    """
    for gecos, name in (("", "bob"), ("Bob Ross,Room 7,,", "Bob Ross"), (",,,", "bob")):
        (folder := tmp_path / str(len(gecos))).mkdir()
        account = f"echo 'bob:x:2002:2002:{gecos}:/:/bin/sh'" if gecos else "exit 2"
        assert change(folder, getent=account).status == 0
        assert f"bob:x:2002:2002:{name}:/workspace:/bin/bash" in (folder / "state/carol/passwd").read_text().split("\n")
        assert "EMAIL=bob@carol" in (folder / "docker/created").read_text().split()
