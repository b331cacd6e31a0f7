"""Messages of Jupyter, of the browser in front of it, and of proxies in between."""

from __future__ import annotations

from hostwright.failures import FailureRule

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
