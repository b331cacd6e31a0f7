"""Failures in users' containers and in the proxy in front of them, for a host that also has their roles."""

from __future__ import annotations

import json

from hostwright.standard.roles.proxy.failures import SERVED, UNIT, UNITS
from hostwright.standard.roles.workspaces.failures import CARDS_INSIDE
from hostwright.standard.roles.workspaces.states.facts import WORKSPACES_PROBE
from tests.lab.audit.made_up_case import Change, MadeUp, made_up, says, together

EMERG = f"{UNIT}: nginx: [emerg] "
HELD = {
    "name": "/workspace-alice-lab", "id": "5f3c", "image": "sha256:2aae", "state": "running", "pid": 4711, "code": 0,
    "killed": False, "error": "", "ended": "0001-01-01T00:00:00Z", "workspace": "alice-lab", "user": "alice",
    "kind": "jupyter", "definition": "0123456789abcdef", "asked": "", "gpus": "", "share": "false", "port": "21001",
    "reference": "tensorflow/tensorflow:2.9.0-gpu-jupyter", "networks": "hostwright-alice ",
}  # fmt: skip


def holds(**changed: object) -> Change:
    """Return a host with one workspace with these values."""
    return says(WORKSPACES_PROBE, f"container {json.dumps({**HELD, **changed})}\nend\n")


def nginx(words: str = "") -> Change:
    """Return nginx.service as running, or failed with this last message."""
    result, active, sub = ("exit-code", "failed", "failed") if words else ("success", "active", "running")
    shown = f"Id={UNIT}\nLoadState=loaded\nActiveState={active}\nSubState={sub}\nResult={result}\n"
    return together(says(UNITS.states, shown), says(UNITS.journals, f"{EMERG}{words}\n" if words else ""))


WELL = together(holds(), says(CARDS_INSIDE), says(SERVED), nginx())


def case(name: str, change: Change, rules: str = "") -> MadeUp:
    """Return a host with workspaces and proxy that is sound except for this."""
    return made_up(name, together(WELL, change), rules, roles="workspaces proxy")


MADE_UP = (
    case("a workspace whose process took too much memory", holds(killed=True), "workspace-out-of-memory"),
    case("a workspace that ended for want of memory", holds(killed=True, state="exited", code=137, pid=0),
         "workspace-out-of-memory"),
    case("a workspace that lost its GPUs",
         says(CARDS_INSIDE, "alice-lab Failed to initialize NVML: Unknown Error\n"), "workspace-lost-gpu"),
    case("a port of nginx's that another program has",
         nginx("bind() to 0.0.0.0:443 failed (98: Address already in use)"), "proxy-port-taken"),
    case("nginx's default site without IPv6",
         nginx("socket() [::]:80 failed (97: Address family not supported by protocol)"), "proxy-without-ipv6"),
    case("a key that is of another certificate",
         nginx('SSL_CTX_use_PrivateKey("/etc/ssl/private/site.key") failed (SSL: error:05800074:x509 certificate'
               " routines::key values mismatch)"), "proxy-certificate-unusable"),
    case("a certificate that has ended", says(SERVED, "ended /etc/ssl/site.crt: notAfter=Nov  9 11:53:47 2018 GMT\n"),
         "proxy-certificate-ended"),
    case("a certificate that ends soon", says(SERVED, "ending /etc/ssl/site.crt: notAfter=Nov 29 11:53:47 2026 GMT\n"),
         "proxy-certificate-ending"),
    case("a path that leads to nothing",
         says(SERVED, "silent /alice/alice-lab/: nothing listens on 127.0.0.1:21001\n"), "proxy-without-workspace"),
    case("workspaces and proxy at work", WELL),
    case("a workspace with its cards", says(CARDS_INSIDE, "alice-lab GPU 0: Tesla T4 (UUID: GPU-9770bbdd)\n")),
    case("a workspace whose image has no nvidia-smi",
         says(CARDS_INSIDE, 'alice-lab OCI runtime exec failed: exec: "nvidia-smi": executable file not found\n')),
    case("an nginx that failed for a reason that nobody knows", nginx('unknown directive "prxy_pass" in x.conf:3')),
)  # fmt: skip
