"""Remakes the terminal pictures of the documents: types commands in a real terminal and draws what it showed.

    invoke lab.up --hosts gpu01,gpu02 --bmc
    invoke mirror --stack lab
    invoke lab.reset --hosts gpu01,gpu02
    python -m tests.pictures.capture provision
    python -m tests.pictures.capture rebuild

It needs tmux and the lab's two hosts freshly reset (for rebuild: provisioned), and takes three minutes each. Nothing in
a picture is made up: it is the terminal's own screen with its colours, at most five times a second. A moving one is
``FASTER``, and its waiting is shorter than it was: no screen of the recording stands longer than ``drawing.MOST_S``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from tests.pictures.drawing import Frame, animate, draw, paced
from tests.places import PROJECT

PATIENCE_S = 900  #: for one command
TMUX = ("tmux", "-L", f"capture-{os.getpid()}", "-f", os.devnull)
PROMPT = "$ "
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
FASTER = 6  #: a moving picture is this much faster than the recording; README.md says so
POLL_S = 0.2  #: between two looks at the screen
TYPED_S = 0.05  #: between two keys
#: no command asks, as nobody would answer
SETTINGS = ("HOSTWRIGHT_YES=1", f"PS1={PROMPT}", "TIMEFORMAT=%1R s")


@dataclass(frozen=True)
class Session:
    """What is typed, and in how large a terminal; a moving picture shows all of it, another one the last screen."""

    commands: tuple[str, ...]
    columns: int
    rows: int
    moves: bool = False


SESSIONS = {
    "provision": Session(
        (
            "hostwright plan --hosts gpu01,gpu02 --summary",
            "hostwright provision --hosts gpu01,gpu02",
            "hostwright verify --hosts gpu01,gpu02",
            "time hostwright plan --hosts gpu01,gpu02",
        ),
        100,
        30,
        moves=True,
    ),
    "rebuild": Session(
        (
            "invoke power off --hosts gpu01 --force",
            "invoke lab.reset --hosts gpu02",
            "invoke rebuild --hosts gpu01,gpu02",
            "invoke rebuild --report",
        ),
        112,
        60,
    ),
}


def tmux(*words: str) -> str:
    """Run one command of tmux's and return its output."""
    return subprocess.run([*TMUX, *words], check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout


def look() -> Frame:
    """The screen as it is now."""
    return Frame(time.monotonic(), tmux("capture-pane", "-e", "-p").rstrip("\n"))


def watch() -> list[Frame]:
    """All screens until the prompt is there again, with nothing behind it, and stays."""
    frames, end_s = [look()], time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        time.sleep(POLL_S)
        frames.append(look())
        at_prompt = tmux("display-message", "-p", "#{pane_current_command}").strip() == "bash"
        last = _COLOURS.sub("", frames[-1].ansi.split("\n")[-1]).strip()
        stays = frames[-1].ansi == frames[-2].ansi and last == PROMPT.strip()
        if at_prompt and stays:
            return frames
    raise TimeoutError(f"no prompt after {PATIENCE_S} s:\n{frames[-1].ansi}")


def record(session: Session) -> list[Frame]:
    """Type the commands, each when the one before has ended, and return the screens."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    size = ("-x", str(session.columns), "-y", str(session.rows))
    shell = ("env", f"PATH={path}", *SETTINGS, "bash", "--norc", "--noprofile")
    tmux("new-session", "-d", *size, "-c", str(PROJECT), *shell)
    try:
        tmux("set", "-g", "status", "off")
        frames = watch()[-1:]
        for command in session.commands:
            for character in command:
                tmux("send-keys", "-H", f"{ord(character):x}")
                time.sleep(TYPED_S)
                frames.append(look())
            tmux("send-keys", "Enter")
            frames += watch()
        return frames
    finally:
        tmux("kill-server")


def picture(session: Session) -> str:
    """The session as SVG."""
    frames = record(session)
    if session.moves:
        faster = [replace(frame, at_s=frame.at_s / FASTER) for frame in paced(frames)]
        return animate(faster, session.columns, rows=session.rows)
    return draw(frames[-1].ansi.rstrip().removesuffix(PROMPT.strip()).rstrip(), session.columns)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        (PROJECT / f"docs/images/{name}.svg").write_text(picture(SESSIONS[name]), encoding="utf-8")
