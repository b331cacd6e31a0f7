"""Error messages of dockerd, Docker's client and the container toolkit, with their causes."""

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
        "Docker cannot create or reuse its bridge: an old docker0 exists, or the kernel lacks the bridge module",
        "Stop Docker, remove the interface (ip link delete docker0) and /var/lib/docker/network, then start Docker."
        " If modprobe bridge finds no module, the running kernel's package is missing or incomplete: reinstall"
        " linux-image-$(uname -r) (Ubuntu: and linux-modules-extra-$(uname -r)). Reboot into another kernel only if"
        " that has the NVIDIA module",
        "moby/moby#21175",
        unless="same bridge name",
    ),
    FailureRule(
        "docker-apparmor",
        r"[Aa]pp[Aa]rmor(?: failed to apply)? profile[^\n]*|docker-default profile could not be loaded[^\n]*"
        r"|AppArmor parser error for [^\n]*|apparmor_parser[^\n]*(?:not found|failed)",
        "AppArmor is enabled in the kernel, but the profile docker-default is not loaded: its tools are missing, an"
        " upgrade of AppArmor unloaded it while Docker ran, or AppArmor rejects one of its own files",
        "If apparmor_parser is missing, run apt-get install apparmor. If the line names a file and a syntax error,"
        " restore that package's files (dpkg -V apparmor). Then restart Docker, which loads the profile. Without"
        " live-restore this ends containers, so wait until none works",
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
        "Docker cannot program the firewall: the kernel's NAT modules are missing, iptables is of the other variant"
        " (legacy or nft), or Docker's chains were flushed",
        "Compare update-alternatives --display iptables with the host's other rules (iptables-nft, iptables-legacy),"
        " and restart Docker, which recreates its chains. `invoke provision` restarts it when that ends no container,"
        " or with --force. If modprobe finds no module, the running kernel's package is missing or incomplete:"
        " reinstall linux-image-$(uname -r) (Ubuntu: and linux-modules-extra-$(uname -r)). Reboot into another kernel"
        " only if that has the NVIDIA module",
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
        "Docker's storage driver does not work with this kernel or with the data directory's filesystem",
        "Read the line before the message. Load the module (modprobe overlay), put data-root on ext4 or on xfs with"
        " ftype=1, not on an overlay, and remove a storage-driver that no longer exists from daemon.json",
        "moby/moby#34091, RPi-Distro/raspi-config#129",
    ),
    FailureRule(
        "docker-address-pool",
        r"could not find an available, non-overlapping IPv[46] address pool"
        r"|all predefined address pools have been fully subnetted|Pool overlaps with other one on this address space"
        r"|networks have overlapping IPv4|could not find an available predefined network"
        r"|no available (?:IPv4 network|(?:IPv4 )?address pool)",
        "Docker finds no free address range for a network: routes (such as a VPN's) or networks cover all of them",
        "Check ip route and docker network ls. Remove unused networks (docker network prune), or set free ranges in"
        " daemon.json (default-address-pools, bip) and provision again",
        "docker/cli#2039",
    ),
    FailureRule(
        "docker-socket-permission",
        r"permission denied while trying to connect to the [Dd]ocker|docker\.sock: connect: permission denied"
        r"|docker\.sock[^\n]*permission denied|fetching server API version: [^\n]*PermissionError",
        "the user cannot use Docker's socket: they are not in the group docker, or have not logged in again since",
        "Add the user to the group docker, whose members can become root, and log in again",
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
        "Docker's records in /var/lib/docker are damaged or inconsistent, as after a power failure, a full disk or a"
        " change of Docker's version",
        "Back up the volumes first. Remove the file in the message (Docker recreates local-kv.db and container"
        " records); otherwise move /var/lib/docker aside, start Docker, and pull the images again",
        "moby/moby#18984",
    ),
    FailureRule(
        "docker-runs-twice",
        r"opening volume store metadata database: timeout|pid file found, ensure docker is not running"
        r"|process with PID [0-9]{1,9} is still running|unable to lock [^\n]*docker"
        r"|ensure docker is not running"
        r"|docker\.sock: bind: address already in use"
        r"|waiting for response from boltdb open",
        "another dockerd already uses Docker's data directory, or a killed dockerd left its pid file",
        "Find and end it (pgrep -a dockerd, also the snap's and a rootless one). If none runs, remove"
        " /var/run/docker.pid, then start Docker",
        "moby pkg/pidfile; docker/for-linux#162",
    ),
    FailureRule(
        "containerd-config-invalid",
        r"invalid plugin config: |containerd: failed to load TOML|failed to load TOML(?: from)?[^\n]*containerd",
        "/etc/containerd/config.toml is not valid, or its default runtime is not defined, for example after an edit"
        " by hand or by a tool for another version of the file",
        "Correct the setting in the message (containerd config dump shows the parsed settings), or recreate the file"
        " (containerd config default, then nvidia-ctk runtime configure --runtime=containerd), and restart containerd",
        "containerd plugins/cri/config; NVIDIA/nvidia-container-toolkit#433",
    ),
    FailureRule(
        "kubelet-cgroup-driver",
        r"kubelet cgroup driver: \S+ is different from docker cgroup driver",
        "the kubelet does not start: the kubelet and Docker use different cgroup drivers (cgroupfs, systemd)",
        "Set the same driver for both, systemd if systemd is the init system (native.cgroupdriver=systemd in"
        " daemon.json's exec-opts, cgroupDriver in the kubelet's configuration), and restart both",
        "Kubernetes pkg/kubelet/dockershim; kubernetes/minikube#2381",
    ),
    FailureRule(
        "containerd-not-running",
        r"[Ff]ailed to (?:start|dial) [\"\\]{0,3}\S*containerd|timeout waiting for containerd to start"
        r"|exec: [\"\\]{0,3}containerd[\"\\]{0,3}: executable file not found"
        r"|containerd\.service: (?:[Cc]ontrol|Main) process exited, code=(?:exited|killed|dumped)"
        r"|containerd did not exit successfully|dial unix \S*containerd\.sock: connect: (?:connection refused"
        r"|no such file)",
        "containerd, which runs Docker's containers, does not start or is not installed",
        "Read its journal (journalctl -u containerd) and its configuration (/etc/containerd/config.toml). Install the"
        " release of containerd.io that this Docker requires, start it, then start Docker",
        "moby libcontainerd/supervisor; docker-library/docker#250",
        weight="consequence",
    ),
)

HOOK_RULES = (
    FailureRule(
        "registry-rate-limit",
        r"toomanyrequests: |\bpull rate limit|rate limit exceeded: pull",
        "the image registry's pull limit is reached. Without a login, the limit applies to all hosts of one address"
        " together",
        "Log in (docker login) with an account that has a higher limit, pull through your own mirror"
        " (registry-mirrors in daemon.json), or wait until the limit's period ends",
        "Docker Hub's documentation, usage and limits",
    ),
    FailureRule(
        "cgroup-not-mounted",
        r"mountpoint for (?:devices|cgroup) not found|cgroup mountpoint does not exist|[Dd]evices cgroup isn't mounted"
        r"|no cgroup mount found in mountinfo|cgroups: cannot find(?: cgroup)? mount|cgroup[^\n]{0,39} is not mounted"
        r"|failed to mount cgroup: cgroup1 not found",
        "the kernel's control groups, or the devices controller, are not mounted as Docker expects. Docker is older"
        " than cgroup v2, or runs where they are not mounted (a chroot, a container, a minimal system)",
        "If systemd runs (cgroup v2 has /sys/fs/cgroup/cgroup.controllers), update Docker and its runtime. Otherwise"
        " mount the control groups (cgroupfs-mount), and start Docker on the host, not in a chroot",
        "opencontainers/runc libcontainer/cgroups; moby/moby#38749",
    ),
    FailureRule(
        "driver-files-mounted",
        r"(?:unable to|cannot|could not) [^\n]*'?\.?/usr/[^\n]*(?:nvidia|libcuda|libnv)[^\n]*: "
        r"(?:Invalid cross-device link|Device or resource busy)",
        "packages in a container try to replace driver files that the container toolkit mounted from the host",
        "Install no driver packages (libcuda1, libnvidia-*, nvidia-utils) in a container. If the image needs them,"
        " install them in its build without GPUs, and hold them there (apt-mark hold)",
        "NVIDIA/nvidia-docker#1551",
    ),
    FailureRule(
        "container-gpu-unknown",
        r"device error: [^\n]*unknown device|nvidia-container-cli[.a-z]{0,8}: device error: "
        r"|unknown device id: [0-9]",
        "the container requests {the GPU DEVICE|a GPU}, by number or UUID, which the host does not have",
        "Compare nvidia-smi -L with --gpus, device_ids or NVIDIA_VISIBLE_DEVICES of the container. A UUID changes"
        " with the GPU, and MIG devices change when they are recreated",
        "NVIDIA/libnvidia-container src/cli/common.c",
        names=(r"(?:device error: |unknown device id: )(?P<device>[\w-]{1,60})",),
    ),
    FailureRule(
        "image-needs-newer-driver",
        r"unsatisfied condition: (?:cuda|driver|brand|arch)|requirement error: unsatisfied"
        r"|use an earlier cuda container",
        "the image needs {CONDITION|a newer CUDA}, which the host's driver does not support",
        "Use an image for the CUDA that nvidia-smi shows, or a stack with a newer driver (CUDA 12.4 needs R550, 12.8"
        " R570, 13.0 R580; data centre GPUs support newer releases of the same major number from R525 on)."
        " NVIDIA_DISABLE_REQUIRE=1 only hides the problem, and a toolkit on the host does not help",
        "NVIDIA/nvidia-docker#1442",
        names=(r"unsatisfied condition: (?P<condition>[\w<>=. ]{4,40}?)(?:,|\\|:|\"|$)",),
    ),
    FailureRule(
        "toolkit-cgroup-v2",
        r"cgroup subsystem devices not found"
        r"|failed to get device cgroup mount path",
        "the container toolkit is older than 1.8 and needs cgroup v1, which this host does not have",
        "Provision again: the container role installs a newer toolkit. By hand, upgrade libnvidia-container1 and"
        " nvidia-container-toolkit",
        "NVIDIA/nvidia-docker#1447, NVIDIA/libnvidia-container#111",
    ),
    FailureRule(
        "cgroup-device-filter",
        r"failed to add device rules|existing device filters attached to the cgroup|bpf_prog_query\(BPF_CGROUP_DEVICE\)"
        r"|devices\.allow: (?:permission denied"
        r"|[Oo]peration not permitted)",
        "the container toolkit has no permission to change the container's device filter: Docker is rootless, or the"
        " cgroup belongs to another user (a Slurm job)",
        "If containers run without root or within a job, set no-cgroups = true in"
        " /etc/nvidia-container-runtime/config.toml and let the job's limits select the GPUs. Otherwise start Docker"
        " as root",
        "NVIDIA/nvidia-container-toolkit#678, NVIDIA/libnvidia-container#313",
    ),
    FailureRule(
        "image-missing",
        r"manifest (?:unknown|for \S+ not found)|Tag \S+ not found in repository|reading manifest \S+ in [^\n]*unknown",
        "the registry has no image {IMAGE|of this name and tag}: the name is wrong, or the publisher removed the tag"
        " (nvidia/cuda has no tag latest, and old tags are deleted)",
        "List the tags at the publisher (for nvidia/cuda: hub.docker.com/r/nvidia/cuda/tags), use an existing one,"
        " and keep copies of needed images in your own registry",
        "moby distribution/errors.go; NVIDIA/nvidia-docker#1454, #1768",
        names=(r"manifest for (?P<image>\S{3,200}) not found",),
    ),
    FailureRule(
        "docker-too-old-for-image",
        r"Error response from daemon: missing signature key|mediaType in manifest should be [^\n]*not [^\n]*oci"
        r"|unsupported manifest media type|no supported schema versions",
        "the Docker on this host is too old for the manifest format of this image",
        "Upgrade Docker to the stack's version (provision again), or pull an older tag of the image",
        "moby/moby distribution/pull_v2.go; docker/for-linux#1260",
    ),
    FailureRule(
        "docker-older-than-glibc",
        r"pthread_create failed for thread [0-9]{1,6} of [0-9]{1,6}: Operation not permitted",
        "the image's C library (glibc 2.34, as in Ubuntu 22.04) starts threads with clone3, a system call that this"
        " Docker is too old to allow",
        "Use an image of an older system (Ubuntu 20.04, Debian 11), or upgrade Docker to 20.10.10 or later, with runc"
        " and libseccomp of that time",
        "moby/moby#42680; DDMAL/Rodan#1032",
    ),
    FailureRule(
        "container-of-before",
        r"nvidia-container-cli[.a-z]{0,8}:? mount error[^\n]*/proc/driver/nvidia[^\n]*no such file",
        "the driver was replaced or reloaded, but the container, or Docker, still refers to the old contents of"
        " /proc/driver/nvidia",
        "Restart Docker when no container works (without live-restore a restart ends them), then run docker start for"
        " the container. If that is not enough, recreate it (docker compose up --force-recreate; docker rm, then"
        " run); this deletes all data inside the container that is not on a volume",
        "NVIDIA/nvidia-container-toolkit#169",
    ),
    FailureRule(
        "container-mount",
        r"nvidia-container-cli[.a-z]{0,8}:? mount error|createContainer hook[^\n]*failed to create (?:sym)?link [^\n]*",
        "the container toolkit cannot mount the driver's files into the container{, at PLACE|}: the image has its own"
        " file there, or its filesystem refuses them",
        "Remove {PLACE|the path in the message} from the image (images saved from a running container have copies of"
        " the driver's files), or mount that directory in another way",
        "NVIDIA/nvidia-docker#1690",
        names=(
            r"mount error[^\n]*/merged(?P<place>/[^\s:\\\"]{1,300})",
            r"mount error[^\n]* failed: (?P<place>/[^\s:\\\"]{1,300})",
            r"failed to create link \[\S{1,200} (?P<place>/[^\s\]]{1,300})\]",
        ),
        variants=(
            Variant(
                r"mount error[^\n]*stat failed: /(?:dev|proc|run|usr|lib)",
                "the container toolkit cannot mount PLACE into the container: PLACE does not exist on the host",
                "Restore it on the host (device files: nvidia-modprobe -u -c 0; driver files: provision the driver"
                " role), then start the container again",
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
        "{PROGRAM, |}the command or entry point of the container is missing in its image or not executable. Docker"
        " and the driver are not the cause",
        "Check the path in the message (docker run --entrypoint ls IMAGE -l PATH). Correct the command or the image"
        " (chmod +x, Windows line ends after #!). nvidia-smi exists only with --gpus all",
        "opencontainers/runc libcontainer/standard_init_linux.go",
        names=(r"exec: [\"'\\]{1,8}(?P<program>[^\s\"'\\]{1,200})[\"'\\]{1,8}: ",),
        weight="consequence",
        unless=r"nvidia-container|hook",
    ),
    FailureRule(
        "container-persistenced-socket",
        r"open \S{0,20}/run/nvidia-persistenced/socket: no such file"
        r"|stat failed: /run/nvidia-persistenced/socket: no such",
        "nvidia-persistenced, whose socket the container toolkit mounts into each container, does not run on the host",
        "Start it on the host (systemctl restart nvidia-persistenced) and read its journal (journalctl -u"
        " nvidia-persistenced). After a driver upgrade it cannot start until a reboot loads the new module. A CDI"
        " specification also names the socket: if the daemon should stay off, regenerate it (nvidia-ctk cdi generate)",
        "crumbvms#395; NVIDIA/libnvidia-container, nvc_info.c",
    ),
    FailureRule(
        "container-driver-error",
        r"initialization error: driver error|driver rpc error"
        r"|(?:initialization|detection) error: (?:cuda|nvml) error",
        "the container toolkit gets no response from the driver: its module is not loaded, does not work, or"
        " initializes the GPUs too slowly",
        "Run nvidia-smi on the host and fix the reported error. If it works but is slow, start nvidia-persistenced",
        "opencontainers/runc#2102",
        weight="consequence",
    ),
    FailureRule(
        "container-without-gpu",
        r"The NVIDIA Driver was not detected\.\s{1,20}GPU functionality will not be available"
        r"|to start this container with GPU support",
        "the container was started without GPUs, so that it has no driver",
        "Start it with --gpus all (docker compose: a device reservation with the capability gpu). If it has this"
        " option, run nvidia-smi on the host",
        "NVIDIA's container images, entrypoint",
        weight="consequence",
    ),
)
