"""What is tried again: the failure rules decide, and the host's grep reads them as Python does."""

from __future__ import annotations

import re
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.apply.jobs import scripting, transient
from hostwright.apply.jobs.transient import reason, table
from hostwright.common.quoting import sh
from hostwright.plan.model import Change, RolePlan, Step
from tests.unit.support.failed import outside
from tests.unit.support.hostjobs import run_steps
from tests.unit.support.known import BY_NAME, KNOWN

RULES = KNOWN.retry_rules

#: Messages of each cause, as tools of Ubuntu 18.04 to 22.04 and Debian 11 print them.
PASSING = {
    "apt-lock": [
        "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)",
        "E: Could not get lock /var/lib/apt/lists/lock - open (11: Resource temporarily unavailable)",
        "E: Could not get lock /var/cache/apt/archives/lock. It is held by process 7 (apt-get)",
        "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?",
        "dpkg: error: dpkg frontend lock was locked by another process with pid 4315",
        "dpkg: error: dpkg frontend is locked by another process",
        "dpkg: error: dpkg status database is locked by another process",
    ],
    "name-resolution": [
        "  Temporary failure resolving 'mirror.example'",
        "wget: unable to resolve host address: failed: Temporary failure in name resolution.",
        "curl: (6) Could not resolve host: mirror.example",
        "dial tcp: lookup registry.example on 10.0.0.2:53: server misbehaving",
    ],
    "connection-lost": [
        "Err:1 http://mirror.example focal InRelease  Error reading from server - read (104: Connection reset by peer)",
        "  Error reading from server. Remote end closed connection [IP: 10.0.0.9 80]",
        "  Could not connect to mirror.example:443 (10.0.0.9), connection timed out",
        "E: Failed to fetch http://mirror.example/a.deb  Connection failed [IP: 10.0.0.9 80]",
        "E: Failed to fetch http://mirror.example/cuda/repos/cuda-nvcc-12-4.deb  Connection failed [IP: 10.0.0.9 80]",
        "E: Failed to fetch http://mirror.example/libnccl2_2.27.3.deb  Could not handshake: The TLS connection was "
        "non-properly terminated. [IP: 10.0.0.9 443]",
        "Failed to download nvidia-nccl-cu13==2.28.9: error sending request: connection reset by peer",
        "read tcp 10.0.0.1:3->10.0.0.9:443: read: connection reset by peer",
        "  Cannot initiate the connection to mirror.example:80 (2001:db8::1). - connect (101: Network is unreachable)",
        "  Could not handshake: The TLS connection was non-properly terminated. [IP: 10.0.0.9 443]",
    ],
    "connection-refused": [
        "  Could not connect to mirror.example:443 (10.0.0.9). - connect (111: Connection refused)",
        "Connecting to mirror.example|10.0.0.9|:80... failed: Connection refused.",
        "dial tcp 10.0.0.9:443: connect: connection refused",
        "NewConnectionError('<urllib3.connection.HTTPSConnection object>: Failed to establish a new connection: "
        "[Errno 111] Connection refused')",
    ],
    "transfer-cut": [
        "curl: (18) transfer closed with 1024 bytes remaining to read",
        "curl: (28) Operation timed out after 30001 milliseconds with 0 out of 0 bytes received",
        "curl: (56) OpenSSL SSL_read: error",
        'Get "https://registry.example/v2/": net/http: TLS handshake timeout',
        "dial tcp 10.0.0.9:443: i/o timeout",
    ],
    "pip-network": [
        "WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, status=None)) after connection "
        "broken by 'ReadTimeoutError(\"HTTPSConnectionPool(host='index.example', port=443): Read timed out.\")'",
        "pip._vendor.urllib3.exceptions.ProtocolError: ('Connection broken: IncompleteRead(9 bytes read)')",
        "pip._vendor.requests.exceptions.ConnectionError: HTTPSConnectionPool(host='index.example', port=443)",
        "RemoteDisconnected('Remote end closed connection without response')",
    ],
    "http-status": [
        "E: Failed to fetch http://mirror.example/pool/make_4.3.deb  503  Service Unavailable [IP: 10.0.0.9 80]",
        "E: Failed to fetch http://mirror.example/pool/make_4.3.deb  429  Too Many Requests [IP: 10.0.0.9 80]",
        "curl: (22) The requested URL returned error: 502 Bad Gateway",
        "2024-01-01 10:00:00 ERROR 504: Gateway Time-out.",
        "ERROR: HTTP error 503 while getting https://index.example/numpy.whl",
        "requests.exceptions.HTTPError: 500 Server Error: Internal Server Error for url: https://index.example/",
        "ResponseError('too many 502 error responses')",
        "received unexpected HTTP status: 503 Service Unavailable",
        "toomanyrequests: You have reached your pull rate limit.",
    ],
    "mirror-in-motion": [
        "E: Failed to fetch http://mirror.example/pool/make_4.3.deb  Hash Sum mismatch",
        "E: Failed to fetch http://mirror.example/Packages.gz  File has unexpected size (30451 != 28154). Mirror "
        "sync in progress? [IP: 10.0.0.9 80]",
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
    ],
}

LASTING = [
    "E: Failed to fetch http://mirror.example/pool/curl_7.74.deb  404  Not Found [IP: 10.0.0.9 80]",
    "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)",
    "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?",
    "E: Unable to locate package cuda-toolkit-11-2",
    "E: Unable to correct problems, you have held broken packages.",
    "ERROR: No matching distribution found for tensorflow==2.9.0",
    "dial unix /var/run/docker.sock: connect: connection refused",
    "curl: (22) The requested URL returned error: 403 Forbidden",
    "curl: (60) SSL certificate problem: certificate has expired",
    "dpkg: error processing package nvidia-dkms-470 (--configure):",
    "make[1]: *** [Makefile:1234: nvidia.o] Error 2",
    "Get:503 http://mirror.example bullseye/main amd64 make amd64 4.3 [396 kB]",
    "E: Failed to fetch http://mirror.example/a.deb  Hash Sum mismatch\nE: Write error (28: No space left on device)",
    "E: You don't have enough free space in /var/cache/apt/archives/.\nTemporary failure resolving 'mirror.example'",
    "",
]

MESSAGES = [*(message for messages in PASSING.values() for message in messages), *LASTING]

#: What no retry mends, in the words of many tools: also where what follows from it would pass by itself.
IN_VAIN = [
    "  Could not connect to cache.example:3142 (10.0.0.9). - connect (111: Connection refused)",  # apt-cacher-ng's port
    "failed to register layer: write /usr/lib/libnvvm.so.3.3.0: no space left on device",
    "OSError: [Errno 122] Disk quota exceeded",
    "mkdir /home/u/.local/share/docker/overlay2/0bc-init/diff: disk quota exceeded",
    "OSError: [Errno 30] Read-only file system: '/opt/tensorflow'",
    "open /var/lib/docker/tmp/GetImageBlob1: read-only file system",
    "virtual memory exhausted: Cannot allocate memory",
    "Out of memory: Killed process 812 (pip) total-vm:8126184kB, anon-rss:7537008kB",
    "  Certificate verification failed: The certificate is NOT trusted.  Could not handshake: Error in the certificate "
    "verification. [IP: 10.0.0.9 443]",
    'Get "https://registry.example/v2/": x509: certificate signed by unknown authority',
    "  407  Proxy Authentication Required [IP: 10.0.0.9 3128]",
    "curl: (56) Received HTTP code 407 from proxy after CONNECT",
    "curl: (56) CONNECT tunnel failed, response 407",
]


def on_the_host(text: str) -> bool:
    """What the program of a step says of its output: another try or not."""
    for line in table(RULES).splitlines():
        verdict, _, pattern = line.partition(" ")
        done = subprocess.run(
            ["grep", "-aiqP", "--", pattern],
            input=text.encode(), env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}, capture_output=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) in {(0, b""), (1, b"")}, "grep does not take the expression"
        if done.returncode == 0:
            return verdict == "yes"
    return False


def here(text: str) -> bool:
    """The same by Python."""
    lines = text.split("\n")
    return next((rule.passes for rule in RULES if any(transient.names_it(rule, line) for line in lines)), False)


def test_each_rule_that_is_retried_has_a_message_here():
    named = {failure.rule.name for message in MESSAGES if (failure := KNOWN.classify(message))}
    assert {name for name, rule in BY_NAME.items() if rule.transient} <= named


@pytest.mark.parametrize("message", MESSAGES)
def test_the_host_and_python_judge_messages_alike(message: str):
    text = f"Reading package lists...\n{message}\nand more\n"
    assert (on_the_host(text), here(text)) == (message not in LASTING,) * 2


@pytest.mark.parametrize("message", IN_VAIN)
def test_what_no_retry_mends_decides_before_what_follows_from_it(message: str):
    every = [passing for name, messages in PASSING.items() if name != "apt-lock" for passing in messages]
    assert not on_the_host(message)
    assert not on_the_host("\n".join([*every, message]))
    assert not on_the_host("\n".join([message, *every]))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_host_and_python_judge_split_messages_alike(messages: list[str], random):
    text = "".join(
        message[random.randrange(len(message) + 1) :] + random.choice(["", "\n", "\r"]) for message in messages
    )
    assert on_the_host(text) is here(text)


def test_the_expressions_stand_on_a_line_each():
    lines = table(RULES).splitlines()
    assert len(lines) > 2
    assert all(re.match(r"(yes|no) \(\?:", line) for line in lines)
    assert not any("\n" in rule.pattern or "(?P" in rule.pattern for rule in RULES)


@pytest.mark.parametrize("case", outside("steps"))
def test_public_outputs_of_failed_commands_are_retried_or_not(case, tmp_path, monkeypatch):
    """A program prints what a real one printed, and ends as it did; the real runner decides."""
    monkeypatch.setattr(scripting, "LOCK_DIR", str(tmp_path / "locks"))
    monkeypatch.setattr(transient, "BACKOFF_S", 0.01)
    (tmp_path / "text").write_text(case["text"] + "\n")
    script = sh("echo x >>%s; cat %s >&2; exit %s", tmp_path / "count", tmp_path / "text", case["status"])
    plan = RolePlan("base", (), (Change("packages", "a", "b", (Step(script, tries=2),)),))
    result = run_steps(plan, tmp_path / "job")
    assert len((tmp_path / "count").read_text().splitlines()) == (2 if case["retried"] else 1)
    assert result.status == case["status"]


def test_the_reason_is_the_last_line_that_names_a_cause():
    text = "Err:1 Connection timed out\n  Temporary failure resolving 'mirror.example' \nE: Some index files failed\n"
    assert reason(RULES, text) == "Temporary failure resolving 'mirror.example'"
    assert reason(RULES, "make: *** [all] Error 2") == ""


def test_the_wait_grows_to_a_bound():
    assert 0 < transient.BACKOFF_S < transient.BACKOFF_MAX_S
