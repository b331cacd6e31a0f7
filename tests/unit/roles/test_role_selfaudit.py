"""The role selfaudit: its plans, and its program in this machine's shell on a made-up host."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hostwright.audit.fleetaudit import FleetAudit, HostAudit, Layer, Reading
from hostwright.audit.reports.prometheus import render_prometheus
from hostwright.plan.model import Answer
from hostwright.resources.files.files import File
from hostwright.standard.roles.selfaudit import METRICS, PROGRAM, RESULT, SERVICE, TIMER, UNITS, Selfaudit, selfaudit
from tests.unit.support.auditvalues import role_context
from tests.unit.support.facts import changes_of
from tests.unit.support.madeup import MadeUp, bare, provisioned
from tests.unit.support.stacks import load_stack, with_values

STACK = load_stack("tensorflow-2.9")
ON = Selfaudit()
RESOURCES = selfaudit.resources(ON, role_context(STACK))
GONE = [state for one in reversed(RESOURCES) for state in one.removal()]  # states of ``invoke remove``
METRICS_FILE = f"{ON.textfile_directory}/{METRICS}"


def files(v: Selfaudit = ON) -> dict[str, File]:
    inner = (getattr(one, "resource", one) for one in selfaudit.resources(v, role_context(STACK)))
    return {one.path: one for one in inner if isinstance(one, File)}


def script(v: Selfaudit = ON) -> str:
    return files(v)[PROGRAM].content


GREEN: dict[str, str | Answer] = {
    "systemctl show": "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n",
    "grep -qF": "",
    **{f"stat -c '%F|%a|%U:%G' -- {path}": f"regular file|{one.mode}|root:root\n" for path, one in files().items()},
    **{f"cat -- {path}": one.content for path, one in files().items()},
}


def run(host: MadeUp, v: Selfaudit = ON) -> Any:
    """Return the program's output files, after creating their directories."""
    host.place(RESULT)
    host.place(METRICS_FILE)
    done = host.run(script(v))
    assert (done.returncode, done.stderr) == (0, b"")
    return json.loads(host.place(RESULT).read_bytes())


@pytest.fixture
def host(tmp_path: Path) -> MadeUp:
    return provisioned(tmp_path, STACK)


# --- plans


def test_a_host_that_audits_itself_plans_nothing():
    assert changes_of(RESOURCES, GREEN) == ()


def test_a_host_that_never_had_it_plans_nothing():
    assert changes_of(GONE) == ()


def test_a_host_that_had_it_loses_timer_and_files():
    """With ``invoke remove``: the role is off if ``hostwright_roles`` does not name it."""
    shown = f"{GREEN['systemctl show']}FragmentPath={UNITS}/{TIMER}\n"
    there = {
        "systemctl show": shown,
        "test -e": "",
        "origin/units": "ActiveState=inactive\n",
        "echo owned": "there written\n",
    }
    changes = changes_of(GONE, there)
    timer = next(change for change in changes if change.what == f"service {TIMER}")
    assert timer.steps[0].script == f"systemctl disable -- {TIMER}\nsystemctl stop -- {TIMER}"
    assert {f"file {path}" for path in (*files(), RESULT, METRICS_FILE)} < {change.what for change in changes}


def test_new_host_gets_program_units_first_result_and_timer():
    whats = [change.what for change in changes_of(RESOURCES, {"test ! -e": ""})]
    assert whats == [
        f"file {PROGRAM}", f"directory {ON.textfile_directory}", f"file {UNITS}/{SERVICE}", f"file {UNITS}/{TIMER}",
        "self-audit", f"service {TIMER}",
    ]  # fmt: skip


def test_a_directory_of_the_collector_that_is_there_keeps_its_owner():
    assert not any(change.what.startswith("directory") for change in changes_of(RESOURCES))


def test_a_result_of_another_program_is_made_again():
    (change,) = changes_of(RESOURCES, {**GREEN, "grep -qF": Answer(1, "")})
    assert change.what == "self-audit"
    assert "systemctl start" in change.steps[0].script


def test_another_stack_or_directory_is_another_edition():
    def edition(v: Selfaudit, stack=STACK) -> str:
        text = next(one.content for one in selfaudit.resources(v, role_context(stack)) if isinstance(one, File))
        return re.search(r'edition\\": \\"(\w{12})\\"', text)[1]

    newer = with_values(STACK, driver={"version": "470.256.02"})
    found = {edition(ON), edition(ON, newer), edition(replace(ON, textfile_directory="")), edition(ON)}
    assert len(found) == 3


def test_units_that_are_written_take_no_gpu_from_a_container_unseen():
    in_use = {**GREEN, f"cat -- {UNITS}/{TIMER}": "other", "/proc/self/ns/mnt": "812 - 812 python3\n"}
    (change,) = changes_of(RESOURCES, {**in_use, "device ${device#/dev/}": "device nvidia0\n"})
    assert change.disturbs == "reloads systemd, which takes the GPUs from containers"


def test_the_units_say_when_and_what_may_be_written():
    v = replace(ON, on_calendar="Mon *-*-* 04:00", randomized_delay="2h", textfile_directory="/srv/metrics")
    service, timer = (files(v)[f"{UNITS}/{name}"].content.splitlines() for name in (SERVICE, TIMER))
    assert {"OnCalendar=Mon *-*-* 04:00", "RandomizedDelaySec=2h", "Persistent=true"} <= set(timer)
    assert {"ReadWritePaths=-/var/lib/hostwright -/srv/metrics", "ProtectSystem=strict", f"ExecStart={PROGRAM}"} <= set(
        service
    )
    assert not any(line.startswith("ProtectKernelModules") for line in service)  # modinfo reads /lib/modules


# --- the program


def test_a_provisioned_host_is_as_desired_in_every_check(host: MadeUp):
    result = run(host)
    assert (result["schema"], result["stack"], result["ok"]) == (1, STACK.name, True)
    assert [one for one in result["checks"] if not one["ok"]] == []
    assert {one["layer"] for one in result["checks"]} == {
        "base", "driver", "cuda", "cudnn", "environment", "tensorflow", "container",
    }  # fmt: skip
    assert datetime.fromisoformat(result["at"]).utcoffset() is not None
    assert result["host"]


def test_what_differs_is_told_with_what_is_and_what_shall_be(host: MadeUp):
    host.program("modinfo", "echo 470.256.02")
    wrong = [one for one in run(host)["checks"] if not one["ok"]]
    assert {"layer": "driver", "name": "module", "have": "470.256.02", "want": "470.182.03", "ok": False} in wrong
    assert {one["layer"] for one in wrong} == {"driver"}
    lines = host.place(METRICS_FILE).read_text().splitlines()
    zero = {re.sub(r'host="[^"]*",', "", line) for line in lines if line.endswith(" 0")}
    assert 'hostwright_layer_ok{layer="driver"} 0' in zero
    assert 'hostwright_reading_ok{layer="driver",name="module",have="470.256.02",want="470.182.03"} 0' in zero
    assert any(line.startswith("hostwright_host_ok{") for line in zero)


def test_a_bare_host_is_told_of_as_well(tmp_path: Path):
    result = run(bare(tmp_path))
    assert result["ok"] is False
    assert [one["name"] for one in result["checks"] if one["layer"] == "tensorflow"] == ["tensorflow"]


def test_numbers_are_compared_as_text(host: MadeUp):
    host.program("modinfo", "echo 470.10")
    own = with_values(STACK, driver={"version": "470.1"})
    host.place(RESULT)
    text = next(
        one.content
        for one in selfaudit.resources(replace(ON, textfile_directory=""), role_context(own))
        if isinstance(one, File)
    )
    assert host.run(text).returncode == 0
    checks = {one["name"]: one["ok"] for one in json.loads(host.place(RESULT).read_text())["checks"]}
    assert checks["module"] is False


EVIL = b'4"7\\0\x1b[2J\t\x01\xff\xc3\xa9,} 1 # x=\\"'


def test_hostile_values_are_escaped_in_both_files(host: MadeUp):
    host.write("/sys/module/nvidia/version", EVIL + b"\ncomplete=no\n")
    result = run(host)
    have = next(one["have"] for one in result["checks"] if one["name"] == "loaded")
    assert have == '4"7\\0[2Jé,} 1 # x=\\"'
    samples = exposition(host.place(METRICS_FILE).read_bytes().decode())
    labels = next(labels for name, labels, _ in samples if labels.get("name") == "loaded")
    assert labels["have"] == have


def test_questions_without_an_end_leave_the_former_result(host: MadeUp):
    run(host)
    before = {path: host.place(path).read_bytes() for path in (RESULT, METRICS_FILE)}
    host.write("/sys/module/nvidia/version", "1\n")
    cut = script().replace("say complete yes", "exit 0")
    assert cut != script()
    done = host.run(cut)
    assert (done.returncode, done.stderr) == (1, b"the questions did not come to their end\n")
    assert {path: host.place(path).read_bytes() for path in before} == before


def test_nothing_half_written_stays(host: MadeUp):
    run(host)
    assert [path.name for path in host.place(METRICS_FILE).parent.iterdir()] == [METRICS]
    assert not host.place(f"{RESULT}.new").exists()


@pytest.mark.parametrize("trap", ["a link", "a pipe"])
def test_nothing_of_the_collectors_user_in_the_place_of_the_new_file_is_written_to(host: MadeUp, trap: str):
    """node_exporter's user owns the directory, and root runs the program."""
    precious, new = host.place("/etc/precious"), host.place(f"{METRICS_FILE}.new")
    precious.write_text("precious")
    if trap == "a link":
        new.symlink_to(precious)
    else:
        os.mkfifo(new)
    run(host)
    assert precious.read_text() == "precious"
    assert [path.name for path in new.parent.iterdir()] == [METRICS]
    assert host.place(METRICS_FILE).read_text().startswith("# HELP hostwright_host_ok")


@pytest.mark.parametrize("directory", ["", "/srv/metrics"])
def test_without_a_collector_there_is_a_result_all_the_same(host: MadeUp, directory: str):
    assert run(host, replace(ON, textfile_directory=directory))["ok"] is True
    assert not host.place(METRICS_FILE).exists()


# --- the exposition format

SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(?:,|$)')
ESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def exposition(text: str) -> list[tuple[str, dict[str, str], float]]:
    """Parse a text in Prometheus' exposition format; any deviation is an error."""
    assert text.endswith("\n") and "\r" not in text
    described: dict[str, set[str]] = {}
    samples = []
    for line in text.split("\n")[:-1]:
        if match := re.fullmatch(r"# (HELP|TYPE) ([a-z_]+) (.+)", line):
            kinds = described.setdefault(match[2], set())
            assert match[1] not in kinds, f"twice: {line}"
            assert match[2] not in {name for name, _, _ in samples}, f"after its samples: {line}"
            kinds.add(match[1])
            continue
        match = SAMPLE.fullmatch(line)
        assert match, f"no sample: {line!r}"
        assert described.get(match[1]) == {"HELP", "TYPE"}, f"not described: {match[1]}"
        samples.append((match[1], _labels(match[2] or ""), float(match[3])))
    assert len({(name, tuple(labels.items())) for name, labels, _ in samples}) == len(samples), "a series twice"
    order = [name for name, _, _ in samples]
    assert order == sorted(order, key=order.index), "a metric in two places"
    return samples


def _labels(text: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    place = 0
    while place < len(text):
        match = LABEL.match(text, place)
        assert match and match[1] not in labels, f"no label: {text[place:]!r}"
        labels[match[1]] = re.sub(r"\\.", lambda found: ESCAPED[found[0]], match[2])
        place = match.end()
    return labels


def test_the_metrics_are_those_of_the_checks(host: MadeUp):
    host.program("modinfo", "exit 1")
    checks = run(host)["checks"]
    samples = exposition(host.place(METRICS_FILE).read_text())
    read = [(labels["layer"], labels["name"], labels["have"], labels["want"], value)
            for name, labels, value in samples if name == "hostwright_reading_ok"]  # fmt: skip
    assert read == [(one["layer"], one["name"], one["have"], one["want"], float(one["ok"])) for one in checks]
    layers = {labels["layer"]: value for name, labels, value in samples if name == "hostwright_layer_ok"}
    assert layers == {
        one["layer"]: min(float(each["ok"]) for each in checks if each["layer"] == one["layer"]) for one in checks
    }


def test_names_texts_and_labels_are_those_of_the_audit_from_outside(host: MadeUp):
    """Otherwise node_exporter refuses two descriptions of one metric, and a dashboard needs two queries."""
    run(host)
    readings = (Reading("driver", "loaded", "1", "1"),)
    one = HostAudit(
        "gpu01", "s", "2026-11-21T10:00:00+00:00", "desired", layers=(Layer("driver", "desired"),), readings=readings
    )
    outside = render_prometheus(FleetAudit(one.at, "inventory", (one,)))
    own = host.place(METRICS_FILE).read_text()
    for name in ("hostwright_host_ok", "hostwright_layer_ok", "hostwright_reading_ok"):
        described = [line for line in own.splitlines() if line.startswith(("# HELP", "# TYPE")) and name in line]
        assert len(described) == 2
        assert set(described) <= set(outside.splitlines())
        names = [
            {tuple(sorted(labels)) for other, labels, _ in exposition(text) if other == name} for text in (own, outside)
        ]
        assert names[0] == names[1]


@pytest.mark.parametrize(
    "text",
    [
        'a{b="c"} 1\n', "# HELP a x\n# TYPE a gauge\na{b=c} 1\n", '# HELP a x\n# TYPE a gauge\na{b="c"d"} 1\n',
        "# HELP a x\n# TYPE a gauge\na 1\na 2\n", "# HELP a x\n# TYPE a gauge\na 1",
    ],
)  # fmt: skip
def test_what_is_no_exposition_is_seen(text: str):
    with pytest.raises(AssertionError):
        exposition(text)
