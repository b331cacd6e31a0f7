"""A failed step is told with its cause: units to whose journal it points, what these say, and the next command."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hostwright.apply.host.explaining import last_line, tell_cause, units_named
from hostwright.common.errors import (
    Examination,
    FailedStep,
    Finding,
    HostError,
    NotConverged,
    Refused,
    SeveralFailed,
    StepFailed,
    UnitJournal,
)
from tests.unit.support.known import KNOWN

CONTROL = "Job for docker.service failed because the control process exited with error code."
AGAIN, RECORD = "`invoke provision --resume`", "`invoke runs.show --run r --hosts gpu01 --steps`"

#: what people were told on public trackers, and whose journal that says to read
POINTING = (
    (f'{CONTROL} See "systemctl status docker.service" and "journalctl -xe" for details.', ("docker.service",)),
    (
        "Job for vector.service failed because the control process exited with error code.\n"
        'See "systemctl status vector.service" and "journalctl -xeu vector.service" for details.\n',
        ("vector.service",),
    ),
    ("A dependency job for docker.service failed. See 'journalctl -xe' for details.", ("docker.service",)),
    (
        "Job for ceph-mon@node02.service failed because start of the service was attempted too often. See "
        '"systemctl status ceph-mon@node02.service" and "journalctl -xe" for details.\nTo force a start use '
        '"systemctl reset-failed ceph-mon@node02.service" followed by "systemctl start ceph-mon@node02.service" again.',
        ("ceph-mon@node02.service",),
    ),
    (
        'Job for mysql.service failed because a timeout was exceeded. See "systemctl status mysql.service" and '
        '"journalctl -xe" for details.\ninvoke-rc.d: initscript mysql, action "start" failed.\ndpkg: error processing '
        "package mysql-server-5.6 (--configure): subprocess installed post-installation script returned error exit 1",
        ("mysql.service",),
    ),
    ("Failed to start docker.service: Unit docker.service is masked.", ()),
    (
        "Job for podman.service failed because the control process exited with error code.\n"
        'See "systemctl --user status podman.service" and "journalctl --user -xeu podman.service" for details.',
        (),
    ),
    ("journalctl -u docker on the host says more", ("docker.service",)),
    (
        '\n'.join(f'Job for x{number}.service failed. See "journalctl -xe" for details.' for number in range(1000)),
        ("x0.service", "x1.service", "x2.service"),
    ),
    ("Job for $(reboot).service failed. See 'journalctl -xe' for details.", ()),
    ("Job for --vacuum-size.service failed. See 'journalctl -xe' for details.", ()),
)  # fmt: skip


@pytest.mark.parametrize(("output", "units"), POINTING)
def test_the_units_whose_journal_an_output_says_to_read_are_known(output: str, units: tuple[str, ...]) -> None:
    assert units_named(output) == units


def test_a_last_line_that_only_points_is_told_with_the_one_before_it() -> None:
    pointer = 'See "systemctl status docker.service" and "journalctl -xeu docker.service" for details.'
    assert last_line(["a", CONTROL, pointer]) == f"{CONTROL} {pointer}"
    assert last_line(["a", "b "]) == "b"
    assert last_line([]) == "it printed nothing"


def failed(because: str, role: str = "container", units: tuple[str, ...] = ("docker.service",)) -> StepFailed:
    step = FailedStep(role, "service", "systemctl …", 1, (), KNOWN.explained(because), units)
    return StepFailed("gpu01", f"{role}, service: the step ended with status 1: {because}", step)


def told(error: HostError, *journals: UnitJournal, findings: tuple[Finding, ...] = ()) -> str:
    tell_cause(error, Examination(findings, "", journals), KNOWN.explained, again=AGAIN, record=RECORD)
    assert str(error) == f"gpu01: {error.sentence}"
    return error.sentence


def journal(unit: str, line: str, named: str = "docker.service") -> UnitJournal:
    return UnitJournal(named, unit, ("Starting it...", line), line)


def test_the_journal_is_quoted_where_the_step_points_to_it_and_its_cause_is_told() -> None:
    bad = "unable to configure the Docker daemon with file /etc/docker/daemon.json: invalid character '}'"
    error = failed(f'{CONTROL} See "systemctl status docker.service" and "journalctl -xe" for details.')
    known = KNOWN.explained(bad)
    assert known is not None
    assert told(error, journal("docker.service", bad)) == (
        f"container, service: the step ended with status 1: {CONTROL[:-1]}; docker.service says: {bad}. "
        f"The cause: {known.cause}. {known.cure}; next: {AGAIN}"
    )
    assert error.step.known == known


def test_the_unit_that_failed_first_is_quoted_and_not_the_one_that_needs_it() -> None:
    error = failed("A dependency job for docker.service failed. See 'journalctl -xe' for details.")
    first = journal("containerd.service", "containerd: exec format of its own")
    late = journal("docker.service", "Dependency failed for Docker Application Container Engine.")
    sentence = told(error, first, late)
    assert "A dependency job for docker.service failed; containerd.service says: containerd: exec format" in sentence
    assert sentence.endswith(f"; then: {AGAIN}"), "once somebody has mended that unit"


def test_a_cause_in_one_journal_is_told_instead_of_its_consequence_in_another() -> None:
    """The socket is started too often since the service, whose setting stands twice, does not start."""
    twice = "the following directives are specified both as a flag and in the configuration file: default-runtime: (…)"
    error = failed(f'{CONTROL} See "systemctl status docker.service" and "journalctl -xe" for details.')
    often = journal("docker.socket", "docker.socket: Failed with result 'service-start-limit-hit'.")
    sentence = told(error, often, journal("docker.service", twice))
    cause = "dockerd does not start if daemon.json and its command line both set an option, here default-runtime"
    assert f"docker.service says: {twice}. The cause: {cause}" in sentence
    assert sentence.endswith(f"; then: {AGAIN}"), "provisioning alone does not fix it"
    assert error.step.known is not None
    assert error.step.known.rule == "daemon-json-twice"


def test_a_general_cause_is_told_with_what_the_journal_says() -> None:
    output = (
        "dpkg: error processing package nginx (--configure):\n installed nginx package post-installation script "
        "subprocess returned error exit status 1\nE: Sub-process /usr/bin/dpkg returned an error code (1)"
    )
    error = failed(output, units=("nginx.service",))
    assert error.step.known is not None
    sentence = told(error, journal("nginx.service", "bind() to 0.0.0.0:80 failed (98: Unknown error)", "nginx.service"))
    assert "nginx.service says: bind() to 0.0.0.0:80 failed" in sentence
    assert sentence.endswith(AGAIN)


GRAVE = Finding("x", "container", True, ("evidence",), "the disk is gone", "Put it back", False, "")


def test_what_its_layer_is_found_to_have_is_the_cause_where_the_output_names_none() -> None:
    assert told(failed("odd", units=()), findings=(GRAVE,)).endswith(
        f"ended with status 1: odd. The cause: the disk is gone. Put it back; then: {AGAIN}"
    )
    fixed = replace(GRAVE, provision=True)  # what the step was for
    assert "The cause" not in told(failed("odd", units=()), findings=(fixed,))
    elsewhere = told(failed("odd", role="cuda", units=()), findings=(GRAVE,))
    assert elsewhere.endswith(f"status 1: odd; next: {RECORD}"), "another layer's"


def test_each_of_several_failures_has_its_own_cause_and_their_sentence_has_all() -> None:
    one, other = failed("odd", units=()), failed("strange", role="cuda", units=())
    refused = Refused("gpu01", "there is no such image")
    sentence = told(SeveralFailed("gpu01", [one, other, refused]), findings=(GRAVE,))
    assert "the disk is gone" in one.sentence
    assert "the disk is gone" not in other.sentence
    assert sentence == f"3 failures: {one.sentence} · {other.sentence} · {refused.sentence}"


def test_a_host_that_could_not_be_asked_still_has_a_next_command() -> None:
    error = NotConverged("gpu01", "some states still differ: base: x")
    tell_cause(error, None, KNOWN.explained, again=AGAIN, record=RECORD)
    assert error.sentence == f"some states still differ: base: x; next: {RECORD}"
