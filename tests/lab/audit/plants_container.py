"""Faults of Docker and the container toolkit."""

from __future__ import annotations

from lab.vendor import toolkit
from tests.lab.audit.planting import NO_LINKS, plant

JSON = "/etc/docker/daemon.json"
LISTS = "/etc/apt/sources.list.d"
VENDOR = "/opt/hostwright-lab/apt/nvidia-container-toolkit"
LINKS_UNIT = "hostwright-nvidia-dev-char.service"
LIBRARY = f"/usr/lib/x86_64-linux-gnu/libnvidia-container.so.{toolkit.VERSION}"
TOOLKIT = "packages nvidia-container-toolkit"
RESTART = "restart of docker.service"

#: ``edit CODE`` changes ``found``, the content of daemon.json.
EDIT = f"""
edit() {{ python3 -c "import json
found = json.load(open('{JSON}'))
$1
json.dump(found, open('{JSON}', 'w'))"; }}
"""
START = "systemctl reset-failed docker.service docker.socket; systemctl start docker"
ADD_HOSTS = f'{EDIT}\nedit \'found["hosts"] = ["fd://"]\'\n'
TAKE_HOSTS = f"{EDIT}\nedit 'del found[\"hosts\"]'\n"
#: Starts Docker until systemd gives up.
FAILS = "systemctl restart docker || true; until systemctl is-failed --quiet docker; do sleep 0.1; done\n"
#: docker.io's script fails with the status of the start, as Ubuntu's and docker-ce's do.
HALF_CONFIGURED = """
cd /var/lib/dpkg
sed -i '2i invoke-rc.d docker start || exit $?' info/docker.io.postinst
awk '/^Package:/ {p = $2} p == "docker.io" && /^Status:/ {$0 = "Status: install ok half-configured"} {print}' \\
    status >status.half && mv status.half status
"""

NEWER = " ".join(
    f"{name}={toolkit.NEWER}-1"
    for name in (
        "nvidia-container-toolkit", "nvidia-container-toolkit-base",
        "libnvidia-container-tools", "libnvidia-container1",
    )
)  # fmt: skip

#: Wraps the toolkit's program so that it loads a library of another driver.
WRAPPED = """
mkdir -p /opt/other; cd /usr/bin
printf '%s\\n' 'int nvmlInit_v2(void) { return 9; }' \
'const char *nvmlErrorString(int status) { return "Driver Not Loaded"; }' >/opt/other/nvml.c
gcc -shared -fPIC -o /opt/other/libnvidia-ml.so.1 /opt/other/nvml.c
mv nvidia-container-cli nvidia-container-cli.real
printf '%s\\n' '#!/bin/sh' 'LD_LIBRARY_PATH=/opt/other exec nvidia-container-cli.real "$@"' >nvidia-container-cli
chmod 755 nvidia-container-cli
"""

#: The loaded module is emulated, because a lab host's kernel has no NVIDIA driver.
OTHER_NUMBERS = """
printf '%s\\n' 'Character devices:' '195 nvidia' '509 nvidia-uvm' >/run/devices
mount --bind /run/devices /proc/devices
mkdir -p /etc/cdi
printf '%s\\n' 'cdiVersion: 0.5.0' 'kind: nvidia.com/gpu' 'containerEdits:' '  deviceNodes:' \\
'  - path: /dev/nvidia-uvm' '    major: 510' >/etc/cdi/nvidia.yaml
"""

#: An empty package with the name and version of Ubuntu 24.04's.
OLD_PODMAN = """
mkdir -p /run/podman/DEBIAN; cd /run
printf '%s\\n' 'Package: podman' 'Version: 4.9.3+ds1-1ubuntu0.2' 'Architecture: all' 'Maintainer: lab <lab@invalid>' \\
'Description: of the lab' >podman/DEBIAN/control
dpkg-deb --build podman podman.deb; dpkg --install podman.deb
"""

CONTAINER = (
    plant(
        "CDI specification of a former driver", "container",
        "mkdir -p /etc/cdi; printf '%s\\n' 'cdiVersion: 0.5.0' 'kind: nvidia.com/gpu' 'containerEdits:' '  mounts:' "
        "'  - containerPath: /usr/lib/x86_64-linux-gnu/libcuda.so.535.161.07' "
        "'    hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.535.161.07' >/etc/cdi/nvidia.yaml",
        rules="cdi-stale", cure="rm -r /etc/cdi", quick=True,
    ),
    plant(
        "config.toml that names another distribution's ldconfig", "container",
        "sed -i 's|^#*ldconfig = .*|ldconfig = \"@/sbin/ldconfig.real\"|' /etc/nvidia-container-runtime/config.toml",
        rules="toolkit-config",
        cure="sed -i 's|^ldconfig = .*|ldconfig = \"@/sbin/ldconfig\"|' /etc/nvidia-container-runtime/config.toml",
    ),
    plant(
        "container that could not start at the boot", "container",
        "mkdir /run/box; touch /run/box/x; tar -C /run/box -c . | docker import - planted;"
        " docker create --restart always --name planted --device /dev/planted planted /x; docker start planted || true",
        rules="container-not-started", cure="docker rm planted; docker rmi planted; rm -r /run/box",
    ),
    plant(
        "CDI specification with the numbers of an earlier boot", "container", OTHER_NUMBERS,
        rules="cdi-numbers device-files-missing", states=("device files of the driver",),  # of a lab host: null devices
        cure="umount /proc/devices; rm -r /etc/cdi", quick=True,
    ),
    plant(
        "podman that is too old for the CDI specification", "container", OLD_PODMAN,
        rules="cdi-unresolvable", cure="dpkg --purge podman", quick=True,
    ),
    plant(
        "CDI specification of another boot", "container", "rm /var/run/cdi/nvidia.yaml",
        states=("CDI specification",), quick=True,
    ),
    plant(
        "CDI specification not written at boot", "container",
        "rm /etc/systemd/system/multi-user.target.wants/nvidia-cdi-refresh.service",
        states=("CDI specification",),
    ),
    plant(
        "mode of the nvidia runtime changed", "container",
        "sed -i 's/^mode = .*/mode = \"auto\"/' /etc/nvidia-container-runtime/config.toml",
        states=("mode of the nvidia runtime",), quick=True,
    ),
    plant(
        "daemon.json broken", "container", f"echo '{{\"runtimes\": ' >{JSON}",
        rules="daemon-json", states=(f"file {JSON}", RESTART), quick=True,
    ),
    plant(
        "daemon.json broken and Docker restarted", "container", f"echo '{{\"runtimes\": ' >{JSON}\n{FAILS}",
        rules="daemon-json", states=(f"file {JSON}", "service docker.service", RESTART),
    ),
    plant(
        "Docker half configured, as its daemon.json is broken", "container",
        f"echo '{{\"runtimes\": ' >{JSON}\n{FAILS}\n{HALF_CONFIGURED}",
        rules="daemon-json dpkg-interrupted",
        states=("dpkg", "packages docker.io", f"file {JSON}", "service docker.service", RESTART),
    ),
    plant(
        "hosts in daemon.json", "container", ADD_HOSTS,
        rules="daemon-json-twice", states=(RESTART,), cure=f"{TAKE_HOSTS}systemctl restart docker", quick=True,
    ),
    plant(
        "hosts in daemon.json and Docker restarted", "container", ADD_HOSTS + FAILS,
        rules="daemon-json-twice", states=("service docker.service",), cure=TAKE_HOSTS + START,
    ),
    plant(
        "nvidia runtime taken out", "container", f"echo '{{}}' >{JSON}; systemctl restart docker",
        rules="runtime-unknown", states=(f"file {JSON}", RESTART), quick=True,
    ),
    plant(
        "nvidia runtime put in and Docker not restarted", "container",
        f"cp {JSON} /run/whole; echo '{{}}' >{JSON}; systemctl restart docker; cp /run/whole {JSON}",
        rules="runtime-unknown", states=(RESTART,), cure="systemctl restart docker",
    ),
    plant(
        "daemon.json changed and Docker not restarted", "container", f"{EDIT}\nedit 'found[\"live-restore\"] = True'",
        rules="docker-restart-due", states=(RESTART,), cure="systemctl restart docker", quick=True,
    ),
    plant(
        "root's Docker in another context", "container",
        "mkdir -p /root/.docker; echo '{\"currentContext\": \"desktop-linux\"}' >/root/.docker/config.json",
        rules="docker-context", cure="rm /root/.docker/config.json", quick=True,
    ),
    plant(
        "devices of the GPUs kept from containers", "container",
        "sed -i 's/^\\[nvidia-container-cli\\]$/&\\nno-cgroups = true/' /etc/nvidia-container-runtime/config.toml",
        rules="toolkit-no-cgroups", cure="sed -i /no-cgroups/d /etc/nvidia-container-runtime/config.toml", quick=True,
    ),
    plant(
        "Docker stopped", "container", "systemctl disable --now docker.service docker.socket",
        rules="docker-stopped", states=("service docker.service",), quick=True,
    ),
    plant(
        "Docker masked", "container", "systemctl mask --now docker.service",
        rules="docker-masked", states=("service docker.service",), cure="systemctl unmask docker.service", quick=True,
    ),
    plant(
        "Docker's socket masked", "container", "systemctl mask --now docker.socket",
        rules="docker-masked", states=("service docker.service",), cure="systemctl unmask docker.socket",
    ),
    plant(
        "copy of Docker's unit that wants a file that is not there", "container",
        "sed 's,^.Service.$,&\\nEnvironmentFile=/etc/sysconfig/docker,' /lib/systemd/system/docker.service"
        f" >/etc/systemd/system/docker.service; systemctl daemon-reload\n{FAILS}",
        rules="unit-names-missing-file", states=("service docker.service",),
        cure=f"rm /etc/systemd/system/docker.service; systemctl daemon-reload; {START}",
    ),
    plant(
        "group of Docker's socket removed", "container", "systemctl stop docker docker.socket; groupdel docker",
        rules="docker-group-gone", states=("service docker.service",), cure=f"groupadd --system docker; {START}",
    ),
    plant(
        "runtime of others whose program is gone", "container",
        f"{EDIT}\nedit 'found[\"runtimes\"][\"planted\"] = {{\"path\": \"/opt/planted/runsc\"}}'\n",
        rules="other-runtime-gone", states=(), cure=f"{EDIT}\nedit 'del found[\"runtimes\"][\"planted\"]'\n",
    ),
    plant(
        "Docker removed", "container", "DEBIAN_FRONTEND=noninteractive apt-get purge -y docker.io",
        rules="docker-gone", states=("packages docker.io", "service docker.service", RESTART),
    ),
    plant(
        "option that dockerd does not know", "container",
        f"echo 'DOCKER_OPTS=\"--no-such-option\"' >>/etc/default/docker\n{FAILS}",
        rules="start-limit", states=("service docker.service",),
        cure=f"sed -i /no-such-option/d /etc/default/docker; {START}", quick=True,
    ),
    plant(
        "containerd's settings broken", "container",
        "mkdir -p /etc/containerd; echo 'version = [' >/etc/containerd/config.toml; systemctl restart containerd || :",
        rules="container-unit-failed", cure="rm /etc/containerd/config.toml; systemctl restart containerd", quick=True,
    ),
    plant(
        "firewall flushed", "container",
        "for table in filter nat; do iptables -t $table -F; iptables -t $table -X; done",
        rules="docker-iptables", states=("Docker's firewall rules",),
    ),
    plant(
        "program of Docker's deleted", "container", "rm /usr/sbin/docker-proxy",
        states=("files of docker.io", RESTART),
    ),
    plant("toolkit package removed", "container", "dpkg --purge --force-depends nvidia-container-toolkit",
          rules="no-gpu-in-docker", states=(TOOLKIT, RESTART)),
    plant("runtime of the toolkit's deleted", "container", "rm /usr/bin/nvidia-container-runtime",
          rules="runtime-gone", states=("files of nvidia-container-toolkit-base", RESTART)),
    plant("hook deleted", "container", "rm /usr/bin/nvidia-container-runtime-hook",
          rules="no-gpu-in-docker", states=("files of nvidia-container-toolkit", RESTART)),
    plant(
        "toolkit upgraded", "container",
        f"apt-get update; apt-get install -y --allow-change-held-packages {NEWER}",
        rules="toolkit-moved", states=(TOOLKIT, RESTART),
    ),
    plant(
        "one package of the toolkit upgraded", "container",
        f"dpkg --install --force-depends {VENDOR}/libnvidia-container1_{toolkit.NEWER}-1_amd64.deb",
        rules="toolkit-moved", states=(TOOLKIT, RESTART),
    ),
    plant(
        "toolkit may be moved", "container", "apt-mark unhold nvidia-container-toolkit libnvidia-container1",
        rules="toolkit-not-held", states=(TOOLKIT,), quick=True,
    ),
    plant(
        "list of the retired nvidia-docker repository", "container",
        f"echo 'deb https://nvidia.github.io/nvidia-docker/ubuntu20.04/amd64 /' >{LISTS}/nvidia-docker.list",
        rules="toolkit-former-names", states=("apt sources nvidia.github.io/nvidia-docker",), quick=True,
    ),
    plant(
        "package of the former name", "container", f"dpkg --install {VENDOR}/nvidia-docker2_2.14.0-1_all.deb",
        rules="toolkit-former-names", states=("packages nvidia-docker2",),
    ),
    plant(
        "list of the toolkit's repository deleted", "container", f"rm {LISTS}/nvidia-container-toolkit.list",
        states=(f"file {LISTS}/nvidia-container-toolkit.list",),
    ),
    plant(
        "library of the toolkit damaged", "container", f"echo damaged >{LIBRARY}", rules="toolkit-fails",
        cure=f"apt-get install -y --reinstall --allow-change-held-packages libnvidia-container1={toolkit.PINNED}",
    ),
    plant(
        "toolkit led past the driver", "container", WRAPPED, rules="container-without-driver",
        cure="mv /usr/bin/nvidia-container-cli.real /usr/bin/nvidia-container-cli",
    ),
    plant(
        "links for containers gone", "container", "find /dev/char -lname '*nvidia*' -delete",
        rules=NO_LINKS, states=("links in /dev/char",), quick=True,
    ),
    plant(
        "unit of the links failed at boot", "container",
        "cd /usr/bin; mv nvidia-ctk /run/away; systemctl start hostwright-nvidia-dev-char || mv /run/away nvidia-ctk",
        rules="dev-char-unit-failed", cure="systemctl restart hostwright-nvidia-dev-char", quick=True,
    ),
    plant(
        "unit of the links deleted", "container", f"rm /etc/systemd/system/{LINKS_UNIT}",
        states=(f"file /etc/systemd/system/{LINKS_UNIT}",),
    ),
)  # fmt: skip
