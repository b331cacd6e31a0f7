"""Failures that people meet in their containers: the browser's, the kernel's, the SSH box's, the limits'."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, ForPeople, Sign, Unread
from hostwright.resources import Probe
from hostwright.roles import sh_file
from hostwright.standard.roles.workspaces.states.facts import WORKSPACES_PROBE, WorkspaceFacts, read_workspaces

if TYPE_CHECKING:
    from hostwright.failures import AuditContext


#: nvidia-smi in each workspace that has GPUs
CARDS_INSIDE = Probe(sh_file(__file__, "cards.sh"), root=True)


def _workspaces(ctx: AuditContext) -> WorkspaceFacts:
    """What the host has of workspaces. Raises ``Unread`` where Docker does not answer."""
    ctx.require(WORKSPACES_PROBE)
    facts = read_workspaces(ctx.facts)
    if facts.docker:
        raise Unread(f"Docker is {facts.docker}")
    return facts


def lost_gpu(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi in a workspace that was given GPUs says "Unknown Error"."""
    for line in ctx.text(CARDS_INSIDE).splitlines():
        name, _, answer = line.partition(" ")
        if "Failed to initialize NVML: Unknown Error" in answer:
            yield f"workspace {name}: {answer}"


def out_of_memory(ctx: AuditContext) -> Iterator[str]:
    """Docker says of a workspace's container that the kernel ended a process in it for want of memory."""
    for held in _workspaces(ctx).containers:
        if held.killed:
            ended = "" if held.running else f", and it ended with status {held.code}"
            yield f"workspace {held.workspace} of {held.user}: a process was ended for want of memory{ended}"


SPACE_RULES = (
    FailureRule(
        "workspace-lost-gpu",
        "",
        "a running workspace has lost its GPUs, as containers do when the host's systemd reloads",
        "Restart it once its user agrees: docker restart workspace-NAME; where `invoke plan` shows missing links in"
        " /dev/char, provision with --roles container first, so that it does not happen again",
        "NVIDIA/nvidia-docker#1730; NVIDIA/nvidia-container-toolkit#48",
        sign=Sign("workspaces", lost_gpu, (CARDS_INSIDE,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "workspace-out-of-memory",
        "",
        "the work in a workspace took more memory than the workspace has, and the kernel ended a process of it",
        "Tell its user; give the workspace more (memory), or let the work take less at once. The note goes when the"
        " workspace is next started",
        "docker inspect, .State.OOMKilled; moby/moby#15621",
        sign=Sign("workspaces", out_of_memory, (WORKSPACES_PROBE,), grave=False),
    ),
    FailureRule(
        "workspace-port-taken",
        r"(?:starting userland proxy|failed to bind (?:host )?port)[^\n]*(?:address already in use|EADDRINUSE)"
        r"|Bind for \S+ failed: port is already allocated"
        r"|TensorBoard could not bind to port [0-9]{1,5}, it was already in use",
        "another program, or another container, has the port that this one is to have",
        "See which one it is (ss -ltnp on the host, docker ps); stop it, or give the workspace another port (port: …)"
        " and provision again; where only a docker-proxy without its container has it, restart Docker",
        "docker/for-linux#1278; nginx-proxy/nginx-proxy#839",
    ),
    FailureRule(
        "ssh-host-key-changed",
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key for \S+ has changed and you have requested strict checking",
        "the host key behind an address is another than this user's known_hosts has: the host or box was made anew"
        " without its key, another one has the address or the forwarded port now, or somebody is in between",
        "Do not go on before somebody who runs the host has compared the fingerprints: that of an SSH box is what"
        " workspace.url prints. It stays when the box is made anew, and is another after workspace.down and up, or when"
        " its host was installed again. Then remove the old one (ssh-keygen -R '[127.0.0.1]:PORT'); boxes of several"
        " hosts on one port each need a HostKeyAlias",
        "OpenSSH sshconnect.c; atmoz/sftp#215",
    ),
    FailureRule(
        "ssh-keys-refused",
        r"Authentication refused: bad ownership or modes for"
        r"|Incorrect ownership for \S*authorized_keys",
        "sshd does not trust a user's authorized_keys: the file, or a directory above it, belongs to somebody else or"
        " may be written by others, as a mounted one easily is",
        "Give file and directories to the user or to root, and let nobody else write there (chmod go-w); an SSH box of"
        " Hostwright has its keys from workspaces_users alone, so put them there and provision",
        "OpenSSH auth.c; panubo/docker-sshd#5",
    ),
    FailureRule(
        "workspace-mount-denied",
        r"Permission denied: \S{1,200}\.ipynb|IPython parent '[^'\n]{1,200}' is not a writable location"
        r"|\[Errno 13\] Permission denied: '/(?:workspace|tf"
        r"|home/[^/'\n]{1,64}/(?:\.(?:local|jupyter|ipython)|work))\b",
        "the user in the container may not write to a directory that was mounted into it: it belongs to other ids",
        "On the host, give the directory to the ids of the workspace's user (workspaces_users, or the host's account),"
        " or let their group write; Hostwright does so for /workspace, and leaves mounts as they are",
        "jupyter/docker-stacks#114, #1003",
        weight="consequence",
    ),
    FailureRule(
        "workspace-processes",
        r"pthread_create failed for thread [0-9]{1,6} of [0-9]{1,6}: Resource temporarily unavailable"
        r"|can't start new thread|fork: (?:retry: )?Resource temporarily unavailable",
        "the container, or its user, has as many processes and threads as it may have",
        "End what is not needed, let libraries start fewer threads (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS), or give the"
        " workspace more (pids); outside of workspaces it is ulimit -u or a unit's TasksMax",
        "OpenBLAS blas_server.c; engineer-man/piston#662",
        weight="consequence",
    ),
)


JUPYTER_RULES = (
    FailureRule(
        "jupyter-origin",
        r"Blocking Cross Origin (?:WebSocket Attempt|API request)|Cross origin websockets not allowed",
        "Jupyter refuses a browser's connection, because the address in the browser (Origin) is not the one that"
        " arrived at Jupyter (Host): a proxy in between changed the name or left out the port",
        "Let each proxy pass on the browser's Host with its port (nginx: proxy_set_header Host $http_host, as the role"
        " proxy does), and open the page by the name that proxy_names has; allow_origin = '*' is no cure, for then any"
        " page that somebody opens may drive their Jupyter",
        "ComputeCanada/puppet-magic_castle#524; jupyter/jupyter#161",
    ),
    FailureRule(
        "jupyter-websocket",
        r"Can \"?Upgrade\"? only to \"?WebSocket\"?|WebSocket handshake: Unexpected response code: 40[04]",
        "a proxy between browser and Jupyter does not pass on websockets, so that pages open, and no kernel and no"
        " terminal answers",
        "Let each proxy in between speak HTTP/1.1 to the next and pass on Upgrade and Connection (the role proxy"
        " does); another one in front of the host, a company's or a load balancer, needs the same; an SSH tunnel goes"
        " past all of them (workspace.url)",
        "nginx-proxy/nginx-proxy#412; jupyter/notebook#1311",
    ),
    FailureRule(
        "jupyter-cookie",
        r"'?_xsrf'? argument missing from POST|XSRF cookie does not match"
        r"|Clearing invalid/expired login cookie|Token stored in cookie may have expired"
        r"|(?:Notebook|Server|Lab)App\] Forbidden\s*$|Couldn't authenticate WebSocket connection",
        "the browser does not send a login that this Jupyter knows: its cookie has expired, is of another Jupyter under"
        " the same address, or is blocked; or a program sends no token",
        "Open the address with ?token=… again (workspace.url --token) and reload the page; where that does not last,"
        " delete the cookies of this address; programs send the header Authorization: token …",
        "jupyter/notebook#2396, #3190; jupyterhub/jupyterhub#4604",
        weight="consequence",
    ),
    FailureRule(
        "jupyter-kernel-died",
        r"KernelRestarter: restart(?:ing kernel|\b[^\n]{0,40}failed)|\bkernel [0-9a-f][0-9a-f-]{3,40} restarted\b"
        r"|kernel(?: for [^\n]{1,200})? appears to have died|Kernel died before replying"
        r"|DeadKernelError: Kernel died",
        "a notebook's kernel ended: mostly its work took more memory than the workspace has, else a library crashed",
        "See whether it was memory (workspace.logs says so below the log; in the workspace itself, oom_kill in"
        " /sys/fs/cgroup/memory.events is not 0); then let the notebook take less, or give the workspace more (memory);"
        " where it was not, run the cell's code as a script, which shows the crash",
        "jupyter/help#418; jupyterlab/jupyterlab#4415",
        weight="consequence",
    ),
)


COMMANDS = ("sshd",)  #: the first words of sentences

FAILURES = (*JUPYTER_RULES, *SPACE_RULES)
