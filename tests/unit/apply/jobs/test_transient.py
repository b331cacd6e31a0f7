"""What passes by itself: the host's grep and Python say the same of messages as the tools really print them."""

from __future__ import annotations

import re
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.apply.jobs import transient
from hostwright.apply.jobs.transient import CAUSES, PERMANENT_ERE, TRANSIENT_ERE, is_transient, reason

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
        "read tcp 10.0.0.1:3->10.0.0.9:443: read: connection reset by peer",
        "  Cannot initiate the connection to mirror.example:80 (2001:db8::1). - connect (101: Network is unreachable)",
        "  Could not handshake: The TLS connection was non-properly terminated. [IP: 10.0.0.9 443]",
    ],
    "connection-refused": [
        "  Could not connect to mirror.example:3142 (10.0.0.9). - connect (111: Connection refused)",
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
    ],
}

LASTING = [
    "E: Failed to fetch http://mirror.example/pool/curl_7.74.deb  404  Not Found [IP: 10.0.0.9 80]",
    "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)",
    "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?",
    "E: Unable to locate package cuda-toolkit-11-2",
    "E: Unable to correct problems, you have held broken packages.",
    "ERROR: No matching distribution found for tensorflow==2.9.0",
    "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
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


def grep(pattern: str, text: str) -> bool:
    done = subprocess.run(
        ["grep", "-aqE", "--", pattern], input=text.encode(), env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}, check=False
    )
    assert done.returncode in {0, 1}, "grep does not take the expression"
    return done.returncode == 0


def test_every_cause_has_messages_and_a_source():
    assert set(PASSING) == {cause.name for cause in CAUSES}
    assert all(cause.source for cause in CAUSES)


@pytest.mark.parametrize("name", PASSING)
def test_each_message_is_known_by_its_own_cause(name: str):
    cause = next(cause for cause in CAUSES if cause.name == name)
    assert [message for message in PASSING[name] if not re.search(cause.pattern, message)] == []


@pytest.mark.parametrize("message", MESSAGES)
def test_shell_and_python_classify_messages_alike(message: str):
    text = f"Reading package lists...\n{message}\nand more\n"
    expected = message not in LASTING
    assert is_transient(text) is expected
    assert (grep(TRANSIENT_ERE, text) and not grep(PERMANENT_ERE, text)) is expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_shell_and_python_classify_split_messages_alike(messages: list[str], random):
    text = "".join(
        message[random.randrange(len(message) + 1) :] + random.choice(["", "\n", "\r"]) for message in messages
    )
    assert grep(TRANSIENT_ERE, text) is (re.search(TRANSIENT_ERE, text) is not None)


def test_the_expressions_are_of_the_dialect_that_both_read():
    for pattern in (TRANSIENT_ERE, PERMANENT_ERE):
        assert re.search(r"\\[A-Za-z]|\(\?|\[\^|[*+?}][?+]|\^|\$", pattern) is None
        assert "\n" not in pattern


def test_the_reason_is_the_last_line_that_names_a_cause():
    text = "Err:1 Connection timed out\n  Temporary failure resolving 'mirror.example' \nE: Some index files failed\n"
    assert reason(text) == "Temporary failure resolving 'mirror.example'"
    assert reason("make: *** [all] Error 2") == ""


def test_the_wait_grows_to_a_bound():
    assert 0 < transient.BACKOFF_S < transient.BACKOFF_MAX_S
