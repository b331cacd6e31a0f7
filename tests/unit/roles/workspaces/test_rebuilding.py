"""``images.rebuild``: written dates, order of actions, omitted hosts, and report of packages."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hostwright.apply.rollout.rollout import Results
from hostwright.apply.run import RunResults
from hostwright.cli.asking import Declined
from hostwright.cli.views.changing.outcomes import show_outcomes
from hostwright.common.command import Command
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.inventory import bind, load
from hostwright.standard.roles.workspaces import Workspaces
from hostwright.standard.roles.workspaces.states.images import ImageBuilt
from hostwright.standard.roles.workspaces.states.packages import packages_script, read_packages
from hostwright.standard.roles.workspaces.verbs import rebuilding
from hostwright.standard.roles.workspaces.verbs.edit import changed_lines, checked_date, dated
from hostwright.standard.roles.workspaces.verbs.rebuilding import BoxImages, lines
from tests.unit.roles.workspaces.spaces import KEY
from tests.unit.support.stubs import stub
from tests.unit.support.terminals import Terminal

ROLES = "hostwright_roles: [base, driver, container, workspaces]"
OURS = f"""\
# Who works where. Ask Dana before you give out gpu02.
all:
  vars:
    workspaces_users:
      alice: {{uid: 2001, keys: [{KEY}]}}  # until March
  hosts:
    gpu01:
      workspaces_containers:
        alice-box: {{user: alice, kind: ssh}}  # hers
    gpu02:
      workspaces_containers:
        alice-box: {{user: alice, kind: ssh}}
    gpu03:
      workspaces_containers:
        alice-lab: {{user: alice, kind: jupyter}}
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    folder = tmp_path / "inventory"
    folder.mkdir()
    (folder / "hosts.yml").write_text(f"all:\n  vars:\n    {ROLES}\n  hosts: {{gpu01: , gpu02: , gpu03: }}\n")
    (folder / "workspaces.yml").write_text(OURS)
    return folder


class Calls(list[tuple[str, Any]]):
    """Records the task's actions in order, without hosts and without the engine's tasks."""


@pytest.fixture
def calls(inventory: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    seen = Calls()

    def looked(targets: list[Any], _password: object) -> dict[str, BoxImages]:
        seen.append(("look", [target.name for target in targets]))
        return {}

    def provision(request: Request) -> int:
        refreshed = bind(Workspaces, "workspaces", load(inventory).hosts["gpu01"]).refreshed
        seen.append(("provision", (request.hosts, request.roles, refreshed, request)))
        if request.json:
            show_outcomes("provision", (), RunResults("run-1", Results(("gpu01",)[:0], ()), 1), as_json=True)
        return 1

    def plan(_fleet: Any, _targets: Any, request: Request, *, then: Command) -> int:
        assert then == Command("images.rebuild")
        seen.append(("plan", (request.hosts, request.var)))
        return 3

    monkeypatch.setattr(rebuilding, "_looked_at", looked)
    monkeypatch.setattr(rebuilding, "provision", provision)
    monkeypatch.setattr(rebuilding, "show_plan", plan)
    monkeypatch.setattr(rebuilding, "date", type("Monday", (), {"today": staticmethod(_Day)}))
    return seen


class _Day:
    @staticmethod
    def isoformat() -> str:
        return "2026-11-23"


def run(inventory: Path, hosts: str = "all", *, again: bool = False, **options: Any) -> int:
    request = Request(hosts, inventory=(str(inventory),), **{"drain": True, "yes": True, **options})
    return rebuilding.rebuild(request, again=again)


def test_the_date_is_written_and_the_hosts_with_boxes_are_provisioned(inventory: Path, calls: Calls) -> None:
    assert run(inventory, canary="1") == 1  # the rollout's status
    hosts = "gpu01,gpu02"
    options = Request(hosts, roles="workspaces", inventory=(str(inventory),), drain=True, canary="1", yes=True)
    assert calls == [
        ("look", ["gpu01", "gpu02"]),
        ("provision", (hosts, "workspaces", "2026-11-23", options)),
        ("look", ["gpu01", "gpu02"]),
    ]
    text = (inventory / "workspaces.yml").read_text()
    assert list(changed_lines(OURS, text)) == ['+    workspaces_refreshed: "2026-11-23"']


def test_a_run_that_was_cut_off_goes_on_with_the_same_date(inventory: Path, calls: Calls) -> None:
    run(inventory)
    run(inventory, force=True)
    run(inventory, again=True)
    dates = [(facts[2], facts[3].force) for name, facts in calls if name == "provision"]
    assert dates == [("2026-11-23", False), ("2026-11-23", True), ("2026-11-23-2", False)]


def test_a_look_at_it_writes_nothing(inventory: Path, calls: Calls) -> None:
    assert run(inventory, check=True, yes=False) == 3
    assert calls == [("plan", ("gpu01,gpu02", ("workspaces_refreshed=2026-11-23",)))]
    assert (inventory / "workspaces.yml").read_text() == OURS


def test_boxes_are_not_made_anew_unless_somebody_agrees(
    inventory: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=r"recreates the SSH boxes on gpu\[01-02\] \(2 hosts\); pass --yes"):
        run(inventory, yes=False)
    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    monkeypatch.setattr("sys.stderr", Terminal())
    with pytest.raises(Declined, match="nothing was changed"):
        run(inventory, yes=False)
    assert calls == []
    assert (inventory / "workspaces.yml").read_text() == OURS
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    assert run(inventory, yes=False) == 1
    assert calls[1][1][3].yes, "what was agreed to is not asked once more"


def test_one_document_says_what_became_of_hosts_and_of_the_images(
    inventory: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    images = iter([BoxImages({"alice-box": "sha256:a"}, {"sha256:a": {"tmux": "1"}}),
                   BoxImages({"alice-box": "sha256:b"}, {"sha256:b": {"tmux": "2"}})])  # fmt: skip
    monkeypatch.setattr(rebuilding, "_looked_at", lambda *_: {"gpu01": next(images)})
    assert run(inventory, json=True) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["run"]) == ("boxes", "run-1")
    assert document["boxes"] == [
        {"host": "gpu01", "workspace": "alice-box", "before": "sha256:a", "now": "sha256:b", "changes": ["tmux  1 → 2"]}
    ]


def test_hosts_that_are_left_out_are_named(inventory: Path, calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    run(inventory, hosts="gpu02")
    assert [facts for name, facts in calls if name == "look"] == [["gpu02"], ["gpu02"]]
    assert "not in this run, but rebuilt at their next provision: gpu01" in capsys.readouterr().out


def test_where_nobody_has_a_box_nothing_is_written(inventory: Path, calls: Calls) -> None:
    with pytest.raises(InputError, match="none of these hosts has a workspace of the kind ssh"):
        run(inventory, hosts="gpu03")
    with pytest.raises(InputError, match="canary"):
        run(inventory, canary="many")
    assert calls == []
    assert (inventory / "workspaces.yml").read_text() == OURS


def test_a_date_that_another_file_gives_is_not_overruled_in_silence(inventory: Path, calls: Calls) -> None:
    (inventory / "host_vars").mkdir()
    (inventory / "host_vars/gpu02.yml").write_text("workspaces_refreshed: '2026-01-01'\n")
    with pytest.raises(InputError, match=r"host_vars/gpu02\.yml:1.* the image date of gpu02; move the setting"):
        run(inventory)
    assert calls == []
    assert (inventory / "workspaces.yml").read_text() == OURS


def test_the_form_of_the_file_is_kept(inventory: Path) -> None:
    (inventory / "workspaces.yml").write_text("all:\n  vars:\n    workspaces: {refreshed: '2026-01-01'} # ours\n")
    _, after = dated(inventory, lambda last: f"{last}-2")
    assert 'workspaces: {refreshed: "2026-01-01-2"} # ours' in after
    checked_date(inventory, ["gpu01"], after)
    (inventory / "workspaces.yml").unlink()
    _, fresh = dated(inventory, lambda last: last or "2026-11-23")
    assert fresh.splitlines()[-1] == '    workspaces_refreshed: "2026-11-23"'


OLD, NEW = {"openssl": "1.1.1n-0+deb11u3", "tmux": "3.1c-1"}, {"openssl": "1.1.1w-0+deb11u3", "tmux": "3.1c-1"}


def test_what_changed_in_packages_is_said_once_for_all_boxes_where_it_is_the_same() -> None:
    before = {
        "gpu01": BoxImages({"a": "sha256:1", "b": "sha256:2"}, {"sha256:1": OLD, "sha256:2": NEW}),
        "gpu02": BoxImages({"c": "sha256:9", "gone": "sha256:9"}, {"sha256:9": OLD}),
        "gpu03": BoxImages({"d": f"sha256:{'7' * 64}"}, {}),
        "gpu04": BoxImages({"e": "sha256:1"}, {"sha256:1": OLD}),
    }
    after = {
        "gpu01": BoxImages({"a": "sha256:3", "b": "sha256:3"}, {"sha256:3": NEW}),
        "gpu02": BoxImages({"c": "sha256:8"}, {"sha256:8": NEW}),
        "gpu03": BoxImages({"d": f"sha256:{'7' * 64}"}, {}),
    }  # gpu04 did not respond the second time
    assert list(lines(before, after)) == [
        "packages in the image of gpu01 a, gpu02 c:",
        "    openssl  1.1.1n-0+deb11u3 → 1.1.1w-0+deb11u3",
        "packages in the image of gpu01 b:",
        "    rebuilt without changed versions",
        "packages in the image of gpu02 gone:",
        "    the box is gone",
        "packages in the image of gpu03 d:",
        "    the image is unchanged (777777777777) and was not rebuilt",
    ]


def test_packages_are_read_from_what_docker_prints(tmp_path: Path) -> None:
    """With a stand-in for Docker: one image responds, one has no dpkg."""
    docker = """\
case "$*" in
*" sha256:1 "*) printf 'ii  openssl 1.1.1n\\nrc  nano 5.4-2\\nhi  tmux:amd64 3.1c-1\\n' ;;
*) echo 'exec: "dpkg-query": executable file not found' >&2; exit 127 ;;
esac"""
    ended = subprocess.run(
        ["/bin/sh", "-euc", packages_script(["sha256:1", "sha256:2"])],
        env=stub(tmp_path, docker=docker), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert read_packages(ended.stdout) == {"sha256:1": {"openssl": "1.1.1n", "tmux:amd64": "3.1c-1"}}
    assert read_packages(ended.stdout.removesuffix("end\n")) == {}  # truncated


def test_another_date_is_another_image_and_not_the_layers_of_the_last_build(tmp_path: Path) -> None:
    """With a stand-in that builds like Docker: equal instructions use cached layers, except with --no-cache."""
    docker = f"""\
case "$1 $2" in
"image inspect") ;;
"build "*)
  for folder; do :; done
  case "$*" in *--no-cache*) date +%s%N ;; *) grep -v '^#' "$folder/Dockerfile" | cksum ;; esac >>{tmp_path}/layers ;;
esac"""
    env = stub(tmp_path, docker=docker)
    for day in ("2026-11-22", "2026-11-23"):
        files = (("Dockerfile", f"# Last on {day}.\nFROM base:1\nRUN apt-get upgrade -y\n"),)
        change = _build(ImageBuilt("hostwright/workspace-ssh:x", "base:1", files))
        subprocess.run(["/bin/sh", "-euc", change], env=env, check=True)
    first, second = (tmp_path / "layers").read_text().splitlines()
    assert first != second


def _build(state: ImageBuilt) -> str:
    from hostwright.plan.model import Answer, Change, Facts

    planned = state.plan(Facts({state.probes()[0]: Answer(0, "image sha256:1 base:1 base@sha256:1\nend\n")}))
    assert isinstance(planned, Change)
    return planned.steps[0].script
