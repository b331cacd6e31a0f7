"""Recorder between a controller and a host: an sshd's forced command, which forwards and stores all data.

    python -I recorder.py FOLDER SSH_CONFIG HOST

Each command of the controller becomes a file in ``FOLDER``: the command, its input and output in their order, and the
status. ``recording`` combines the files into one recording, which ``answer.py`` replays.
"""

import json
import marshal
import os
import selectors
import subprocess
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

CHUNK = 65536


def pass_on(command: str, ssh: list[str]) -> tuple[list[tuple[str, bytes]], int]:
    """Run ``command`` on the host through ``ssh``; return input and output in their order, and the exit status."""
    process = subprocess.Popen([*ssh, command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin and process.stdout and process.stderr  # noqa: S101 - they are pipes
    went: list[tuple[str, bytes]] = []
    watched = selectors.DefaultSelector()
    sinks = {0: process.stdin.fileno(), process.stdout.fileno(): 1, process.stderr.fileno(): 2}
    names = {0: "in", process.stdout.fileno(): "out", process.stderr.fileno(): "err"}
    for descriptor in names:
        watched.register(descriptor, selectors.EVENT_READ)
    answers = 2
    while answers:
        for found, _ in watched.select():
            data = os.read(found.fd, CHUNK)
            if data:
                went.append((names[found.fd], data))
                os.write(sinks[found.fd], data)
                continue
            watched.unregister(found.fd)
            if found.fd == 0:
                process.stdin.close()
            else:
                answers -= 1
    return went, process.wait()


def turns(went: list[tuple[str, bytes]]) -> tuple[list[bytes], list[tuple[int, bytes, bytes]]]:
    """Split recorded input and output into inputs, output before any input, and output after all inputs.

    Output between two inputs is moved to the end, because its time varies. A client that waits for such output would
    hang.
    """
    first = next((index for index, (name, _) in enumerate(went) if name == "in"), len(went))

    def of(name: str, part: list[tuple[str, bytes]]) -> bytes:
        return b"".join(data for kind, data in part if kind == name)

    before, after = went[:first], went[first:]
    sent = of("in", after)
    return [b"", sent], [(0, of("out", before), b""), (len(sent), of("out", after), of("err", went))]


def read(file: Path) -> dict[str, Any]:
    """Read a recorded command as a dictionary of ``command``, ``inputs``, ``turns`` and ``status``."""
    kept = json.loads(file.read_text("utf-8"))
    inputs, answered = turns([(name, b64decode(data)) for name, data in kept["went"]])
    return {"command": b64decode(kept["command"]), "inputs": inputs, "turns": answered, "status": kept["status"]}


def recording(files: Iterable[Path], masked: Callable[[bytes], bytes]) -> bytes:
    """Combine recorded commands into one recording for ``answer.py``, by the masked texts of the commands."""
    by_question: dict[bytes, list[dict[str, Any]]] = {}
    for kept in map(read, files):
        by_question.setdefault(masked(kept["command"]), []).append(kept)
    return marshal.dumps(by_question)


def main() -> int:
    """Forward one command to the host and store it in ``FOLDER``; return its exit status."""
    folder, config, host = sys.argv[1:]
    command = os.environ.get("SSH_ORIGINAL_COMMAND", "")
    went, status = pass_on(command, ["ssh", "-F", config, host])
    kept = {
        "command": b64encode(command.encode()).decode(),
        "went": [(name, b64encode(data).decode()) for name, data in went],
        "status": status,
    }
    Path(folder, f"{time.time_ns()}-{os.getpid()}.json").write_text(json.dumps(kept), "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
