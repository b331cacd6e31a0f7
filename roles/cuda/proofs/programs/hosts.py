"""Shared by programs that run on several hosts at once: a limit for each step, and the hosts that do not answer."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from hostwright.standard.roles.cuda.proofs.programs.common import Lines, leave

WORKER = "HOSTWRIGHT_PROOF_WORKER"  #: is set for a process that a program started, and that reports to it


class StepLimit:
    """Ends the program when a step takes too long, or when it is told of an error; names the hosts that are missing."""

    def __init__(self, lines: Lines, others: list[str], step_limit_s: float) -> None:
        self.lines, self.others, self.step_limit_s = lines, others, step_limit_s
        self.end: Callable[[], None] = lambda: None  #: ends what runs on this host, when the program fails
        self._done, self._failing = threading.Event(), threading.Lock()
        self._what, self._until = "", 0.0

    def start(self, what: str, limit_s: float) -> None:
        """From now on this is under way, and must end within the limit."""
        self._what, self._until = what, time.monotonic() + limit_s
        threading.Thread(target=self._run, daemon=True).start()

    def step(self, number: int) -> None:
        """A step has ended; the next begins."""
        self._what, self._until = f"step {number + 2}", time.monotonic() + self.step_limit_s

    def stop(self) -> None:
        """Wait for no other host any more."""
        self._done.set()

    def _run(self) -> None:
        while not self._done.wait(0.2):
            if time.monotonic() > self._until:
                self.fail("it did not end in time")

    def fail(self, why: str) -> None:
        """Tell which hosts do not answer, and end after as long as the others may take to notice it, too.

        A host that ended at once would be named as missing by those that the same error reaches later.
        """
        self._failing.acquire()  # one error is enough: whoever comes later waits for the end
        self._done.set()
        self.end()
        missing = [address for address in self.others if not answers(address)]
        hosts = ", ".join(missing)
        reason = f"no answer from {hosts}" if missing else "all hosts answer"
        self.lines.tell(error=f"{self._what}: {reason} ({why})"[:500])
        time.sleep(self.step_limit_s)  # not a wait for a condition: the others get this long to notice it themselves
        leave(1)


def answers(address: str) -> bool:
    """Whether something listens there."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=3).close()
    except OSError:
        return False
    return True


def with_port(peer: str, port: int) -> str:
    """An address as TF_CONFIG writes it; one of a test brings its own port."""
    if peer.count(":") == 1:
        return peer
    return f"[{peer}]:{port}" if ":" in peer else f"{peer}:{port}"


def follow_workers(lines: Lines, arguments: dict[str, Any], command: list[str]) -> None:
    """Start the processes of this host, and pass on what they measure until they end.

    They report ``{"step": 3}`` after a step, and ``{"alone": true}`` when no other host is needed any more. Meanwhile
    this listens on its port, so that the other hosts can tell whether it is there.
    """
    peers = peers_of(arguments)
    place = int(arguments.get("index", 0))
    watch = StepLimit(lines, peers[:place] + peers[place + 1 :], float(arguments["step_limit_s"]))
    server = listening(int(peers[place].rpartition(":")[2])) if peers else None
    name = route(peers[place - 1])[0] if peers else "lo"
    environment = {**os.environ, WORKER: "1", "GLOO_SOCKET_IFNAME": name}
    if peers:
        environment["NCCL_SOCKET_IFNAME"] = "=" + name
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    watch.end = process.terminate
    watch.start("the start" + (" of all hosts" if peers else ""), float(arguments["start_limit_s"]))
    errors, alone = [], False
    for line in process.stdout or ():
        row = json.loads(line)
        if "step" in row:
            watch.step(row["step"])
        elif "alone" in row:
            alone = True
            watch.stop()
        elif "error" in row:
            errors.append(row["error"])
        elif "measure" in row:
            lines.tell(**row)
    status = process.wait()
    why = errors[0] if errors else f"a process of this host ended with status {status}"
    if status and not alone:
        watch.fail(why[:200])
    if status:
        raise RuntimeError(why)
    watch.stop()
    if server:
        server.close()


def peers_of(arguments: dict[str, Any]) -> list[str]:
    """The addresses of all hosts with their ports; none of a host that is alone."""
    return [with_port(peer, int(arguments["port"])) for peer in arguments.get("peers", ())]


def meeting_of(arguments: dict[str, Any]) -> tuple[str, int]:
    """Address and port at which the processes of all hosts meet: on the first host."""
    return peers_of(arguments)[0].rpartition(":")[0].strip("[]"), int(arguments["meeting_port"])


def listening(port: int) -> socket.socket:
    """A socket to which the other hosts can connect, over IPv4 or IPv6."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def route(peer: str) -> tuple[str, str]:
    """The interface by which this host reaches a peer, and its own address there. Its own name may lead to 127.0.1.1,
    as on Debian, where no other host reaches it."""
    host, _, port = peer.rpartition(":")
    address = socket.getaddrinfo(host.strip("[]"), int(port))[0][4][0]
    words = subprocess.check_output(["ip", "-o", "route", "get", str(address)], text=True).split()
    return words[words.index("dev") + 1], words[words.index("src") + 1]
