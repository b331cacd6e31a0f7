"""What the programs share that run on several hosts at once: a limit for each step, and who does not answer."""

from __future__ import annotations

import socket
import threading
import time

from hostwright.standard.roles.cuda.proofs.programs.common import Lines, leave


class StepLimit:
    """Ends the program when a step takes too long, or when it is told of an error; names the hosts that are missing."""

    def __init__(self, lines: Lines, others: list[str], step_limit_s: float) -> None:
        self.lines, self.others, self.step_limit_s = lines, others, step_limit_s
        self._done = threading.Event()
        self._what, self._until = "", 0.0

    def start(self, what: str, limit_s: float) -> None:
        """From now on this is under way, and must end within the limit."""
        self._what, self._until = what, time.monotonic() + limit_s
        threading.Thread(target=self._run, daemon=True).start()

    def step(self, number: int) -> None:
        """A step has ended; the next begins."""
        self._what, self._until = f"step {number + 2}", time.monotonic() + self.step_limit_s

    def stop(self) -> None:
        """What follows needs no other host."""
        self._done.set()

    def _run(self) -> None:
        while not self._done.wait(0.2):
            if time.monotonic() > self._until:
                self.fail("it did not end in time")

    def fail(self, why: str) -> None:
        """Tell which hosts do not answer, and end after as long as the others may take to notice it, too.

        A host that ended at once would be named as missing by those that the same error reaches later.
        """
        self._done.set()  # one error is enough
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
