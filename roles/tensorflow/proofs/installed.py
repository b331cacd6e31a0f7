"""Check of the installed TensorFlow: versions, GPUs and results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.proofs import CPU, Expected, Measurements, ProofFinding
from hostwright.roles import series
from hostwright.standard.roles.cuda.proofs.frameworks import CONVOLVED, capabilities, cards, models, versions, within

#: maximum share of a GPU's memory for a small computation. Without memory growth, TensorFlow allocates nearly all.
GROWTH = 0.5

_SUBJECTS = {
    "tensorflow": "version of TensorFlow",
    "built with cuda": "TensorFlow is built with CUDA",
    "built for cuda": "TensorFlow is built for CUDA",
    "built for cudnn": "TensorFlow is built for cuDNN",
}


@dataclass(frozen=True, slots=True)
class TensorflowJudge:
    """Expected versions of TensorFlow, CUDA and cuDNN, and CUDA's directory. An empty value is not checked."""

    tensorflow: str
    cuda: str = ""
    toolkit: str = ""
    cudnn: str = ""  #: version of cuDNN in the notation of cuDNN, such as ``8.1.0``

    def judge(self, measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
        """Return findings for unexpected versions, missing GPUs, wrong results, and memory growth without effect."""
        return tuple(self._judge(measured, expected))

    def _judge(self, measured: Measurements, expected: Expected) -> Iterator[ProofFinding]:
        yield from self._versions(measured)
        yield from within(measured, "product", 0.0, "the test product of integer matrices")
        yield from within(measured, "convolution", CONVOLVED, "the test convolution")
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
                yield ProofFinding(
                    "computations use another cuDNN than the stack's",
                    each.device,
                    "failed",
                    str(each.value),
                    self.cudnn,
                )
        yield from self._ptxas(measured)

    def _ptxas(self, measured: Measurements) -> Iterator[ProofFinding]:
        if not self.toolkit:
            return
        found = next((str(each.value) for each in measured.named("ptxas")), "")
        wanted = f"{self.toolkit}/bin/ptxas"
        if not found:
            sentence = "ptxas is missing, so XLA cannot compile for a GPU; install the toolkit's compiler"
            yield ProofFinding(sentence, CPU, "failed", "none", wanted)
        elif found.partition(" ")[0] != wanted:
            yield ProofFinding("the first ptxas on PATH is not the toolkit's", CPU, "failed", found, wanted)


def _growth(measured: Measurements) -> Iterator[ProofFinding]:
    for each in measured.named("memory with growth"):
        total = measured.number("memory", each.device)
        if each.number is not None and total and each.number > GROWTH * total:
            limit = f"at most {GROWTH * total:.0f} MiB"
            yield ProofFinding(
                "TensorFlow's memory growth has no effect: a small program reserves most of the card's memory",
                each.device,
                "failed",
                f"{each.number:.0f} MiB",
                limit,
            )
