"""Several hosts multiply matrices together, each a part on each of its devices (jax.distributed).

Each host runs this with the addresses of all and its own place among them. What computes is a process of its own: JAX
ends it when another host is gone.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

from hostwright.standard.roles.cuda.proofs.programs.common import (
    OF_LARGEST_VALUE,
    Lines,
    difference,
    host_label,
    run,
    whole_numbers,
)
from hostwright.standard.roles.cuda.proofs.programs.hosts import (
    WORKER,
    follow_workers,
    meeting_of,
    peers_of,
    route,
)
from hostwright.standard.roles.jax.proofs.programs.common import gpus

PER_DEVICE = 96  #: columns of the first matrix on a device


def main(lines: Lines, arguments: dict[str, Any]) -> None:
    """Start the process that computes and pass on what it measures; or be it."""
    if WORKER in os.environ:
        work(lines, arguments)
    else:
        follow_workers(lines, arguments, [sys.executable, *sys.argv])


def work(lines: Lines, arguments: dict[str, Any]) -> None:
    """This host's part of the product, whose sum over all devices XLA adds up."""
    import jax

    peers, place = peers_of(arguments), int(arguments["index"])
    meet_on(route(peers[place - 1])[1])
    address, port = meeting_of(arguments)
    meeting = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    jax.distributed.initialize(meeting, len(peers), place, initialization_timeout=int(arguments["start_limit_s"]))
    devices, label = jax.device_count(), host_label(gpus())
    left, right = whole_numbers(PER_DEVICE * devices)
    axis, everywhere = sharded(None, "all"), sharded()
    factors = (spread(left.astype("float32"), axis), spread(right.astype("float32"), sharded("all")))
    product = jax.jit(functools.partial(jax.numpy.matmul, precision="highest"), out_shardings=everywhere)
    for step in range(int(arguments["steps"])):
        result = product(*factors).block_until_ready()
        lines.tell(step=step)
    apart = difference(result.addressable_data(0), left @ right)
    jax.distributed.shutdown()
    lines.tell(alone=True)
    lines.measure("hosts", len(peers), "", label)
    lines.measure("devices", devices, "", label)
    lines.measure("product", apart, OF_LARGEST_VALUE, label)


def meet_on(address: str) -> None:
    """Processors exchange their parts on this address: by itself, JAX takes that of the host's own name, which may lead
    to 127.0.1.1."""
    import jaxlib

    import jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    module = getattr(jaxlib, "_jax", None) or jaxlib.xla_extension
    module.make_gloo_tcp_collectives = functools.partial(module.make_gloo_tcp_collectives, hostname=address)


def sharded(*axes: Any) -> Any:
    """The layout of an array on all devices of all hosts: cut along the axis that is named ``all``."""
    import numpy

    import jax

    mesh = jax.sharding.Mesh(numpy.array(jax.devices()), ("all",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))


def spread(array: Any, sharding: Any) -> Any:
    """An array of which each device holds its part."""
    import jax

    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


if __name__ == "__main__":
    run(main)
