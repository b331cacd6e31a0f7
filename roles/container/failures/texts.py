"""Messages of dockerd, of Docker's client and of the container toolkit, each with its cause."""

from __future__ import annotations

from hostwright.failures import FailureRule, Sign, Variant
from hostwright.standard.roles.container.engine import FIREWALL
from hostwright.standard.roles.container.failures.docker import flushed

DAEMON_RULES = (
    FailureRule(
        "docker-bridge",
        r"docker0 has no IPv4 address|creating default .{0,3}bridge.{0,3} network: (?:package not installed"
        r"|operation not supported|cannot create network"
        r"|failed to (?:setup ip tables, cannot|allocate gateway))",
        "Docker cannot make or take its bridge: an old docker0 is in the way, or the kernel has no module for it",
        "Stop Docker, remove the interface (ip link delete docker0) and /var/lib/docker/network, then start it; where"
        " modprobe bridge finds no module, the running kernel's package is gone or is not whole: install"
        " linux-image-$(uname -r) (Ubuntu: and linux-modules-extra-$(uname -r)) again; reboot into another kernel only"
        " once that has the NVIDIA module",
        "moby/moby#21175",
        unless="same bridge name",
    ),
    FailureRule(
        "docker-apparmor",
        r"[Aa]pp[Aa]rmor(?: failed to apply)? profile[^\n]*|docker-default profile could not be loaded[^\n]*"
        r"|AppArmor parser error for [^\n]*|apparmor_parser[^\n]*(?:not found|failed)",
        "AppArmor is on in the kernel, and the profile docker-default is not loaded: its tools are missing, an upgrade"
        " of AppArmor took it out while Docker ran, or AppArmor refuses a file of its own",
        "Install the tools where apparmor_parser is missing (apt-get install apparmor); where the line names a file and"
        " a syntax error, restore that package's files (dpkg -V apparmor). Then restart Docker, which loads the"
        " profile: it ends containers without live-restore, so wait until none works",
        "moby profiles/apparmor; containerd/containerd#8123; moby/moby#29097, #36952",
        transient=False,
        unless=r"apparmor=\"DENIED|profile=\"",
    ),
    FailureRule(
        "iptables-missing",
        r"[Ii]ptables not found|iptables\W{0,4} executable file not found|[Ff]ailed to find iptables",
        "iptables, which Docker needs, is not installed, or not on its PATH",
        "Install it (apt-get install iptables), then start Docker",
        "moby libnetwork/iptables; dyrnq/install-docker#10",
        transient=False,
    ),
    FailureRule(
        "docker-iptables",
        r"iptables failed: |iptables: No chain/target/match by that name|[Ff]ailed to create NAT chain"
        r"|[Ff]ailed to program (?:NAT|FILTER) chain|Failed to inject docker in|can't initialize iptables table"
        r"|Extension addrtype revision [0-9]{1,3} not supported"
        r"|[Ff]ailed to (?:create|setup|set up) [^\n]*DOCKER-ISOLATION|[Ff]ailed to initialize nft"
        r"|failed to (?:add|append|insert|enable|restore|set ?up) [^\n]*(?:iptables|ip tables|nftables"
        r"|chain DOCKER)"
        r"|controller: [^\n]*(?:iptables|nf_tables|NAT chain)|Module ip_tables not found|iptables(?:-nft"
        r"|-legacy)? v[0-9.]{3,8}[^\n]*(?:can't initialize|Fatal)"
        r"|unable to (?:add|insert|append) [^\n]*\bchain"
        r"|DOCKER-(?:ISOLATION|USER|FORWARD)[^\n]*(?:failed|iptables:)",
        "Docker cannot program the firewall: the kernel's modules for NAT are missing, iptables is of the other kind"
        " (legacy or nft), or somebody flushed Docker's chains",
        "Compare update-alternatives --display iptables with the other rules of the host (iptables-nft,"
        " iptables-legacy), and restart Docker, which makes its chains anew (`invoke provision` does, once no container"
        " runs that a restart would end, or with --force). Where modprobe finds no module, the running kernel's package"
        " is gone or is not whole: install linux-image-$(uname -r) (Ubuntu: and linux-modules-extra-$(uname -r)) again;"
        " reboot into another kernel only once that has the NVIDIA module",
        "docker/for-linux#1128, moby/moby#12294, #32349",
        sign=Sign("container", flushed, (FIREWALL,), provision=True),
    ),
    FailureRule(
        "docker-storage-driver",
        r"error initializing graphdriver|not found as a supported filesystem on this host"
        r"|prior storage driver \S+ failed|contains several valid graphdrivers"
        r"|rename /var/lib/docker/\S+ [^\n]+invalid cross-device link"
        r"|graphdriver[^\n]+(?:driver not supported|no such driver|backing file system is unsupported)"
        r"|overlay2?: the backing \S{1,20} filesystem is formatted without d_type|does not support d_type"
        r"|configured driver \S+ not available|prerequisites for driver not satisfied"
        r"|unknown filesystem type 'overlay'"
        r"|overlayfs: [^\n]*not supported",
        "Docker's storage driver does not work with this kernel or with the filesystem of its data directory",
        "Read the line before it: load the module (modprobe overlay), put data-root on ext4 or on xfs with ftype=1, and"
        " not on an overlay; a storage-driver in daemon.json that is no longer there must be taken out",
        "moby/moby#34091, RPi-Distro/raspi-config#129",
    ),
    FailureRule(
        "docker-address-pool",
        r"could not find an available, non-overlapping IPv[46] address pool"
        r"|all predefined address pools have been fully subnetted|Pool overlaps with other one on this address space"
        r"|networks have overlapping IPv4|could not find an available predefined network"
        r"|no available (?:IPv4 network|(?:IPv4 )?address pool)",
        "Docker finds no free address range for a network: a VPN's or another route, or its many networks, cover all",
        "Look at ip route and docker network ls; remove networks that nobody uses (docker network prune), or name free"
        " ranges in daemon.json (default-address-pools, bip) and provision again",
        "docker/cli#2039",
    ),
    FailureRule(
        "docker-socket-permission",
        r"permission denied while trying to connect to the [Dd]ocker|docker\.sock: connect: permission denied"
        r"|docker\.sock[^\n]*permission denied|fetching server API version: [^\n]*PermissionError",
        "the user may not use Docker's socket: they are not in the group docker, or have not logged in again since",
        "Add the user to the group docker (who is in it is root) and log in again",
        "NVIDIA/nvidia-docker#1138",
    ),
    FailureRule(
        "docker-state-damaged",
        r"/bbolt\.\S*\(\.\.\.\)|panic: (?:freepages|page [0-9]+ already freed|invalid page type)"
        r"|parent snapshot \S+ does not exist|(?:Error starting"
        r"|[Ff]ailed to start) daemon: [^\n]*(?:layer does not exist|invalid checksum digest"
        r"|local-kv\.db|invalid database|unexpected end of JSON|file integrity checksum failed"
        r"|structure needs cleaning)"
        r"|/var/lib/(?:docker|containerd)/[^\n]*(?:unexpected end of JSON|invalid database"
        r"|file integrity checksum failed)"
        r"|readlink /var/lib/docker/[^\n]*invalid argument"
        r"|rename /var/lib/docker/image[^\n]*(?:directory not empty|file exists)"
        r"|could not verify layer data for|networks have same bridge name"
        r"|/docker/libcontainerd/containerd/[^\n]+/process\.json:\s",
        "Docker's own records in /var/lib/docker are damaged or do not fit each other, as after a power failure, a full"
        " disk or a change of its version",
        "Keep volumes elsewhere first; remove the one file that the message names (local-kv.db and container records"
        " are made anew), else move /var/lib/docker aside, start Docker, and pull the images again",
        "moby/moby#18984",
    ),
    FailureRule(
        "docker-runs-twice",
        r"opening volume store metadata database: timeout|pid file found, ensure docker is not running"
        r"|process with PID [0-9]{1,9} is still running|unable to lock [^\n]*docker"
        r"|ensure docker is not running"
        r"|docker\.sock: bind: address already in use"
        r"|waiting for response from boltdb open",
        "another dockerd runs already and holds Docker's data directory, or one that was killed left its pid file",
        "Look for it (pgrep -a dockerd, also the snap's and a rootless one) and end it; where none runs, remove"
        " /var/run/docker.pid, then start Docker",
        "moby pkg/pidfile; docker/for-linux#162",
    ),
    FailureRule(
        "containerd-config-invalid",
        r"invalid plugin config: |containerd: failed to load TOML|failed to load TOML(?: from)?[^\n]*containerd",
        "/etc/containerd/config.toml is not valid, or names a runtime as the default that it does not define, as after"
        " an edit by hand or by a tool that does not know its version",
        "Correct what the message names (containerd config dump shows what it reads), or write it anew (containerd"
        " config default, then nvidia-ctk runtime configure --runtime=containerd), and restart containerd",
        "containerd plugins/cri/config; NVIDIA/nvidia-container-toolkit#433",
    ),
    FailureRule(
        "kubelet-cgroup-driver",
        r"kubelet cgroup driver: \S+ is different from docker cgroup driver",
        "the kubelet and Docker use different cgroup drivers (cgroupfs, systemd), and the kubelet then does not start",
        "Give both the same, with systemd as init that one (native.cgroupdriver=systemd in daemon.json's exec-opts,"
        " cgroupDriver in the kubelet's configuration), and restart both",
        "Kubernetes pkg/kubelet/dockershim; kubernetes/minikube#2381",
    ),
    FailureRule(
        "containerd-not-running",
        r"[Ff]ailed to (?:start|dial) [\"\\]{0,3}\S*containerd|timeout waiting for containerd to start"
        r"|exec: [\"\\]{0,3}containerd[\"\\]{0,3}: executable file not found"
        r"|containerd\.service: (?:[Cc]ontrol|Main) process exited, code=(?:exited|killed|dumped)"
        r"|containerd did not exit successfully|dial unix \S*containerd\.sock: connect: (?:connection refused"
        r"|no such file)",
        "containerd, which Docker runs its containers with, does not start or is not installed",
        "Read its journal (journalctl -u containerd) and its configuration (/etc/containerd/config.toml); install"
        " containerd.io of the release that this Docker asks for, start it, then Docker",
        "moby libcontainerd/supervisor; docker-library/docker#250",
        weight="consequence",
    ),
)

HOOK_RULES = (
    FailureRule(
        "registry-rate-limit",
        r"toomanyrequests: |\bpull rate limit|rate limit exceeded: pull",
        "the image registry's limit on pulls is reached, which without a login counts all hosts of one address"
        " together",
        "Log in (docker login) with an account that has a higher limit, pull through a mirror of your own"
        " (registry-mirrors in daemon.json), or wait until the limit's hours are over",
        "Docker Hub's documentation, usage and limits",
    ),
    FailureRule(
        "cgroup-not-mounted",
        r"mountpoint for (?:devices|cgroup) not found|cgroup mountpoint does not exist|[Dd]evices cgroup isn't mounted"
        r"|no cgroup mount found in mountinfo|cgroups: cannot find(?: cgroup)? mount|cgroup[^\n]{0,39} is not mounted"
        r"|failed to mount cgroup: cgroup1 not found",
        "the kernel's control groups, or the one for devices, are not mounted as Docker expects them: Docker is older"
        " than cgroup v2, or runs where nobody mounted them (a chroot, a container, a minimal system)",
        "Where systemd runs (/sys/fs/cgroup/cgroup.controllers tells v2), bring Docker and its runtime up to date; else"
        " mount them (cgroupfs-mount), and start Docker on the host and not in a chroot",
        "opencontainers/runc libcontainer/cgroups; moby/moby#38749",
    ),
    FailureRule(
        "driver-files-mounted",
        r"(?:unable to|cannot|could not) [^\n]*'?\.?/usr/[^\n]*(?:nvidia|libcuda|libnv)[^\n]*: "
        r"(?:Invalid cross-device link|Device or resource busy)",
        "a container's own packages are to replace files of the driver that the container toolkit has mounted into it"
        " from the host",
        "Install no driver packages (libcuda1, libnvidia-*, nvidia-utils) in a container; where the image needs them,"
        " install them while it is built without GPUs; keep apt from them (apt-mark hold)",
        "NVIDIA/nvidia-docker#1551",
    ),
    FailureRule(
        "container-gpu-unknown",
        r"device error: [^\n]*unknown device|nvidia-container-cli[.a-z]{0,8}: device error: "
        r"|unknown device id: [0-9]",
        "the container asks for {the GPU DEVICE|a GPU}, by number or UUID, that the host does not have",
        "Compare nvidia-smi -L with --gpus, device_ids or NVIDIA_VISIBLE_DEVICES of the container; a UUID changes with"
        " the card, and MIG devices when they are made anew",
        "NVIDIA/libnvidia-container src/cli/common.c",
        names=(r"(?:device error: |unknown device id: )(?P<device>[\w-]{1,60})",),
    ),
    FailureRule(
        "image-needs-newer-driver",
        r"unsatisfied condition: (?:cuda|driver|brand|arch)|requirement error: unsatisfied"
        r"|use an earlier cuda container",
        "the image needs {CONDITION|a newer CUDA}, which the host's driver does not support",
        "Use an image for the CUDA that nvidia-smi names, or a stack with a newer driver (CUDA 12.4 needs R550, 12.8"
        " R570, 13.0 R580; cards of data centres run a newer one of the same major number from R525 on);"
        " NVIDIA_DISABLE_REQUIRE=1 only hides it, and a toolkit on the host does not help",
        "NVIDIA/nvidia-docker#1442",
        names=(r"unsatisfied condition: (?P<condition>[\w<>=. ]{4,40}?)(?:,|\\|:|\"|$)",),
    ),
    FailureRule(
        "toolkit-cgroup-v2",
        r"cgroup subsystem devices not found"
        r"|failed to get device cgroup mount path",
        "the container toolkit is older than 1.8 and looks for cgroup v1's devices, which this host does not have",
        "Provision again: the container role installs a newer toolkit; elsewhere upgrade libnvidia-container1 and"
        " nvidia-container-toolkit",
        "NVIDIA/nvidia-docker#1447, NVIDIA/libnvidia-container#111",
    ),
    FailureRule(
        "cgroup-device-filter",
        r"failed to add device rules|existing device filters attached to the cgroup|bpf_prog_query\(BPF_CGROUP_DEVICE\)"
        r"|devices\.allow: (?:permission denied"
        r"|[Oo]peration not permitted)",
        "the container toolkit may not change the container's device filter: Docker is rootless, or the cgroup belongs"
        " to another (a job of Slurm)",
        "Where containers run without root or within a job, set no-cgroups = true in"
        " /etc/nvidia-container-runtime/config.toml and let the job's own limits choose the GPUs; else start Docker as"
        " root",
        "NVIDIA/nvidia-container-toolkit#678, NVIDIA/libnvidia-container#313",
    ),
    FailureRule(
        "image-missing",
        r"manifest (?:unknown|for \S+ not found)|Tag \S+ not found in repository|reading manifest \S+ in [^\n]*unknown",
        "the registry has no image {IMAGE|of this name and tag}: the name is wrong, or its publisher removed the tag"
        " (nvidia/cuda has no tag latest, and old tags are deleted)",
        "Look the tags up where the image is published (for nvidia/cuda at hub.docker.com/r/nvidia/cuda/tags), name one"
        " that is there, and keep a copy of what you need in a registry of your own",
        "moby distribution/errors.go; NVIDIA/nvidia-docker#1454, #1768",
        names=(r"manifest for (?P<image>\S{3,200}) not found",),
    ),
    FailureRule(
        "docker-too-old-for-image",
        r"Error response from daemon: missing signature key|mediaType in manifest should be [^\n]*not [^\n]*oci"
        r"|unsupported manifest media type|no supported schema versions",
        "the Docker on this host is older than the form in which the registry gives out this image",
        "Upgrade Docker to the stack's version (provision again), or pull an older tag of the image",
        "moby/moby distribution/pull_v2.go; docker/for-linux#1260",
    ),
    FailureRule(
        "docker-older-than-glibc",
        r"pthread_create failed for thread [0-9]{1,6} of [0-9]{1,6}: Operation not permitted",
        "the image's C library (glibc 2.34, as of Ubuntu 22.04) starts threads in a way (clone3) that this Docker is"
        " too old to know, and refuses",
        "Take an image of an older system (Ubuntu 20.04, Debian 11), or upgrade Docker to 20.10.10 or later, with the"
        " runc and libseccomp of that time",
        "moby/moby#42680; DDMAL/Rodan#1032",
    ),
    FailureRule(
        "container-of-before",
        r"nvidia-container-cli[.a-z]{0,8}:? mount error[^\n]*/proc/driver/nvidia[^\n]*no such file",
        "the driver was exchanged or loaded anew, and the container, or Docker, still refers to what"
        " /proc/driver/nvidia had before",
        "Restart Docker once no container works (without live-restore a restart ends them), then docker start the"
        " container. Where that is not enough, make it anew (docker compose up --force-recreate; docker rm, then run):"
        " what was written inside it, and not on a volume, is lost with it",
        "NVIDIA/nvidia-container-toolkit#169",
    ),
    FailureRule(
        "container-mount",
        r"nvidia-container-cli[.a-z]{0,8}:? mount error|createContainer hook[^\n]*failed to create (?:sym)?link [^\n]*",
        "the container toolkit cannot put the driver's files into the container{, at PLACE|}: one of its own is in"
        " their place, or its filesystem refuses them",
        "Take {PLACE|the path in the message} out of the image (images saved from a running container hold"
        " copies of the driver's), or mount that directory in another way",
        "NVIDIA/nvidia-docker#1690",
        names=(
            r"mount error[^\n]*/merged(?P<place>/[^\s:\\\"]{1,300})",
            r"mount error[^\n]* failed: (?P<place>/[^\s:\\\"]{1,300})",
            r"failed to create link \[\S{1,200} (?P<place>/[^\s\]]{1,300})\]",
        ),
        variants=(
            Variant(
                r"mount error[^\n]*stat failed: /(?:dev|proc|run|usr|lib)",
                "the container toolkit is to give PLACE of the host to the container, and that is not there",
                "Bring it back on the host (nvidia-modprobe -u -c 0 for device files; a file of the driver's: provision"
                " the driver role), then start the container again",
            ),
        ),
        unless="mount error: stat failed: /[A-Z]",
        weight="consequence",
    ),
    FailureRule(
        "container-command-missing",
        r"(?:container process|container process caused)[^\n]{0,40}: exec: [^\n]*: (?:permission denied"
        r"|executable file not found|no such file or directory)"
        r"|container process caused[: \"\\]{1,9}exec: [^\n]*(?:permission denied|executable file not found"
        r"|no such file)",
        "{PROGRAM, |}the command or entry point of the container is not in its image, or may not be executed: Docker"
        " and the driver are not to blame",
        "Look at what the message names (docker run --entrypoint ls IMAGE -l PATH): correct the command or the image"
        " (chmod +x, line ends of Windows after #!); nvidia-smi is there only with --gpus all",
        "opencontainers/runc libcontainer/standard_init_linux.go",
        names=(r"exec: [\"'\\]{1,8}(?P<program>[^\s\"'\\]{1,200})[\"'\\]{1,8}: ",),
        weight="consequence",
        unless=r"nvidia-container|hook",
    ),
    FailureRule(
        "container-persistenced-socket",
        r"open \S{0,20}/run/nvidia-persistenced/socket: no such file"
        r"|stat failed: /run/nvidia-persistenced/socket: no such",
        "nvidia-persistenced does not run on the host, whose socket the container toolkit mounts into each container",
        "Start it on the host (systemctl restart nvidia-persistenced) and read its journal (journalctl -u"
        " nvidia-persistenced): after an upgrade of the driver it cannot start before the new module is loaded, which a"
        " reboot does. A CDI file names the socket too: write it again (nvidia-ctk cdi generate) where the daemon is"
        " meant to be off",
        "crumbvms#395; NVIDIA/libnvidia-container, nvc_info.c",
    ),
    FailureRule(
        "container-driver-error",
        r"initialization error: driver error|driver rpc error"
        r"|(?:initialization|detection) error: (?:cuda|nvml) error",
        "the container toolkit gets no answer from the driver: its module is not loaded, does not work, or takes too"
        " long to start the GPUs",
        "Run nvidia-smi on the host and fix what it says; where it works and is slow, start nvidia-persistenced",
        "opencontainers/runc#2102",
        weight="consequence",
    ),
    FailureRule(
        "container-without-gpu",
        r"The NVIDIA Driver was not detected\.\s{1,20}GPU functionality will not be available"
        r"|to start this container with GPU support",
        "the container was started without GPUs, so that it sees no driver",
        "Start it with --gpus all (docker compose: a device reservation with the capability gpu); where it was, run"
        " nvidia-smi on the host",
        "NVIDIA's container images, entrypoint",
        weight="consequence",
    ),
)
