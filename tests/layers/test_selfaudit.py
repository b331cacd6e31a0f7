"""The host's own audit: a timer that will run, and a last result that is whole and not older than it should be."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from testinfra.backend.base import CommandResult
from testinfra.host import Host

from hostwright.stack.stack import Stack

Run = Callable[..., CommandResult]

RESULT = "/var/lib/hostwright/selfaudit.json"
SERVICE, TIMER = "hostwright-selfaudit.service", "hostwright-selfaudit.timer"
METRICS = ("hostwright_host_ok", "hostwright_layer_ok", "hostwright_reading_ok")
LATE_S = 300.0  #: from the timer's stroke to the result: the service is given two minutes

#: µs since 1970 of the timer's last stroke, 0 before the first
LAST = (
    "busctl get-property org.freedesktop.systemd1 /org/freedesktop/systemd1/unit/hostwright_2dselfaudit_2etimer "
    "org.freedesktop.systemd1.Timer LastTriggerUSec"
)


@pytest.fixture(scope="module")
def result(host: Host) -> dict[str, Any]:
    """What the host said of itself last."""
    done = host.run("cat %s", RESULT)
    try:
        document = json.loads(done.stdout)
    except ValueError as error:
        pytest.fail(f"{RESULT} is no JSON: {done.stderr.strip() or error}")
    assert isinstance(document, dict), f"{RESULT} holds no object"
    return document


def test_the_timer_is_as_wanted(host: Host) -> None:
    """The timer waits for its next stroke and comes back at boot."""
    active = host.run("systemctl is-active %s", TIMER).stdout.strip()
    enabled = host.run("systemctl is-enabled %s", TIMER).stdout.strip()
    assert (active, enabled) == ("active", "enabled"), f"{TIMER} is {active}, {enabled}"


def test_its_last_run_came_to_its_end(host: Host) -> None:
    """The service has not failed, so that its result is that of the last stroke."""
    state = host.run("systemctl is-failed %s", SERVICE).stdout.strip()
    assert state != "failed", f"journalctl -u {SERVICE} says why it failed"


def test_the_result_is_whole_and_recent(result: dict[str, Any], root_run: Run, stack: Stack) -> None:
    """The result is about this stack, holds checks with what is and what shall be, and is that of the last stroke."""
    assert (result.get("schema"), result.get("stack")) == (1, stack.name), "it is not about this stack"
    checks = result.get("checks")
    assert isinstance(checks, list) and checks, "it holds no checks"
    fields = {"layer", "name", "have", "want", "ok"}
    assert all(isinstance(check, dict) and set(check) == fields for check in checks), "its checks are not whole"
    assert all(check["ok"] is (check["have"] == check["want"]) for check in checks), "its checks contradict themselves"
    last_s = int(root_run(LAST).stdout.split()[-1]) / 1e6
    at_s = datetime.fromisoformat(result["at"]).timestamp()
    assert at_s >= last_s - LATE_S, f"it is from {result['at']}, and the timer struck {last_s - at_s:.0f} s later"


def test_the_metrics_are_those_of_the_result(host: Host, result: dict[str, Any], variables: Any) -> None:
    """What node_exporter hands to Prometheus is what the result says."""
    if not variables.textfile_directory:
        return
    done = host.run("cat %s", f"{variables.textfile_directory}/hostwright.prom")
    lines = [line for line in done.stdout.splitlines() if line and not line.startswith("#")]
    names = {line.partition("{")[0] for line in lines}
    assert names >= set(METRICS), f"missing: {', '.join(set(METRICS) - names) or done.stderr.strip()}"
    values = [line.rpartition(" ")[2] for line in lines if line.startswith("hostwright_reading_ok{")]
    assert values == [str(int(check["ok"])) for check in result["checks"]], "the values are not those of the result"
