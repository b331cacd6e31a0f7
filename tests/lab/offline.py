"""A lab whose hosts reach only this machine, and an inventory for them with its own file store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hostwright.stack.store.artifacts import STORE_VARIABLE
from lab.config import Lab
from lab.programs import run
from tests.lab.conftest import FrontDoor


@dataclass(frozen=True)
class OfflineSite:
    """An inventory, and this machine's files for its hosts."""

    door: FrontDoor
    inventory: Path
    store: Path

    def __call__(self, *words: str, status: int = 0) -> str:
        done = self.door(*words, inventory=str(self.inventory), **{STORE_VARIABLE: str(self.store)})
        assert done.returncode == status, f"{done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout + done.stderr


@contextmanager
def cut_off(lab: Lab) -> Iterator[None]:
    """Reject traffic of hosts beyond this machine during the body."""
    table = f"{lab.table}_offline"
    rule = f'iifname "{lab.bridge}" reject'
    chain = f"chain outward {{\n type filter hook forward priority -10;\n {rule}\n }}"
    run(["nft", "-f", "-"], stdin=f"table ip {table} {{\n {chain}\n}}\n")
    try:
        yield
    finally:
        run(["nft", "delete", "table", "ip", table])
