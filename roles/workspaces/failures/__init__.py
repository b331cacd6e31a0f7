"""Failures that users notice in their workspaces' containers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, ForPeople, Sign, Unread
from hostwright.resources import Probe
from hostwright.roles import sh_file
from hostwright.standard.roles.workspaces.states.facts import WORKSPACES_PROBE, WorkspaceFacts, read_workspaces

if TYPE_CHECKING:
    from hostwright.failures import AuditContext


CARDS_INSIDE = Probe(sh_file(__file__, "cards.sh"), root=True)


def _workspaces(ctx: AuditContext) -> WorkspaceFacts:
    """Raise ``Unread`` if Docker is absent or does not respond."""
    ctx.require(WORKSPACES_PROBE)
    facts = read_workspaces(ctx.facts)
    if facts.docker:
        raise Unread(f"Docker is {facts.docker}")
    return facts


def lost_gpu(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi in a workspace with GPUs reports "Unknown Error"."""
    for line in ctx.text(CARDS_INSIDE).splitlines():
        name, _, answer = line.partition(" ")
        if "Failed to initialize NVML: Unknown Error" in answer:
            yield f"workspace {name}: {answer}"


def out_of_memory(ctx: AuditContext) -> Iterator[str]:
    """Docker reports that the kernel killed a process in a workspace's container for lack of memory."""
    for held in _workspaces(ctx).containers:
        if held.killed:
            ended = "" if held.running else f", and the container ended with status {held.code}"
            yield f"workspace {held.workspace} of {held.user}: a process was killed for lack of memory{ended}"


SPACE_RULES = (
    FailureRule(
        "workspace-lost-gpu",
        "",
        "a running workspace has lost its GPUs, as containers do when the host's systemd reloads",
        "Restart it when its user agrees: docker restart workspace-NAME. If `invoke plan` shows missing links in"
        " /dev/char, provision with --roles container first, so that this does not happen again",
        "NVIDIA/nvidia-docker#1730; NVIDIA/nvidia-container-toolkit#48",
        sign=Sign("workspaces", lost_gpu, (CARDS_INSIDE,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "workspace-out-of-memory",
        "",
        "the work in a workspace exceeded its memory limit, and the kernel killed a process",
        "Inform its user. Raise the workspace's memory limit (memory), or reduce the memory of the work. The finding"
        " disappears at the workspace's next start",
        "docker inspect, .State.OOMKilled; moby/moby#15621",
        sign=Sign("workspaces", out_of_memory, (WORKSPACES_PROBE,), grave=False),
    ),
    FailureRule(
        "workspace-port-taken",
        r"(?:starting userland proxy|failed to bind (?:host )?port)[^\n]*(?:address already in use|EADDRINUSE)"
        r"|Bind for \S+ failed: port is already allocated"
        r"|TensorBoard could not bind to port [0-9]{1,5}, it was already in use",
        "another program or container uses the port of this one",
        "Find it with ss -ltnp on the host, and docker ps. Stop it, or give the workspace another port (port: …) and"
        " provision again. If only a docker-proxy without its container uses the port, restart Docker",
        "docker/for-linux#1278; nginx-proxy/nginx-proxy#839",
    ),
    FailureRule(
        "ssh-host-key-changed",
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key for \S+ has changed and you have requested strict checking",
        "the host key at an address differs from the user's known_hosts. The host or box was recreated without its"
        " key, another one now has the address or the forwarded port, or someone intercepts the connection",
        "Do not continue before an administrator of the host has compared the fingerprints; workspace.url prints an"
        " SSH box's. The key is kept when the box is recreated, and changes after workspace.down and up, or after a"
        " reinstallation of its host. Then remove the old key (ssh-keygen -R '[127.0.0.1]:PORT'). Boxes of several"
        " hosts on one port each need a HostKeyAlias",
        "OpenSSH sshconnect.c; atmoz/sftp#215",
    ),
    FailureRule(
        "ssh-keys-refused",
        r"Authentication refused: bad ownership or modes for"
        r"|Incorrect ownership for \S*authorized_keys",
        "sshd does not trust a user's authorized_keys: the file or a parent directory belongs to another user or is"
        " writable by others, which is common for mounted files",
        "Set the owner of file and directories to the user or root, and remove others' write permission (chmod go-w)."
        " For an SSH box of Hostwright, add the keys to workspaces_users and provision",
        "OpenSSH auth.c; panubo/docker-sshd#5",
    ),
    FailureRule(
        "workspace-mount-denied",
        r"Permission denied: \S{1,200}\.ipynb|IPython parent '[^'\n]{1,200}' is not a writable location"
        r"|\[Errno 13\] Permission denied: '/(?:workspace|tf"
        r"|home/[^/'\n]{1,64}/(?:\.(?:local|jupyter|ipython)|work))\b",
        "the user in the container has no write permission in a mounted directory, which belongs to other IDs",
        "On the host, change the directory's owner to the IDs of the workspace's user (workspaces_users, or the"
        " host's account), or give their group write permission. Hostwright does this for /workspace only, and never"
        " for mounts",
        "jupyter/docker-stacks#114, #1003",
        weight="consequence",
    ),
    FailureRule(
        "workspace-processes",
        r"pthread_create failed for thread [0-9]{1,6} of [0-9]{1,6}: Resource temporarily unavailable"
        r"|can't start new thread|fork: (?:retry: )?Resource temporarily unavailable",
        "the container, or its user, has reached the limit of processes and threads",
        "End unneeded processes, let libraries start fewer threads (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS), or raise"
        " the workspace's limit (pids). Outside of workspaces, the limit is ulimit -u or a unit's TasksMax",
        "OpenBLAS blas_server.c; engineer-man/piston#662",
        weight="consequence",
    ),
)


JUPYTER_RULES = (
    FailureRule(
        "jupyter-origin",
        r"Blocking Cross Origin (?:WebSocket Attempt|API request)|Cross origin websockets not allowed",
        "Jupyter refuses a browser's connection, because the address in the browser (Origin) differs from the address"
        " that Jupyter received (Host): a proxy changed the name or removed the port",
        "Let each proxy forward the browser's Host with its port (nginx: proxy_set_header Host $http_host, as the"
        " role proxy does), and open the page by a name from proxy_names. Do not set allow_origin = '*': any page that"
        " a user opens could then control their Jupyter",
        "ComputeCanada/puppet-magic_castle#524; jupyter/jupyter#161",
    ),
    FailureRule(
        "jupyter-websocket",
        r"Can \"?Upgrade\"? only to \"?WebSocket\"?|WebSocket handshake: Unexpected response code: 40[04]",
        "a proxy between browser and Jupyter does not forward websockets, so that pages open, but kernels and"
        " terminals do not respond",
        "Let each proxy use HTTP/1.1 to the next one and forward Upgrade and Connection (the role proxy does)."
        " Another proxy in front of the host, such as a load balancer, needs the same. An SSH tunnel (workspace.url)"
        " bypasses all proxies",
        "nginx-proxy/nginx-proxy#412; jupyter/notebook#1311",
    ),
    FailureRule(
        "jupyter-cookie",
        r"'?_xsrf'? argument missing from POST|XSRF cookie does not match"
        r"|Clearing invalid/expired login cookie|Token stored in cookie may have expired"
        r"|(?:Notebook|Server|Lab)App\] Forbidden\s*$|Couldn't authenticate WebSocket connection",
        "the browser does not send a valid login for this Jupyter: its cookie has expired, belongs to another Jupyter"
        " at the same address, or is blocked. Or a program sends no token",
        "Open the address with ?token=… again (workspace.url --token) and reload the page. If that does not last,"
        " delete the cookies of this address. Programs must send the header Authorization: token …",
        "jupyter/notebook#2396, #3190; jupyterhub/jupyterhub#4604",
        weight="consequence",
    ),
    FailureRule(
        "jupyter-kernel-died",
        r"KernelRestarter: restart(?:ing kernel|\b[^\n]{0,40}failed)|\bkernel [0-9a-f][0-9a-f-]{3,40} restarted\b"
        r"|kernel(?: for [^\n]{1,200})? appears to have died|Kernel died before replying"
        r"|DeadKernelError: Kernel died",
        "a notebook's kernel ended: usually its work exceeded the workspace's memory, otherwise a library crashed",
        "Check for lack of memory: workspace.logs reports it below the log, and in the workspace, oom_kill in"
        " /sys/fs/cgroup/memory.events is not 0. In this case reduce the notebook's memory, or raise the workspace's"
        " limit (memory). Otherwise run the cell's code as a script, which shows the crash",
        "jupyter/help#418; jupyterlab/jupyterlab#4415",
        weight="consequence",
    ),
)


COMMANDS = ("sshd",)  #: command names that stay lowercase at the start of a sentence

FAILURES = (*JUPYTER_RULES, *SPACE_RULES)
