"""nftables rules of a lab: the lab's own table, and accept rules in a forward chain that drops packets by default."""

from __future__ import annotations

import re
import shutil

from lab.config import Lab
from lab.programs import attempt, run

_TABLE = """
table ip {table} {{
  chain outward {{
    type nat hook postrouting priority srcnat;
    ip saddr {subnet} oifname != "{bridge}" masquerade
  }}
  chain clamp {{
    type filter hook forward priority mangle;
    iifname "{bridge}" tcp flags syn tcp option maxseg size set rt mtu
    oifname "{bridge}" tcp flags syn tcp option maxseg size set rt mtu
  }}
}}
"""
#: iptables' forward chain, as family, table and chain of nftables. With the policy drop, as set by Docker or ufw, this
#: chain overrides other tables.
_FORWARD = ("ip", "filter", "FORWARD")


def install(lab: Lab) -> None:
    """Give the lab's hosts access to other networks (NAT and MSS rules). Earlier rules are replaced."""
    remove(lab)
    run(["nft", "-f", "-"], stdin=_TABLE.format(table=lab.table, subnet=lab.subnet, bridge=lab.bridge))
    if "policy drop" in _forward_chain():
        for end in ("iifname", "oifname"):
            run(["nft", "insert", "rule", *_FORWARD, end, lab.bridge, "counter", "accept", "comment", f'"{lab.table}"'])


def remove(lab: Lab) -> None:
    """Remove all nftables rules of the lab."""
    if not shutil.which("nft"):
        return
    attempt(["nft", "delete", "table", "ip", lab.table])
    for handle in re.findall(rf'comment "{lab.table}".*# handle (\d+)', _forward_chain()):
        attempt(["nft", "delete", "rule", *_FORWARD, "handle", handle])


def _forward_chain() -> str:
    return attempt(["nft", "--handle", "list", "chain", *_FORWARD]).stdout
