"""Remakes the pictures of the documents: types commands in a real terminal and draws what it showed.

    invoke lab.up --hosts gpu01,gpu02 --bmc
    invoke mirror --stack lab
    invoke lab.reset --hosts gpu01,gpu02
    python docs/images/capture.py provision
    python docs/images/capture.py rebuild

It needs tmux and the lab's two hosts freshly reset (for rebuild: provisioned), and takes three minutes each. Nothing in
a picture is made up: it is the terminal's own screen with its colours, drawn by rich. The form of the drawing is our
own, because rich's loads a font from the web.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

CHECKOUT = Path(__file__).resolve().parents[2]
#: picture → commands
PICTURES = {
    "provision": (
        "invoke provision --hosts gpu01,gpu02",
        "invoke verify --hosts gpu01,gpu02",
        "time invoke plan --hosts gpu01,gpu02",
    ),
    "rebuild": (
        "invoke power off --hosts gpu01 --force",
        "invoke lab.reset --hosts gpu02",
        "invoke rebuild --hosts gpu01,gpu02",
        "invoke rebuild --report",
    ),
}
COLUMNS, LINES = 112, 60
PATIENCE_S = 900  #: for one command
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
TMUX = ("tmux", "-L", f"capture-{os.getpid()}", "-f", os.devnull)
PROMPT = "$ "
POLL_S = 0.1  #: between two looks whether the prompt is there
#: The shell tells tmux, and not the screen, when a command has ended; no command asks, as nobody would answer.
SETTINGS = ("HOSTWRIGHT_YES=1", f"PS1={PROMPT}", "PROMPT_COMMAND=tmux wait-for -S ready", "TIMEFORMAT=%1R s")
SHELL = ("env", *SETTINGS, "bash", "--norc", "--noprofile")

#: rich fills this in; its own form names a font on a server
DRAWING = f"""\
<svg viewBox="0 0 {{width}} {{height}}" xmlns="http://www.w3.org/2000/svg">
<style>
.{{unique_id}}-matrix {{{{ font-family: {FONT}; font-size: {{char_height}}px; line-height: {{line_height}}px; }}}}
{{styles}}
</style>
<defs>
<clipPath id="{{unique_id}}-clip-terminal">
<rect x="0" y="0" width="{{terminal_width}}" height="{{terminal_height}}"/>
</clipPath>
{{lines}}
</defs>
{{chrome}}
<g transform="translate({{terminal_x}}, {{terminal_y}})" clip-path="url(#{{unique_id}}-clip-terminal)">
{{backgrounds}}
<g class="{{unique_id}}-matrix">
{{matrix}}
</g>
</g>
</svg>
"""


def tmux(*words: str) -> str:
    """Run one command of tmux's and return its output."""
    return subprocess.run([*TMUX, *words], check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout


def await_prompt() -> None:
    """Wait until the last command has ended and the prompt is on the screen: what is typed earlier is shown twice."""
    tmux("wait-for", "ready")
    end_s = time.monotonic() + PATIENCE_S
    while tmux("capture-pane", "-p").split()[-1:] != PROMPT.split() and time.monotonic() < end_s:
        time.sleep(POLL_S)


def screen(commands: tuple[str, ...]) -> str:
    """Type commands, each when the one before has ended, and return the screen with its escape sequences."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    size = ("-x", str(COLUMNS), "-y", str(LINES))
    tmux("new-session", "-d", *size, "-c", str(CHECKOUT), "env", f"PATH={path}", *SHELL)
    try:
        await_prompt()
        for command in ("clear", *commands):
            tmux("send-keys", command, "Enter")
            await_prompt()
        return tmux("capture-pane", "-e", "-p")
    finally:
        tmux("kill-server")


def draw(text: str) -> str:
    """The screen as SVG, without the last prompt."""
    console = Console(width=COLUMNS, file=io.StringIO(), record=True, force_terminal=True, color_system="truecolor")
    shown = text.rstrip().removesuffix("$").rstrip()
    console.print(Text.from_ansi(shown), soft_wrap=True)
    drawing = console.export_svg(title="", code_format=DRAWING, unique_id="terminal")
    return "\n".join(line.rstrip() for line in drawing.splitlines()) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(__file__).with_name(f"{name}.svg").write_text(draw(screen(PICTURES[name])), encoding="utf-8")
