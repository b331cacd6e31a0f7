"""The faults themselves: each does to a host what it says, and is undone."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.common.errors import LabError
from lab import faults, fleet, halfway, snapshots
from lab.config import HostOptions, Lab, Machine
from lab.machine import answers, console, exec_in, wait_for_ssh
from lab.records import Snapshot, find_machine
from lab.relay import Relay, Trouble, relay
from tests.lab.ownlab import own_lab
from tests.stand_ins.test_hosts import boot_id, eventually, ssh

SMALL = HostOptions(profile="small")
DAY_S = 86400


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with own_lab("hwfault") as opened:
        fleet.up(opened, ["f01"], options=SMALL)
        yield opened


@pytest.fixture(scope="module")
def bare(lab: Lab) -> Snapshot:
    return snapshots.freeze(find_machine(lab, "f01"), "bare")


@pytest.fixture
def host(lab: Lab, bare: Snapshot) -> Machine:
    """A freshly installed host."""
    found = find_machine(lab, "f01")
    snapshots.thaw(found, bare)
    return found


def command(machine: Machine, script: str, *options: str) -> list[str]:
    """The ssh command by which the inventory's user runs a script on a host."""
    trust = ("-o", f"UserKnownHostsFile={machine.lab.known_hosts}", "-o", "BatchMode=yes")
    where = ("-i", str(machine.lab.private_key), *options, f"ops@{machine.address}")
    return ["ssh", "-F", "none", *trust, *where, script]


@contextlib.contextmanager
def session(machine: Machine, script: str) -> Iterator[subprocess.Popen[str]]:
    """A connection with a script that runs on the host; nothing of it is left."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command(machine, script), stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def shell(machine: Machine, script: str) -> subprocess.CompletedProcess[str]:
    """Run shell on a host as its console's root; how it ended."""
    return exec_in(machine, ["sh", "-c", script])


# The connection


def test_cut_connections_ends_those_of_the_user_and_no_more(host: Machine) -> None:
    with session(host, "echo in; sleep 100") as one, session(host, "echo in; sleep 100") as two:
        assert [process.stdout and process.stdout.readline() for process in (one, two)] == ["in\n", "in\n"]
        assert faults.cut_connections(host) == 2
        assert [process.wait(30) for process in (one, two)] == [255, 255]
    assert faults.cut_connections(host) == 0
    assert ssh(host, "echo again").stdout == "again\n"


def test_a_silent_network_delays_what_is_on_the_way(host: Machine) -> None:
    with session(host, "echo in; read line; echo got $line") as process:
        assert process.stdout and process.stdin and process.stdout.readline() == "in\n"
        with faults.silence_network(host):
            process.stdin.write("word\n")
            process.stdin.flush()
            assert not answers(host)
            assert process.poll() is None
        assert process.stdout.readline() == "got word\n"


def test_a_restarted_sshd_is_another_process_and_open_connections_stay(host: Machine) -> None:
    pid = ("systemctl", "show", "--property=MainPID", "ssh")
    before = console(host, *pid)
    with session(host, "echo in; read line; echo got $line") as process:
        assert process.stdout and process.stdin and process.stdout.readline() == "in\n"
        faults.restart_sshd(host)
        process.stdin.write("word\n")
        process.stdin.flush()
        assert process.stdout.readline() == "got word\n"
    assert console(host, *pid) != before


def test_a_frozen_sshd_takes_connections_and_says_nothing(host: Machine) -> None:
    with session(host, "echo in; read line; echo got $line") as process:
        assert process.stdout and process.stdin and process.stdout.readline() == "in\n"
        with faults.freeze_sshd(host):
            connect = command(host, "true", "-o", "ConnectTimeout=1")
            assert "timed out" in subprocess.run(connect, capture_output=True, text=True, check=False).stderr
            assert console(host, "hostname") == "f01\n"
            process.stdin.write("word\n")
            process.stdin.flush()
        assert process.stdout.readline() == "got word\n"
    assert ssh(host, "echo again").stdout == "again\n"


def test_a_changed_host_key_is_refused_until_it_is_restored(host: Machine) -> None:
    faults.change_host_key(host)
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in ssh(host, "true").stderr
    faults.restore_host_key(host)
    assert ssh(host, "echo known").stdout == "known\n"


# The line


@contextlib.contextmanager
def through(machine: Machine, line: Relay, folder: Path, script: str) -> Iterator[subprocess.Popen[bytes]]:
    """A script that runs over ssh through a relay."""
    (folder / "known_hosts").write_text(line.known_hosts)
    options = {"UserKnownHostsFile": folder / "known_hosts", "BatchMode": "yes", "StrictHostKeyChecking": "yes"}
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    where = ["-i", str(machine.lab.private_key), "-p", str(line.port), f"ops@{line.host}", script]
    pipe = subprocess.PIPE
    with subprocess.Popen(["ssh", "-F", "none", *words, *where], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_relay_without_trouble_changes_nothing(host: Machine, tmp_path: Path) -> None:
    data = bytes(range(256)) * 8192
    with relay(host) as line, through(host, line, tmp_path, "cat") as process:
        assert process.communicate(data, timeout=30)[0] == data
    assert (line.connections, line.troubled) == (1, 0)


@pytest.mark.parametrize("toward", ["host", "controller"])
@pytest.mark.parametrize("what", ["cut", "flip"])
def test_a_cut_and_a_flipped_byte_end_the_connection(host: Machine, tmp_path: Path, what: str, toward: str) -> None:
    data = bytes(1_000_000)
    trouble = Trouble(what, after_bytes=300_000, toward=toward)  # type: ignore[arg-type]
    with relay(host, trouble) as line:
        with through(host, line, tmp_path, "cat") as process:
            out, error = process.communicate(data, timeout=30)
        assert (process.returncode, line.troubled) == (255, 1)
        assert len(out) < len(data)
        if (what, toward) == ("flip", "controller"):
            assert b"message authentication code incorrect" in error
        with through(host, line, tmp_path, "cat") as process:  # it happens once
            assert process.communicate(data, timeout=30)[0] == data
    assert (line.connections, line.troubled) == (2, 1)


def test_a_stalled_line_is_silent_and_open(host: Machine, tmp_path: Path) -> None:
    trouble = Trouble("stall", after_bytes=300_000)
    with relay(host, trouble) as line, through(host, line, tmp_path, "cat >part") as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(bytes(1_000_000), timeout=1.5)
        assert (process.poll(), line.troubled) == (None, 1)
        assert 200_000 < int(console(host, "stat", "-c", "%s", "/home/ops/part")) < 400_000
        process.kill()
        process.communicate()


# Power


@pytest.mark.parametrize("clean", [True, False])
def test_a_reboot_keeps_the_disk_and_only_a_clean_one_stops_services(host: Machine, clean: bool) -> None:
    before = boot_id(host)
    stopped = "cat >/etc/systemd/system/last.service; systemctl daemon-reload; systemctl start last"
    unit = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=true\nExecStop=touch /home/ops/stopped\n"
    assert exec_in(host, ["sh", "-c", stopped], stdin=unit).returncode == 0
    (faults.reboot if clean else faults.reboot_now)(host)
    wait_for_ssh(host)
    assert boot_id(host) != before
    assert ssh(host, "ls").stdout == ("stopped\n" if clean else "")


# The disk


def test_a_full_disk_is_full_for_root_and_everywhere_and_freed_again(lab: Lab, bare: Snapshot) -> None:
    fleet.up(lab, ["d01"], options=HostOptions(profile="small", disk_bytes=2**28), snapshot=bare)
    small = find_machine(lab, "d01")
    write = "for folder in /var /tmp /opt /usr /var/lib/docker; do head -c 3000000 /dev/zero >$folder/filling; done"
    with faults.fill_disk(small, free_bytes=2**20):
        assert shell(small, "head -c 500000 /dev/zero >/var/little").returncode == 0
        done = shell(small, write)
        assert done.stderr.count("No space left on device") == 5
    assert "100%" not in console(small, "df", "/")
    assert shell(small, write).returncode == 0


def test_a_disk_that_is_the_machines_is_not_filled(host: Machine) -> None:
    with pytest.raises(LabError, match="f01 shares the machine's disk"), faults.fill_disk(host):
        pass


def test_the_cache_is_damaged_where_the_pattern_says(host: Machine) -> None:
    files = {"ab/whole.tar": b"0123456789", "ab/other.tar.part": b"abcdef", "ab/empty.part": b""}
    cache = host.merged / faults.CACHE
    (cache / "ab").mkdir(parents=True)
    for name, data in files.items():
        (cache / name).write_bytes(data)
    assert faults.corrupt_cache(host, "truncate", pattern="**/*.part") == ["ab/other.tar.part"]
    assert faults.corrupt_cache(host, "flip", pattern="**/*.tar") == ["ab/whole.tar"]
    seen = {name: console(host, "sh", "-c", f"od -An -c /{faults.CACHE}/{name}").split() for name in files}
    assert seen == {
        "ab/whole.tar": ["0", "1", "2", "3", "4", "312", "6", "7", "8", "9"],
        "ab/other.tar.part": ["a", "b", "c"],
        "ab/empty.part": [],
    }


# dpkg


def test_the_apt_lock_is_one_that_apt_and_dpkg_respect(host: Machine) -> None:
    install = "dpkg -i /var/cache/apt/archives/patch_*.deb"
    with faults.hold_apt_lock(host, 60):
        assert "held by process" in shell(host, "apt-get install -y patch").stderr
        assert "frontend lock was locked" in shell(host, install).stderr
        assert "Could not get lock /var/lib/apt/lists/lock" in shell(host, "apt-get update").stderr
    assert shell(host, install).returncode == 0


def test_the_apt_lock_waits_for_its_turn_and_ends_by_itself(host: Machine) -> None:
    with faults.hold_apt_lock(host, 0.5), faults.hold_apt_lock(host, 0):
        eventually(lambda: shell(host, "dpkg -i /var/cache/apt/archives/patch_*.deb").returncode == 0, "it is free")
        assert "ii" in console(host, "dpkg", "-l", "patch").splitlines()[-1]


def test_half_configured_is_what_dpkg_says_and_mends(host: Machine) -> None:
    halfway.half_configure(host)
    state = ("dpkg-query", "-W", "-f", "${Status}", halfway.PACKAGE)
    assert console(host, *state) == "install ok half-configured"
    assert console(host, "ls", "/var/lib/dpkg/updates") != ""
    assert exec_in(host, ["pgrep", "dpkg"]).returncode == 1
    console(host, "dpkg", "--configure", "-a")
    assert console(host, *state) == "install ok installed"
    assert console(host, "ls", "/var/lib/dpkg/updates") == ""


def test_both_halves_on_one_host_are_mended_together(host: Machine) -> None:
    halfway.half_configure(host)
    halfway.half_unpack(host, "make")
    assert len(console(host, "dpkg", "--audit").split("\n\n")) > 1
    shell(host, "dpkg --configure -a")
    console(host, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "-f", "install")
    assert console(host, "dpkg", "--audit") == ""


def test_half_unpacked_wants_to_be_reinstalled_and_apt_does(host: Machine) -> None:
    halfway.half_unpack(host, "make")
    state = ("dpkg-query", "-W", "-f", "${Status}", "make")
    assert console(host, *state) == "install reinstreq half-installed"
    assert console(host, "sh", "-c", "find /usr/bin -name '*.dpkg-new' | wc -l") != "0\n"
    assert console(host, "ls", "/var/lib/dpkg/updates") != ""
    console(host, "dpkg", "--configure", "-a")
    assert console(host, *state) == "install reinstreq half-installed"
    console(host, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "-f", "install")
    assert console(host, *state) == "install ok installed"
    assert "GNU Make" in console(host, "make", "--version")


# The clock


#: What several programs of a host take for the time now, a line each.
NOW = """
date +shell=%s
echo sudo=$(sudo date +%s)
touch fresh
echo file=$(stat -c %Y fresh)
python3 -c 'import os, time; print("python=%d pythonfile=%d" % (time.time(), os.stat("fresh").st_mtime))'
perl -e 'print "perl=", time, "\\n"'
echo unit=$(sudo systemd-run --quiet --pipe --wait date +%s)
sudo systemctl restart cron
echo systemd=$(date -d "$(systemctl show --property=ActiveEnterTimestamp --value cron)" +%s)
"""
PROGRAMS = {"shell", "sudo", "file", "python", "pythonfile", "perl", "unit", "systemd"}


def clocks(machine: Machine) -> dict[str, float]:
    """By how many days the clocks of a host's programs are off, rounded."""
    words = (word.partition("=") for word in ssh(machine, NOW).stdout.split())
    return {name: round((float(moment) - time.time()) / DAY_S, 2) for name, _, moment in words}


@pytest.mark.parametrize("days", [365, -365])
def test_shifted_clock_holds_for_programs_and_file_times(host: Machine, days: int) -> None:
    with faults.year_off(host, days):
        assert clocks(host) == dict.fromkeys(PROGRAMS, days)
    assert clocks(host) == dict.fromkeys(PROGRAMS, 0)


@pytest.mark.parametrize("days", [365, -365])
def test_waiting_takes_the_time_that_it_should_while_the_clock_is_off(host: Machine, days: int) -> None:
    locks = "import threading; lock = threading.Lock(); lock.acquire(); print(lock.acquire(timeout=0.2))"
    condition = "import threading; print(threading.Event().wait(0.2))"
    process = (
        "import subprocess\n"
        "try: subprocess.run(['sleep', '60'], timeout=0.2)\n"
        "except subprocess.TimeoutExpired: print(False)"
    )
    unit = ("systemd-run", "--quiet", "--wait", "-p", "RuntimeMaxSec=1", "sleep", "60")
    with faults.year_off(host, days):
        begun = time.monotonic()
        for program in (locks, condition, process):
            assert console(host, "timeout", "30", "python3", "-c", program) == "False\n"
        assert exec_in(host, ["timeout", "0.2", "sleep", "60"]).returncode == 124
        assert exec_in(host, ["timeout", "30", *unit]).returncode == 1
        assert time.monotonic() - begun > 1.8


def test_a_file_from_before_the_clock_went_wrong_keeps_its_time(host: Machine) -> None:
    console(host, "touch", "--date=1 hour ago", "/root/before")
    before = console(host, "stat", "-c", "%Y", "/root/before")
    with faults.year_off(host):
        assert console(host, "stat", "-c", "%Y", "/root/before") == before


def test_a_clock_stays_off_over_a_reboot(host: Machine) -> None:
    with faults.year_off(host, -365):
        faults.reboot_now(host)
        wait_for_ssh(host)
        assert clocks(host) == dict.fromkeys(PROGRAMS, -365)
        assert exec_in(host, ["systemctl", "is-system-running", "--wait"]).stdout == "running\n"
    assert clocks(host) == dict.fromkeys(PROGRAMS, 0)


def test_apt_judges_signatures_by_the_clock_that_it_sees(host: Machine) -> None:
    with faults.year_off(host, 20 * 365):
        assert "EXPKEYSIG" in shell(host, "apt-get update 2>&1").stdout
    updated = shell(host, "apt-get update 2>&1")
    assert updated.returncode == 0 and "EXPKEYSIG" not in updated.stdout, updated.stdout


def test_the_clock_of_a_host_that_was_thawed_since_is_right(host: Machine, bare: Snapshot) -> None:
    with faults.year_off(host):
        snapshots.thaw(host, bare)
    assert exec_in(host, ["ls", "/etc/ld.so.preload"]).returncode == 2
    assert clocks(host) == dict.fromkeys(PROGRAMS, 0)
