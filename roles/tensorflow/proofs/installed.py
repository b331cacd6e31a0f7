"""Judging what TensorFlow finds on a host: the versions of the stack, every card, and right results on each device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.proofs import CPU, Expected, Measurements, ProofFinding
from hostwright.roles import series
from hostwright.standard.roles.cuda.proofs.frameworks import CONVOLVED, capabilities, cards, models, versions, within

GROWTH = 0.5  #: the part of a card's memory that TensorFlow takes without growth is nearly all of it

_SUBJECTS = {
    "tensorflow": "version of TensorFlow",
    "built with cuda": "TensorFlow is built with CUDA",
    "built for cuda": "TensorFlow is built for CUDA",
    "built for cudnn": "TensorFlow is built for cuDNN",
}


@dataclass(frozen=True, slots=True)
class TensorflowJudge:
    """What the stack wants of a host: TensorFlow's version, CUDA's with its directory, cuDNN's; empty: not wanted."""

    tensorflow: str
    cuda: str = ""
    toolkit: str = ""
    cudnn: str = ""  #: as the library tells it: ``8.1.0``

    def judge(self, measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
        """The findings."""
        return tuple(self._judge(measured, expected))

    def _judge(self, measured: Measurements, expected: Expected) -> Iterator[ProofFinding]:
        yield from self._versions(measured)
        yield from within(measured, "product", 0.0, "a product of whole numbers")
        yield from within(measured, "convolution", CONVOLVED, "a convolution")
        yield from cards(measured, expected, "TensorFlow")
        yield from models(measured, expected)
        yield from capabilities(measured)
        yield from _growth(measured)

    def _versions(self, measured: Measurements) -> Iterator[ProofFinding]:
        wanted: dict[str, str | bool] = {"tensorflow": self.tensorflow} if self.tensorflow else {}
        if self.cuda:
            wanted |= {"built with cuda": True, "built for cuda": series(self.cuda)}
        if self.cudnn:
            wanted |= {"built for cudnn": self.cudnn.partition(".")[0]}
        yield from versions(measured, {name: (_SUBJECTS[name], value) for name, value in wanted.items()})
        for each in measured.named("cudnn") if self.cudnn else ():
            if each.value != self.cudnn:
                yield ProofFinding("not the stack's cuDNN computes", each.device, "failed", str(each.value), self.cudnn)
        yield from self._ptxas(measured)

    def _ptxas(self, measured: Measurements) -> Iterator[ProofFinding]:
        if not self.toolkit:
            return
        found = next((str(each.value) for each in measured.named("ptxas")), "")
        wanted = f"{self.toolkit}/bin/ptxas"
        if not found:
            sentence = "ptxas is not found, without which XLA cannot compile for a GPU; install the toolkit's compiler"
            yield ProofFinding(sentence, CPU, "failed", "none", wanted)
        elif found.partition(" ")[0] != wanted:
            yield ProofFinding("the ptxas that is found is not the toolkit's", CPU, "failed", found, wanted)


def _growth(measured: Measurements) -> Iterator[ProofFinding]:
    """With memory growth a small computation takes a small part of a card's memory."""
    for each in measured.named("memory with growth"):
        total = measured.number("memory", each.device)
        if each.number is not None and total and each.number > GROWTH * total:
            limit = f"at most {GROWTH * total:.0f} MiB"
            yield ProofFinding("memory growth has no effect", each.device, "failed", f"{each.number:.0f} MiB", limit)
