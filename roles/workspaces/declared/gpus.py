"""Names of GPUs in an inventory: a GPU by index or UUID, or a MIG device by UUID."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Protocol, runtime_checkable

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from hostwright.roles import Unquoted

_INDEX = re.compile(r"0|[1-9][0-9]?")
_HEX = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
CARD = f"GPU-{_HEX}"
#: pattern of a MIG device's name: up to R465 a GPU and two numbers (``MIG-GPU-…/1/0``), later a UUID
MIG = f"MIG-{_HEX}|MIG-{CARD}/[0-9]{{1,2}}/[0-9]{{1,2}}"
_UUID = re.compile(f"{CARD}|{MIG}")


@runtime_checkable
class PromisesGpus(Protocol):
    """Variables of a role that reserves GPUs of the host. Workspaces cannot use these GPUs."""

    @property
    def promised_gpus(self) -> tuple[str, ...]:
        """Reserved GPUs, by index or UUID as in the inventory."""


def is_mig(gpu: str) -> bool:
    """Return whether ``gpu`` is the name of a MIG device."""
    return gpu.startswith("MIG-")


def clash(gpus: tuple[str, ...], others: tuple[str, ...], cards: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the first pair of a GPU in ``gpus`` and one in ``others`` that conflict; ``None`` without a conflict.

    Two GPUs conflict if they are equal, or if one is a MIG device on the other. ``cards``: MIG device → GPU.

    >>> clash(("GPU-1",), ("MIG-2", "MIG-3"), {"MIG-3": "GPU-1"})
    ('GPU-1', 'MIG-3')
    >>> clash(("MIG-2",), ("MIG-3",), {"MIG-2": "GPU-1", "MIG-3": "GPU-1"})
    """
    pairs = ((gpu, other) for gpu in gpus for other in others)
    return next(((one, two) for one, two in pairs if _same(one, two, cards) or _same(two, one, cards)), None)


def _same(gpu: str, other: str, cards: Mapping[str, str]) -> bool:
    return gpu == other or cards.get(gpu, _named_card(gpu)) == other


def _named_card(gpu: str) -> str:
    return gpu.removeprefix("MIG-").partition("/")[0] if "/" in gpu else ""


def _gpu(value: Any) -> Any:
    value = value.text if isinstance(value, Unquoted) else value  # YAML 1.1 parses 0:1 as the number 1
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(text, str) and (_INDEX.fullmatch(text) or _UUID.fullmatch(text)):
        return text
    if isinstance(text, str) and re.fullmatch(r"[0-9]{1,2}:[0-9]{1,2}", text):
        raise ValueError(f"{text}: numbers of MIG devices change; use the UUID (MIG-…, from nvidia-smi -L)")
    raise ValueError(
        f"found {value!r}, expected a GPU's index from nvidia-smi -L, or a UUID (GPU-…, or MIG-… of a MIG device)"
    )


def _gpus(value: Any) -> Any:
    if value == "all":
        raise ValueError("found 'all', which would include GPUs of other users; name each GPU")
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _each_once(values: tuple[str, ...]) -> tuple[str, ...]:
    for place, value in enumerate(values):
        both = clash((value,), values[:place], {})
        if both is not None:
            kin = "one is a MIG device of the other" if both[0] != both[1] else "it is named twice"
            raise ValueError(f"{' and '.join(dict.fromkeys(both))}: {kin}")
    return values


_WRITTEN = WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}]})
Gpu = Annotated[str, BeforeValidator(_gpu), _WRITTEN]
Gpus = Annotated[tuple[Gpu, ...], BeforeValidator(_gpus), AfterValidator(_each_once)]
