"""A failure that an installer's log names is seen as long as its layer differs from the stack."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hostwright.audit.failures.logs import LAST_JOBS
from hostwright.audit.judging.context import Unread
from hostwright.plan.host import jobs
from hostwright.plan.model import Answer
from hostwright.resources.packages.packages import DPKG
from hostwright.resources.system.kernel import HEADERS
from hostwright.standard.roles.driver.failures.logs import INSTALLER_LOG
from hostwright.standard.roles.driver.failures.state import DKMS_TREE
from hostwright.standard.roles.driver.states.steps import LOG
from tests.unit.roles.test_role_driver import BARE, V, state
from tests.unit.support.driver_contexts import STATE, evidence, failed_job, findings, tree
from tests.unit.support.shell import ask

IN_USE = "ERROR: An NVIDIA kernel module 'nvidia-drm' appears to already be loaded in your kernel."
CC_CHECK = "ERROR: Failed CC version check. Bailing out!"
FLAG = "ERROR: Invalid commandline, please run `nvidia-installer --help` for usage information."
STALE = "Error! DKMS tree already contains: nvidia-470.182.03"
FAILED = "ERROR: Failed to install the kernel module through DKMS. No kernel module was installed; please try"
NO_MODULE = state(module="", loaded="", uvm="", dkms="")
DIFFERS = state(source="")
UNBUILT = {STATE: NO_MODULE, DKMS_TREE: tree(f"tree {V}")}


@pytest.mark.parametrize(
    "name, line, there",
    [
        ("module-in-use", IN_USE, DIFFERS),
        ("flag-unknown", FLAG, DIFFERS),
        ("stale-dkms", STALE, DIFFERS),
        ("compiler-mismatch", CC_CHECK, NO_MODULE),
        ("dkms-build", FAILED, NO_MODULE),
    ],
)
def test_newest_log_counts_while_the_driver_differs(name: str, line: str, there: str) -> None:
    logged = {STATE: there, DKMS_TREE: tree(f"tree {V}")}
    assert evidence(name, {**logged, LAST_JOBS: failed_job("driver", "first", line, "last")}) == [line]
    by_hand = f"nvidia-installer log file '{LOG}'\n-> Checking.\nERROR: first\n{line}\n"
    assert evidence(name, {**logged, INSTALLER_LOG: by_hand}) == [line]
    assert evidence(name, {LAST_JOBS: failed_job("driver", line), INSTALLER_LOG: by_hand}) == []


@pytest.mark.parametrize("name, line", [("compiler-mismatch", CC_CHECK), ("dkms-build", FAILED)])
def test_a_build_that_failed_is_history_when_there_is_a_module(name: str, line: str) -> None:
    assert evidence(name, {STATE: DIFFERS, LAST_JOBS: failed_job("driver", line)}) == []


@pytest.mark.parametrize("cut", ["", "cut=yes\n"])
def test_a_host_that_may_load_no_module_is_not_told_to_provision_again(cut: str) -> None:
    refused = "modprobe: ERROR: could not insert 'nvidia': Operation not permitted"
    off = "hostwright: no kernel module can be loaded on this host: root lacks CAP_SYS_MODULE, as in a container"
    unloaded = {STATE: state(loaded="", uvm="") + cut, LAST_JOBS: failed_job("driver", refused, off)}
    assert list(findings(unloaded)) == ["module-loading-off"]
    assert evidence("module-loading-off", unloaded) == [off]


def test_a_named_reason_is_the_only_finding() -> None:
    assert list(findings({**UNBUILT, LAST_JOBS: failed_job("driver", CC_CHECK)})) == ["compiler-mismatch"]
    assert list(findings({**UNBUILT, LAST_JOBS: failed_job("driver", "Killed")})) == ["module-missing"]
    cut = NO_MODULE + "cut=yes\n"
    assert list(findings({**UNBUILT, STATE: cut, LAST_JOBS: failed_job("driver", FAILED)})) == ["dkms-build"]


def test_an_installation_that_ended_well_is_no_failure() -> None:
    text = f"{IN_USE}\n-> Installation of the kernel module for the NVIDIA driver (version {V}) is now complete.\n"
    assert evidence("module-in-use", {STATE: DIFFERS, INSTALLER_LOG: text}) == []
    assert evidence("module-in-use", {STATE: DIFFERS, INSTALLER_LOG: IN_USE.removeprefix("ERROR: ")}) == []


def test_the_log_of_another_drivers_installer_is_old() -> None:
    """It stays for years, whatever came after it."""
    text = "installer version: %s\n" + IN_USE + "\n"
    assert evidence("module-in-use", {STATE: DIFFERS, INSTALLER_LOG: text % V}) == [IN_USE]
    assert evidence("module-in-use", {STATE: DIFFERS, INSTALLER_LOG: text % "384.111"}) == []


def test_the_newer_log_counts() -> None:
    both = {STATE: DIFFERS, LAST_JOBS: failed_job("driver", IN_USE), INSTALLER_LOG: f"{FLAG}\n"}
    assert evidence("module-in-use", both) == [IN_USE]
    assert evidence("flag-unknown", both) == []


def test_a_job_that_went_well_since_is_the_news() -> None:
    well = failed_job("driver", IN_USE).replace("status:1", "status:0")
    assert evidence("module-in-use", {STATE: DIFFERS, LAST_JOBS: well}) == []


def test_headers_that_no_archive_has_are_told_on_a_bare_host() -> None:
    said = "E: Unable to locate package linux-headers-5.10.0-28-amd64"
    bare = {STATE: BARE, DPKG: "", HEADERS: Answer(1, ""), LAST_JOBS: failed_job("base", said)}
    assert findings(bare) == {"no-headers": [said]}
    assert findings({**bare, LAST_JOBS: ""}) == {}


def test_nothing_is_told_while_a_job_runs() -> None:
    now = {STATE: DIFFERS, LAST_JOBS: failed_job("driver", IN_USE), jobs.RUNNING: "r2-driver {}\n"}
    with pytest.raises(Unread, match="a job of a run is still running"):
        evidence("module-in-use", now)


def installer_log(root: Path) -> str:
    script = INSTALLER_LOG.script.replace(LOG, f"{root}/log").replace(jobs.JOBS_DIR, f"{root}/jobs")
    status, text = ask(script)
    assert status == 0
    return text


def test_installers_log_is_read_unless_a_later_job_ended(tmp_path: Path) -> None:
    assert installer_log(tmp_path) == ""
    (tmp_path / "log").write_text(f"{FLAG}\n")
    os.utime(tmp_path / "log", (1000, 1000))
    for role, at_s in (("driver", 900), ("cuda", 1100)):
        job = tmp_path / "jobs" / role
        job.mkdir(parents=True)
        (job / "job.json").write_text(f'{{"schema": 1, "role": "{role}", "nonce": "n"}}\n')
        (job / "status").write_text("0\n")
        os.utime(job / "status", (at_s, at_s))
    assert installer_log(tmp_path) == f"{FLAG}\n"
    log = f"nvidia-installer log file\ninstaller version: 470.182.03\n{FLAG}\n"
    (tmp_path / "log").write_text(log)
    os.utime(tmp_path / "log", (1000, 1000))
    assert installer_log(tmp_path) == f"installer version: 470.182.03\n{log}"
    os.utime(tmp_path / "jobs/driver/status", (1100, 1100))
    assert installer_log(tmp_path) == ""


def test_a_long_log_is_cut_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("x" * 200_000 + f"\n{FLAG}\n")
    text = installer_log(tmp_path)
    assert len(text) <= 16_000
    assert text.endswith(f"{FLAG}\n")
