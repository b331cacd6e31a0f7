"""All devices, of one host or of several, add up a tensor and train one network together (DistributedDataParallel).

``torchrun`` starts this file again for each device: with NCCL a process for each card, on hosts without a card one
(two where it is alone) with gloo. Each host runs this with the addresses of all and its own place among them; alone, it
has neither.
"""

from __future__ import annotations

import datetime
import os
import sys
import time
from typing import Any

from hostwright.standard.roles.cuda.proofs.programs.common import (
    OF_LARGEST_CHANGE,
    OF_LARGEST_VALUE,
    RATE,
    Device,
    Lines,
    change_difference,
    difference,
    host_label,
    images,
    run,
    trained_by_numpy,
)
from hostwright.standard.roles.cuda.proofs.programs.hosts import WORKER, follow_workers, meeting_of
from hostwright.standard.roles.pytorch.proofs.programs.common import cpu, exact_float32, gpus, network, synchronize

PER_DEVICE = 64  #: samples in a batch
#: of what is added up; NCCL reaches its speed from some MiB on
CARD_BYTES, CPU_BYTES = 256 << 20, 16 << 20
SUMS = 10  #: that are timed


def main(lines: Lines, arguments: dict[str, Any]) -> None:
    """Start the processes of this host and pass on what they measure; or be one of them."""
    if WORKER in os.environ:
        work(lines, arguments)
        return
    import torch

    hosts = len(arguments.get("peers", ()))
    each = torch.cuda.device_count() or (1 if hosts else 2)
    if hosts:
        address, port = meeting_of(arguments)
        nodes = [f"--nnodes={hosts}", f"--node-rank={arguments['index']}"]
        at = [*nodes, f"--master-addr={address}", f"--master-port={port}"]
    else:
        at = ["--standalone"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", *at, f"--nproc-per-node={each}"]
    follow_workers(lines, arguments, [*torchrun, *sys.argv])


def work(lines: Lines, arguments: dict[str, Any]) -> None:
    """One process of all: its part of each sum and of each batch. The first of each host measures."""
    import torch

    local = int(os.environ["LOCAL_RANK"])
    if torch.cuda.is_available():
        torch.cuda.set_device(local)
    cards = gpus()
    device, label = (cards[local] if cards else cpu()), host_label(cards)
    limit = datetime.timedelta(seconds=float(arguments["start_limit_s"]))
    torch.distributed.init_process_group("nccl" if cards else "gloo", timeout=limit)
    exact_float32()
    wrong, speed = added_up(device, CARD_BYTES if cards else CPU_BYTES)
    devices, rank = torch.distributed.get_world_size(), torch.distributed.get_rank()
    batch = PER_DEVICE * devices
    inputs, labels = images(int(arguments["steps"]) * batch)
    before = weights_of(network())
    model = torch.nn.parallel.DistributedDataParallel(network().to(device.name))
    part = slice(rank * PER_DEVICE, (rank + 1) * PER_DEVICE)
    told = lines if local == 0 else None
    together_s, loss = fitted(model, device, (inputs, labels), batch, part=part, told=told)
    torch.distributed.all_reduce(loss)
    together = weights_of(model.module)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    if local:
        return
    lines.tell(alone=True)
    model = network().to(device.name)
    alone_s, loss_alone = fitted(model, device, (inputs, labels), batch)
    better = "more" if cards else ""  # processes on a processor get in each other's way
    lines.measure("hosts", len(arguments.get("peers", ())) or 1, "", label)
    lines.measure("devices", devices, "", label)
    lines.measure("wrong sums", wrong, "", label)
    if devices > 1:
        lines.measure("all-reduce", speed, "GB/s", label, better)
    loss_apart = difference([float(loss) / devices], [float(loss_alone)])
    lines.measure("loss beside one device", loss_apart, OF_LARGEST_VALUE, label)
    for name, other in (
        ("one device", weights_of(model)),
        ("numpy", trained_by_numpy(before, inputs, labels, batch)),
    ):
        apart = change_difference(before, together, other)
        lines.measure(f"learned beside {name}", apart, OF_LARGEST_CHANGE, label)
    samples = len(inputs)
    lines.measure("samples per second together", samples / together_s, "1/s", label, better)
    lines.measure("samples per second of one device", samples / alone_s, "1/s", device.label)


def added_up(device: Device, size: int) -> tuple[int, float]:
    """The number of wrong sums over all processes, and the bus bandwidth in GB/s, as nccl-tests counts it."""
    import torch

    devices, rank = torch.distributed.get_world_size(), torch.distributed.get_rank()
    part = torch.full((size // 4,), float(rank + 1), device=device.name)
    torch.distributed.all_reduce(part)
    wrong = int((part != devices * (devices + 1) / 2).sum())
    synchronize(device)
    start = time.perf_counter()
    for _ in range(SUMS):
        torch.distributed.all_reduce(part)
    synchronize(device)
    seconds = (time.perf_counter() - start) / SUMS
    return wrong, 2 * (devices - 1) / devices * size / seconds / 1e9


def fitted(
    model: Any, device: Device, data: Any, batch: int, *, part: slice = slice(None), told: Lines | None = None
) -> tuple[float, Any]:
    """Train an epoch of this part of each batch; returns the seconds without the first step, and the last loss."""
    import torch

    inputs, labels = data
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    times = []
    for step, start in enumerate(range(0, len(inputs), batch)):
        values = torch.tensor(inputs[start : start + batch][part], dtype=torch.float32, device=device.name)
        wanted = torch.tensor(labels[start : start + batch][part], device=device.name)
        loss = torch.nn.functional.cross_entropy(model(values), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        synchronize(device)
        times.append(time.perf_counter())
        if told:
            told.tell(step=step)
    return max(times[-1] - times[0], 1e-9) * len(times) / max(len(times) - 1, 1), loss.detach()


def weights_of(model: Any) -> list[Any]:
    """The weights in the order and form of ``trained_by_numpy``: kernels with a row for each input, and biases."""
    return [part.detach().cpu().numpy().T.copy() for part in model.parameters()]


if __name__ == "__main__":
    run(main)
