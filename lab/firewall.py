"""The lab's packet rules: a table of its own, and an opening in a closed forward chain of others, if there is one."""

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
#: iptables' own chain, as nftables shows it. Docker and ufw set its policy to drop, which another table cannot
#: override.
_FORWARD = ("ip", "filter", "FORWARD")


def install(lab: Lab) -> None:
    """Let the hosts out under the machine's address, with segments that fit the path's MTU; replaces former rules."""
    remove(lab)
    run(["nft", "-f", "-"], stdin=_TABLE.format(table=lab.table, subnet=lab.subnet, bridge=lab.bridge))
    if "policy drop" in _forward_chain():
        for end in ("iifname", "oifname"):
            run(["nft", "insert", "rule", *_FORWARD, end, lab.bridge, "counter", "accept", "comment", f'"{lab.table}"'])


def remove(lab: Lab) -> None:
    """Remove every rule of this lab, if there are any."""
    if not shutil.which("nft"):
        return  # so it never made one
    attempt(["nft", "delete", "table", "ip", lab.table])
    for handle in re.findall(rf'comment "{lab.table}".*# handle (\d+)', _forward_chain()):
        attempt(["nft", "delete", "rule", *_FORWARD, "handle", handle])


def _forward_chain() -> str:
    """Return iptables' forward chain with the handles of its rules; empty if it does not exist."""
    return attempt(["nft", "--handle", "list", "chain", *_FORWARD]).stdout
