"""Download of an installer's file inside the host's network namespace, so that the client has the host's address."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from http import HTTPStatus

from hostwright.common.errors import LabError
from lab.config import CHECKOUT, Machine

_TIMEOUT_S = 5.0  # time limit in seconds of each attempt to fetch a URL
_MOST_BYTES = 1 << 20  # maximum number of bytes in a response. A seed has a few KiB.
_ABSENT = 3
_SEED_SCHEMES = ("http://", "https://")


class NoAnswer(LabError):
    """Download error that may disappear with a later attempt."""


def fetch(machine: Machine, url: str) -> str | None:
    """Return the text at ``url``, fetched from the host's address; ``None`` if ``url`` does not exist.

    Raises `NoAnswer` if the download fails. Requires only the host's network namespace, not a running system.
    """
    # The URL is passed on standard input, because every user can read argv, and the path may be secret.
    command = ["nsenter", f"--net={machine.netns}", sys.executable, "-B", "-m", "lab.bmc.fetching"]
    done = subprocess.run(command, input=url.encode(), capture_output=True, cwd=CHECKOUT, check=False)
    if done.returncode == _ABSENT:
        return None
    if done.returncode != 0:
        raise NoAnswer(
            done.stderr.decode(errors="replace").strip()[-300:] or "the download program ended without a message"
        )
    try:
        return done.stdout.decode()
    except UnicodeDecodeError as error:
        raise NoAnswer("the response is not UTF-8 text") from error


def main(url: str) -> int:
    """Print the text at ``url``; return 0, 3 if ``url`` does not exist, or 1 for another error."""
    if not url.startswith(_SEED_SCHEMES):
        print("the seed's address is not an http or https URL", file=sys.stderr)
        return 1
    # An empty ProxyHandler ignores this machine's proxies, which a host does not use.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_TIMEOUT_S) as answer:
            body = answer.read(_MOST_BYTES + 1)
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return _ABSENT
        print(f"the server responds with {error.code} {error.reason}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(getattr(error, "reason", error), file=sys.stderr)
        return 1
    if len(body) > _MOST_BYTES:
        print(f"the response has more than {_MOST_BYTES} bytes", file=sys.stderr)
        return 1
    sys.stdout.buffer.write(body)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin.read().strip()))
