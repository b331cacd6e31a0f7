"""Creates one job that runs the proofs of a host, one step per proof, and parses the output of each step.

If a proof fails, the other proofs still run. The job continues if the connection is lost. The job's directory is
removed at the end (``hostwright.apply.jobs``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hostwright.common.canonical import canonical
from hostwright.common.quoting import sh_file, words
from hostwright.common.text import short
from hostwright.common.untrusted import whole
from hostwright.plan.model import Change, RolePlan, Step, StepResult
from hostwright.prove.model import Measurement, Proof

ROLE = "prove"  #: role name under which proofs run as a job on the host
#: time limit in seconds for compiling a program (our estimate). The largest program takes 40 s on a busy core.
BUILD_S = 300
OUT_BYTES = 192 * 1024  #: number of bytes to keep of a program's standard output, below the 256 KiB of a step's output
ERR_BYTES = 16 * 1024  #: number of last bytes to keep of a program's standard error
END_S = 5  #: seconds between SIGTERM and SIGKILL for a program that reached its time limit
SLACK_S = 120  #: seconds that a step may take in addition to compiling and running the proof's program
HOTTEST = "temperature.hottest"  #: name of a measurement that Hostwright adds: a card's highest temperature

_CARD = re.compile(r"[A-Za-z0-9:._-]{1,80}")


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """The end of a proof's program: exit status, duration and output.

    If Hostwright stopped the program, ``stopped`` is the reason.
    """

    status: int | None
    took_s: float
    text: str
    stopped: str = ""
    unbuilt: bool = False
    stderr: tuple[str, ...] = ()
    hottest: tuple[Measurement, ...] = ()


def job_plan(proofs: Sequence[Proof], nonce: str, watch: str) -> RolePlan:
    """Return the job that runs ``proofs`` on a host.

    ``watch`` is the script that prints the cards' temperatures; empty without cards.
    """
    changes = (
        Change(proof.key, "not proved", "proved", (_step(proof, number, nonce, watch),), alone=True)
        for number, proof in enumerate(proofs)
    )
    return RolePlan(ROLE, (), tuple(changes))


def _step(proof: Proof, number: int, nonce: str, watch: str) -> Step:
    program = proof.program
    script = sh_file(
        __file__,
        "step.sh",
        nonce=nonce,
        mark=f"{nonce}{number}x",
        file=program.file,
        source=program.source,
        arguments=canonical(dict(program.arguments)),
        build=_build(program.compiler),
        command=_command(program.interpreter),
        environment=words(tuple(f"{name}={value}" for name, value in program.environment)),
        watch=watch,
        limit_s=f"{proof.time_limit_s:g}",
        build_s=BUILD_S,
        out_bytes=OUT_BYTES,
        err_bytes=ERR_BYTES,
        end_s=END_S,
    )
    return Step(script, timeout_s=proof.time_limit_s + BUILD_S + SLACK_S)


def _command(interpreter: tuple[str, ...]) -> str:
    if not interpreter:
        return 'exec "$proof_program" "$proof_arguments"'
    return f'exec {words(interpreter)} "$proof_source" "$proof_arguments"'


def _build(compiler: tuple[str, ...]) -> str:
    if not compiler:
        return ""
    text = words(compiler)
    for name in ("source", "program"):
        text = text.replace(f"{{{name}}}", f"'\"$proof_{name}\"'")
    return f"exec {text}"


def ended(step: StepResult, nonce: str) -> ProgramEnd:
    """Parse the untrusted output of a proof's step. Invalid lines that start with ``nonce`` are skipped."""
    lines: list[str] = []
    own: list[str] = []
    for line in step.output.split("\n"):
        (own if line.startswith(f"{nonce} ") else lines).append(line)
    status, took_s, stopped, unbuilt = None, step.duration_s, "", False
    parts: list[str] = []
    hottest: dict[str, Measurement] = {}
    for line in own:
        word, _, rest = line[len(nonce) + 1 :].partition(" ")
        match word:
            case "status" if (number := whole(rest)) is not None and number < 256:
                status = number
            case "took" if (number := whole(rest)) is not None:
                took_s = number / 1000
            case "stopped":
                stopped = short(rest)
            case "build":
                unbuilt = True
            case "said" if rest.strip():
                parts.append(short(rest))
            case "hottest":
                card, _, degrees = rest.partition(" ")
                number = whole(degrees)
                if _CARD.fullmatch(card) and number is not None and number < 1000:
                    hottest[card] = Measurement(HOTTEST, float(number), "°C", card)
    return ProgramEnd(status, took_s, "\n".join(lines), stopped, unbuilt, tuple(parts[-15:]), tuple(hottest.values()))
