"""Fetches a file of a seed as the host would: with the host's own address, from its own network namespace."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from http import HTTPStatus

from hostwright.common.errors import LabError
from lab.config import CHECKOUT, Machine

_TIMEOUT_S = 5.0  # per attempt; the other end is on this machine or one hop away
_MOST_BYTES = 1 << 20  # a seed has some KiB
_ABSENT = 3
_SEED_SCHEMES = ("http://", "https://")


class NoAnswer(LabError):
    """No seed is available now: no server, a refusal, or no text. It may appear in a moment."""


def fetch(machine: Machine, url: str) -> str | None:
    """Return the text at ``url``, None if the server says that it does not exist.

    Raises `NoAnswer`. The host needs only its cable, not a running system.
    """
    # The URL is passed on standard input: a seed may be protected only by its path, and argv is visible to everybody.
    command = ["nsenter", f"--net={machine.netns}", sys.executable, "-B", "-m", "lab.bmc.fetching"]
    done = subprocess.run(command, input=url.encode(), capture_output=True, cwd=CHECKOUT, check=False)
    if done.returncode == _ABSENT:
        return None
    if done.returncode != 0:
        raise NoAnswer(done.stderr.decode(errors="replace").strip()[-300:] or "the program that fetches ended")
    try:
        return done.stdout.decode()
    except UnicodeDecodeError as error:
        raise NoAnswer("what came is no text") from error


def main(url: str) -> int:
    """Print the text at ``url``; return 0, 3 if it does not exist, 1 with a sentence on standard error otherwise."""
    if not url.startswith(_SEED_SCHEMES):
        print("the seed's address is no http or https URL", file=sys.stderr)
        return 1
    # Without the machine's proxies, which the host would not know.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_TIMEOUT_S) as answer:
            body = answer.read(_MOST_BYTES + 1)
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return _ABSENT
        print(f"the server answers {error.code} {error.reason}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(getattr(error, "reason", error), file=sys.stderr)
        return 1
    if len(body) > _MOST_BYTES:
        print(f"what came has more than {_MOST_BYTES} bytes", file=sys.stderr)
        return 1
    sys.stdout.buffer.write(body)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin.read().strip()))
