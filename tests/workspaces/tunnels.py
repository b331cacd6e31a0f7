"""The tunnels that `workspace.url` prints, typed as printed."""

from __future__ import annotations

import shlex
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lab.waiting import await_that
from tests.workspaces.site import Site


@contextmanager
def tunnel(site: Site, name: str) -> Iterator[str]:
    """The tunnel to a workspace, open until the block ends; the address that leads through it."""
    line, address, *_ = site.succeeds("workspace.url", "--name", name).splitlines()
    program, *words = shlex.split(line)
    options = ("-F", "none", "-i", str(site.lab.private_key), "-o", f"UserKnownHostsFile={site.lab.known_hosts}")
    strict = ("-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes")
    with subprocess.Popen((program, *options, *strict, *words)) as process:
        try:
            eventually(lambda: process.poll() is not None or answers(address), 60, f"an answer at {address}")
            assert process.poll() is None, f"the tunnel ended: {line}"
            yield address
        finally:
            process.terminate()


def answers(address: str) -> bool:
    """Whether a page is there."""
    try:
        with urllib.request.urlopen(address, timeout=20) as answer:  # noqa: S310 - of this machine
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def eventually(condition: Callable[[], bool], patience_s: float, what: str) -> None:
    """Wait until a condition holds."""
    await_that(condition, patience_s, lambda: f"waited {patience_s:.0f} s for {what}", look_s=0.5)
