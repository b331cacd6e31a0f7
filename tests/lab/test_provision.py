"""The main task over real SSH: from bare to verified hosts, and a second run without changes."""

from __future__ import annotations

import functools
import json
import shutil
import threading
from collections import Counter
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from hostwright.apply.host.applying import HostApply, HostJob
from hostwright.apply.run import Agreed
from hostwright.common.errors import Refused
from hostwright.common.quoting import sh
from hostwright.fleet import Fleet, TargetHost
from hostwright.plan.observing import observe
from hostwright.plan.planning import make_plan
from hostwright.plan.probing import new_nonce, programs
from hostwright.verify.units import MOST_PER_HOST
from lab.config import USER, HostOptions, Lab, Machine
from tests.lab.conftest import FrontDoor, Guest, on
from tests.unit.support.counting import counted
from tests.unit.support.forks import COUNT_BESIDE_OTHERS
from tests.unit.support.runs import run_of

LAYERS = {"base", "driver", "cuda", "cudnn", "environment", "tensorflow", "container"}


def test_every_layer_of_both_hosts_is_verified(provisioned: FrontDoor, gpu01: Machine):
    files = f"find /home/{USER} ! -name .sudo_as_admin_successful -printf '%p %s\\n' | sort"
    before = on(gpu01, files)
    hosts = provisioned.json("verify", "--hosts", "gpu01,gpu02", status=0)["hosts"]
    assert on(gpu01, files) == before, "the checks left something with the login user"
    assert [host["host"] for host in hosts] == ["gpu01", "gpu02"]
    for host in hosts:
        assert host["passed"]
        assert {check["role"] for check in host["checks"]} == LAYERS


#: Makes apt, DKMS, lspci and each process that imports TensorFlow record their calls in directory $1.
TELLING_OF_CHECKS = """\
mkdir -p "$1"; : >"$1/told"; chmod 666 "$1/told"
for tool in apt-get apt-cache dkms lspci; do
    real=$(command -v "$tool")
    printf '#!/bin/sh\\necho "%s" >>%s/told\\nexec %s "$@"\\n' "$tool" "$1" "$real" >"/usr/local/sbin/$tool"
    chmod 755 "/usr/local/sbin/$tool"
done
cat >>/etc/python3.9/sitecustomize.py <<END
import os, sys  # told
class Telling:  # told
    def find_spec(self, name, path=None, target=None):  # told
        if name == "tensorflow": print(name, os.getpid(), file=open("$1/told", "a"))  # told
sys.meta_path.insert(0, Telling())  # told
END
date +%s
"""
SILENT_AGAIN = """\
cd /usr/local/sbin; rm apt-get apt-cache dkms lspci
sed -i '/# told$/d' /etc/python3.9/sitecustomize.py
"""


def test_a_verification_logs_in_a_few_times_and_asks_each_question_once(provisioned: FrontDoor, gpu01: Machine):
    """Formerly 130 login shells, 100 sudos and six calls of lspci."""
    place = "/run/told"
    since = on(gpu01, f"set -- {place}\n{TELLING_OF_CHECKS}").strip()
    try:
        provisioned.json("verify", "--hosts", gpu01.name, status=0)
        told = on(gpu01, f"cat {place}/told").splitlines()
        journal = on(gpu01, f"journalctl -q -o cat --since=@{since}")
    finally:
        on(gpu01, f"{SILENT_AGAIN}rm -rf {place}")
    tools, imports = Counter(line for line in told if " " not in line), {line for line in told if " " in line}
    assert tools == {"apt-get": 2, "apt-cache": 2, "dkms": 1, "lspci": 2}
    assert len(imports) == 1, imports
    assert journal.count("Accepted publickey for ") == 1 + MOST_PER_HOST, "the plan, and the lanes of the checks"
    assert journal.count("COMMAND=") <= 2 * (1 + MOST_PER_HOST), (
        "each lane's first program, and the shell that it keeps"
    )


def test_a_second_provision_changes_nothing(provisioned: FrontDoor, gpu01: Machine):
    before = on(gpu01, "ls /var/lib/hostwright/jobs; dpkg-query -W; stat -c %y /etc/docker/daemon.json")
    document = provisioned.json("provision", "--hosts", "gpu01,gpu02", status=0)
    assert [(host["changed"], host["roles"]) for host in document["hosts"]] == [(False, []), (False, [])]
    assert on(gpu01, "ls /var/lib/hostwright/jobs; dpkg-query -W; stat -c %y /etc/docker/daemon.json") == before


def test_a_green_host_costs_one_exec_channel(provisioned: FrontDoor, target: TargetHost):
    with target.connect() as shell:
        outcome = HostApply(run_of(lambda: shell), HostJob(target, target.desired)).apply()
        assert not outcome.changed
        assert shell.session.execs == 1


def test_a_green_host_starts_few_processes_to_answer(provisioned: FrontDoor, target: TargetHost):
    """763 before the probes shared one reader, 210 before one run of a tool answered many of them, 98 before those that
    end by returning shared a subshell. Most of the CPU that a plan costs a host goes into these.
    """
    user, root = programs(target.desired.probes(), new_nonce())
    with target.connect() as shell:
        counted = shell.run(
            sh("printf '%%s\\n' %s | ", f"{user}\n{root}") + COUNT_BESIDE_OTHERS,
            timeout_s=60,
            failure="no processes can be counted",
        )
    assert 40 < int(counted.stdout) <= 60


#: Creates a first directory of the PATH in $1, whose tools record their name and then run the real tool.
TELLING = """\
mkdir -p "$1/bin"
printf '#!/bin/sh\\nname=${0##*/}\\necho "$name" >>%s/told\\nexec "/usr/bin/$name" "$@"\\n' "$1" >"$1/tool"
chmod 755 "$1/tool"
for tool in /usr/bin/*; do ln -sf ../tool "$1/bin/${tool##*/}"; done
: >"$1/told"
"""


def test_a_green_host_starts_each_tool_once_or_a_few_times(provisioned: FrontDoor, target: TargetHost, gpu01: Machine):
    """Formerly 150, before one stat, one sha256sum and one systemctl answered for many probes."""
    place = "/run/told"
    user, root = programs(target.desired.probes(), new_nonce())
    on(gpu01, f"set -- {place}\n{TELLING}")
    try:
        with target.connect() as shell:
            told = f"PATH={place}/bin:$PATH\n"
            output = shell.attempt(f"{told}(\n{user})\n{root}", timeout_s=120)
        assert output.status == 0
        tools = Counter(on(gpu01, f"cat {place}/told").split())
    finally:
        on(gpu01, f"rm -rf {place}")
    # busctl and stat run for each unit that started in the same second as a change of one of its files
    alike = tools["busctl"]
    assert alike <= 2 and sum(tools.values()) <= 64 + 2 * alike, tools
    once = ("sha256sum", "systemctl", "dpkg-query", "perl", "docker", "curl", "xargs", "sort", "mountpoint")
    assert {tool: count for tool, count in tools.items() if tool in once and count > 1} == {"sha256sum": 2}, (
        "of the files that are as they should be, and of the constraints of the environment"
    )
    assert tools["stat"] <= 6 + alike, tools


def test_a_green_hosts_answer_is_few_messages(
    provisioned: FrontDoor, target: TargetHost, monkeypatch: pytest.MonkeyPatch
):
    """Formerly 240 messages, one per write; then 29 with 43 kB."""
    took = counted(monkeypatch)
    with target.connect() as shell:
        facts = observe(shell, target.desired)
    assert make_plan(target.desired, facts).empty
    assert took["messages"] <= 22
    assert took["bytes"] <= 20_000


def test_equal_questions_of_all_roles_are_asked_once(provisioned: FrontDoor, target: TargetHost):
    asked = [probe for role in target.desired.roles for one in role.resources for probe in one.probes()]
    with target.connect() as shell:
        facts = observe(shell, target.desired)
    assert len(facts) == len(target.desired.probes()) < len(asked)


def test_plan_of_a_green_host_is_empty_and_its_status_is_zero(provisioned: FrontDoor):
    plans = provisioned.json("plan", "--hosts", "gpu01,gpu02", status=0)["plans"]
    assert [plan["roles"] for plan in plans] == [[], []]


def test_a_saved_plan_is_applied_or_refused_when_the_facts_moved(
    provisioned: FrontDoor, gpu01: Machine, tmp_path: Path
):
    saved = tmp_path / "plan.json"
    on(gpu01, "rm /etc/profile.d/cuda.sh")
    assert provisioned("plan", "--hosts", "gpu01", "--out", str(saved)).returncode == 3
    shown = json.loads(saved.read_text())["plans"]["gpu01"]
    assert [role["role"] for role in shown["roles"]] == ["environment"]

    on(gpu01, "rm /etc/apt/apt.conf.d/52hostwright")
    refused = provisioned("provision", "--hosts", "gpu01", "--plan", str(saved))
    assert refused.returncode == 1
    assert "the host changed since this plan was made" in refused.stderr
    assert on(gpu01, "ls /etc/profile.d").find("cuda.sh") < 0

    provisioned("plan", "--hosts", "gpu01", "--out", str(saved))
    assert provisioned("provision", "--hosts", "gpu01", "--plan", str(saved)).returncode == 0
    assert provisioned("plan", "--hosts", "gpu01").returncode == 0


def test_what_the_plan_shows_is_what_runs(provisioned: FrontDoor, gpu01: Machine):
    """The steps of the plan are, byte for byte, the step files of the job on the host."""
    on(gpu01, "rm /etc/profile.d/cuda.sh")
    plan = provisioned.json("plan", "--hosts", "gpu01", status=3)["plans"][0]
    scripts = [step["script"] for role in plan["roles"] for change in role["changes"] for step in change["steps"]]
    before = set(on(gpu01, "ls /var/lib/hostwright/jobs").split())
    provisioned.json("provision", "--hosts", "gpu01", status=0)
    (job,) = set(on(gpu01, "ls /var/lib/hostwright/jobs").split()) - before
    ran = [on(gpu01, f"cat /var/lib/hostwright/jobs/{job}/step-{number}") for number in range(len(scripts))]
    assert [text.rstrip("\n") for text in ran] == [script.rstrip("\n") for script in scripts]
    assert on(gpu01, f"stat -c %a /var/lib/hostwright/jobs/{job}").strip() == "700"


def test_provision_check_only_looks(provisioned: FrontDoor, gpu01: Machine):
    on(gpu01, "rm /etc/profile.d/cuda.sh")
    checked = provisioned("provision", "--hosts", "gpu01", "--check")
    assert checked.returncode == 3
    assert "/etc/profile.d/cuda.sh" in checked.stdout
    assert "+export" in checked.stdout or "+" in checked.stdout
    assert "cuda.sh" not in on(gpu01, "ls /etc/profile.d")
    provisioned.json("provision", "--hosts", "gpu01", status=0)


def test_a_stale_plan_value_is_refused_by_the_engine(provisioned: FrontDoor, target: TargetHost, gpu01: Machine):
    with target.connect() as shell:
        green = make_plan(target.desired, observe(shell, target.desired))
        on(gpu01, "rm /etc/profile.d/cuda.sh")
        host = HostApply(run_of(lambda: shell), HostJob(target, target.desired, agreed=Agreed(green)))
        try:
            host.apply()
        except Refused as error:
            assert "the host changed since this plan was made" in error.sentence
        else:
            raise AssertionError("a stale plan was applied")
    provisioned.json("provision", "--hosts", "gpu01", status=0)


def test_a_host_fetches_from_the_vendor_itself_where_the_inventory_says_so(
    provisioned: FrontDoor, lab: Lab, gpu01: Machine, tmp_path: Path
):
    """With ``artifacts: direct`` nothing is mirrored, and the host's own download is verified like any other."""
    source = Path(Fleet.load(lab.inventory.parent).stack("lab").artifacts["cudnn"].urls[0].removeprefix("file://"))
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(source.parent))
    server = ThreadingHTTPServer((str(lab.gateway.ip), 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    copy = tmp_path / "inventory"
    shutil.copytree(lab.inventory.parent, copy)
    url = f"http://{lab.gateway.ip}:{server.server_port}/{source.name}"
    (copy / "stacks" / "direct.yml").write_text(f"extends: lab\nartifacts: {{cudnn: {{urls: ['{url}']}}}}\n")
    data = yaml.safe_load((copy / "lab.yml").read_text())
    data["lab"]["vars"].update(stack="direct", artifacts="direct")
    (copy / "lab.yml").write_text(yaml.safe_dump(data))
    on(gpu01, "rm -r /var/cache/hostwright/artifacts; rm /usr/local/cuda-11.2/lib64/libcudnn_ops_infer.so.8.1.0")
    try:
        done = provisioned(
            "provision", "--hosts", "gpu01", inventory=str(copy), HOSTWRIGHT_ARTIFACTS=str(tmp_path / "empty")
        )
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    assert "fetches" in done.stdout
    assert provisioned("plan", "--hosts", "gpu01").returncode == 0


def test_a_sudo_password_is_enough_and_is_left_nowhere(provisioned: FrontDoor, guest: Guest, lab: Lab, tmp_path: Path):
    """All phases use sudo's password from the inventory; a missing or wrong password is reported."""
    options = HostOptions(profile="small", sudo="password", sudo_password="s3same-Zx9-open")
    machine = guest("sudo01", options)
    copy = tmp_path / "inventory"
    shutil.copytree(lab.inventory.parent, copy)
    (copy / "host_vars").mkdir()
    words = ("provision", "--hosts", "sudo01", "--roles", "cudnn")
    for password, status in (("", 1), ("wrong", 1), (options.sudo_password, 0)):
        if password:
            (copy / "host_vars" / "sudo01.yml").write_text(f"ansible_become_password: {password}\n")
        done = provisioned(*words, inventory=str(copy))
        assert done.returncode == status, done.stdout + done.stderr
        assert status == 0 or "password" in done.stderr
        assert options.sudo_password not in done.stdout + done.stderr
    assert on(machine, f"grep -rl -- {options.sudo_password} /var/lib/hostwright /var/cache/hostwright || true") == ""
    assert "libcudnn.so.8.1.0" in on(machine, "ls /usr/local/cuda-11.2/targets/x86_64-linux/lib")
