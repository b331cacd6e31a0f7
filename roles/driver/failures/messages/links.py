"""Messages about NVLinks, NVSwitches and Mellanox network cards."""

from __future__ import annotations

from hostwright.failures import FailureRule, Variant

FABRIC_LINKS = (
    FailureRule(
        "sxid-fatal",
        r"\bSXid \([0-9A-Fa-f:.PCI]{4,24}\): [0-9]{5}, Fatal|NVSwitch fatal error [0-9]{5}"
        r"|SXid[^\n]+\b[0-9]{5}, Fatal",
        "an NVSwitch reported an error (SXid) that stops its links: CUDA programs on these cards end",
        "Drain the host and reset all its cards and NVSwitches together (nvidia-smi --gpu-reset), or cycle its "
        "power. If it recurs, have the board checked",
        "NVIDIA Fabric Manager user guide, NVSwitch errors",
    ),
    FailureRule(
        "sxid",
        r"\bSXid \([0-9A-Fa-f:.PCI]{4,24}\): [0-9]{5}|NVSwitch non-fatal error [0-9]{5}",
        "an NVSwitch reported an error (SXid) that it does not call fatal; the program on that link may have ended",
        "Find the number in Fabric Manager's guide, and start the program again. If the same switch and link report "
        "it again, drain the host and reset all its cards",
        "NVIDIA Fabric Manager user guide, NVSwitch errors",
    ),
    FailureRule(
        "xid-nvlink-nonfatal",
        r"NVRM: Xid [^\n]+\): 1(?:4[4-9]|50), [A-Z0-9_]{1,40} {1,4}Nonfatal\b",
        "an NVLink of the fifth generation reported an error that the driver calls nonfatal: the transfer is "
        "retried, and the card continues",
        "No action is needed now. Count these errors for each link; if they become frequent or a fatal one occurs, "
        "have the link checked",
        "NVIDIA's Xid catalog; leptonai/gpud#1174",
        weight="consequence",
    ),
    FailureRule(
        "nvswitch-missing",
        r"number of NVSwitches don't match|failed to find the GPU handle [0-9]{1,20} in the multicast team",
        "Fabric Manager finds fewer NVSwitches or links than the board has: one of them failed or did not start",
        "Count them (lspci -d 10de: | grep -i bridge) and search dmesg for SXid; cycle the host's power. If it "
        "persists, have the board checked",
        "NVIDIA Fabric Manager user guide; leptonai/gpud fabric-manager",
    ),
    FailureRule(
        "nvlinks-inactive",
        r"Unable to retrieve Nvlink information as all links are inActive|knvlink\w{1,60}: [^\n]*PostRxDet\w{0,20}"
        r"|knvlink\w{1,60}: Failed to update Rx Detect Link mask",
        "the NVLinks of a card are all inactive: Fabric Manager does not run, a neighbour or switch failed, or the "
        "driver hangs, as some R570 releases do after 66 days without a reboot",
        "Drain the host. If nvidia-smi hangs or the host has been up for two months, reboot it and name a newer "
        "driver release. Otherwise check nvidia-fabricmanager's journal, and dmesg for SXid and Xid 74, 145 and 149, "
        "and reset all cards together. If it persists, have the board checked",
        "NVIDIA/open-gpu-kernel-modules#971, #1150; leptonai/gpud#1085",
        weight="consequence",
    ),
    FailureRule(
        "nvls-not-set-up",
        r"transport/nvls\.cc:[0-9]{1,5} NCCL WARN (?:Cuda|CUDA) failure [^\n]*"
        r"|Failed to (?:bind|map|create) NVLink SHARP \(NVLS\)[^\n]*"
        r"|cuMulticast\w{1,40}\b[^\n]*(?:[Ff]ail|[Ee]rror|ERROR)[^\n]*"
        r"|Multicast Team (?:Setup|Release)[^\n]*(?:fail|cannot)[^\n]*|GPUs in the partition need to be reset[^\n]*",
        "NCCL could not set up in-switch sums (NVLS): NVSwitches or cards are not in the state that Fabric Manager "
        "configured, usually because it was restarted, or failed, and the cards were not reset since",
        "On this host, check nvidia-fabricmanager (its journal, /var/log/fabricmanager.log, the driver's version) "
        "and Fabric in nvidia-smi -q. Drain the host, end the programs on the cards, stop Fabric Manager, reset all "
        "cards together (nvidia-smi --gpu-reset) and start it, or reboot. Until then, NCCL_NVLS_ENABLE=0 lets a job "
        "run without NVLS; in a virtual machine without the switches, set it permanently. If Fabric Manager is "
        "healthy and the failure is 'invalid argument', install a newer NCCL (2.26.5 or later)",
        "NVIDIA/nccl-tests#276; NCCL src/transport/nvls.cc; pytorch/pytorch#150852, #177472",
        closing=r"NCCL INFO transport/nvls\.cc:[0-9]{1,5} -> [1-9]",
        unless=r"[Oo]ut of memory|[Pp]roceeding with|[Nn]ot supported|NOT_SUPPORTED",
        beside=r"CUDA error 401|in the present state",
        variants=(
            Variant(
                r"\b401\b|in the present state",
                "the cards are not ready for in-switch sums (NVLS): Fabric Manager does not run, or it was restarted "
                "and the cards were not reset since, or the host has no IMEX channel",
                "Check systemctl status nvidia-fabricmanager and Fabric in nvidia-smi -q. If it does not run, run "
                "systemctl enable --now nvidia-fabricmanager (at exactly the driver's version). If it was restarted, "
                "drain the host and reset all cards together (nvidia-smi --gpu-reset), or reboot. If ls "
                "/dev/nvidia-caps-imex-channels shows no channel0, write options nvidia NVreg_CreateImexChannel0=1 "
                "to a file in /etc/modprobe.d and reload the driver. Until then, NCCL_NVLS_ENABLE=0 lets a job run "
                "without NVLS. If all of this is in order, install a newer NCCL (2.26.5 or later)",
            ),
            Variant(
                r"not yet initialized|\b802\b",
                "Fabric Manager had not joined the cards for in-switch sums (NVLS) when NCCL needed them: it does "
                "not run, has not finished (Fabric: State other than Completed), or stalled for some seconds",
                "Check Fabric in nvidia-smi -q (State Completed, Status Success for each card) and "
                "nvidia-fabricmanager (systemctl status, /var/log/fabricmanager.log, the driver's version; HGX B200 "
                "and B300 also need nvlsm). If it does not run, start it, and start the job again. If it persists, "
                "drain the host, reset all cards together and restart it. Until then, NCCL_NVLS_ENABLE=0 lets a job "
                "run without NVLS",
            ),
        ),
    ),
    FailureRule(
        "imex-channel-missing",
        r"cuMem(?:Create|ExportToShareableHandle|ImportFromShareableHandle)[^\n]{0,200}(?:operation not"
        r" permitted|NOT_PERMITTED|[Ii]nsufficient permission)[^\n]*"
        r"|(?:CU_MEM_HANDLE_TYPE_FABRIC|[Ff]abric handle)[^\n]*(?:not permitted|NOT_PERMITTED)[^\n]*"
        r"|NOT_PERMITTED[^\n]{0,60}cuMemCreate\([^\n]*"
        r"|/dev/nvidia-caps-imex-channels[^\n]{0,60}(?:[Nn]o such|[Nn]ot found|[Pp]ermission denied"
        r"|not permitted)[^\n]*",
        "the program may not share the cards' memory over the fabric (NVLink of several hosts, MNNVL): it has no "
        "IMEX channel, because /dev/nvidia-caps-imex-channels/channel0 is missing, or not accessible to its user or "
        "container",
        "As root, get the major number with grep nvidia-caps-imex-channels /proc/devices, then run mkdir -p "
        "/dev/nvidia-caps-imex-channels and mknod .../channel0 c MAJOR 0, accessible to every user of the domain. A "
        "reboot removes it; the module's option NVreg_CreateImexChannel0=1 creates it each time. Pass it to a "
        "container with --device or NVIDIA_IMEX_CHANNELS=0. Across hosts, nvidia-imex must run too. For a single "
        "host, switch the program's fabric handles off",
        "NVIDIA IMEX guide, IMEX channels; microsoft/mscclpp#467",
        unless=r"will retry|simpler handle|[Ff]all(?:ing|s)? ?back",
    ),
    FailureRule(
        "imex-not-ready",
        r"IMEX_UNHEALTHY|IMEX daemon status is -[0-9]|[Nn]ode configuration mismatch|Domain State: (?:DOWN|DEGRADED)"
        r"|nvidia-imex\.service: (?:Failed with result|Main process exited, code=\w{1,10}, status=[1-9])"
        r"|IMEX (?:domain|daemon)[^\n]{0,40}(?:NOT[ _]READY|DEGRADED|UNAVAILABLE)"
        r"|(?:^|\s)nvidia-imex(?:\[[0-9]{1,10}\])?: [^\n]*(?:[Ff]ail|\b[Ee]rror\b|[Mm]ismatch|[Uu]nable to|[Cc]ould not"
        r"|not found)[^\n]*",
        "the IMEX daemon does not run, or does not reach the one on another host: it shares memory between the hosts "
        "of a rack with one NVLink domain (GB200, GB300). A host without such neighbours needs no daemon, and no "
        "link is broken",
        "If a job uses several hosts of the rack, check that /etc/nvidia-imex/nodes_config.cfg has the same "
        "addresses on all, start nvidia-imex on all and check nvidia-imex-ctl -N and /var/log/nvidia-imex.log. "
        "Otherwise ignore the message",
        "NVIDIA IMEX guide; NVIDIA/NVSentinel#1471",
        variants=(
            Variant(
                r"IMEX_UNHEALTHY|IMEX daemon status is",
                "DCGM reports that no IMEX daemon is ready, which is normal if none is needed: on a host without "
                "neighbours in its NVLink domain, or without a job over several hosts (Kubernetes: no "
                "ComputeDomain). No link, switch or card is broken",
                "No action is needed for this alone. If a job over several hosts of a rack fails, start nvidia-imex "
                "on all of them (the same addresses in /etc/nvidia-imex/nodes_config.cfg) and check nvidia-imex-ctl "
                "-N",
            ),
        ),
        weight="consequence",
    ),
    FailureRule(
        "slurm-fewer-gpus",
        r"gres/gpu count reported lower than configured[^\n]*|can't stat gres\.conf file /dev/nvidia[^\n]*",
        "Slurm's daemon found fewer GPUs on the host than gres.conf and slurm.conf name, so Slurm gives it no work",
        "Count them (nvidia-smi -L; `invoke audit` and `invoke doctor` report missing cards and device files). If "
        "MIG or the hardware was changed on purpose, correct both files. Then run systemctl restart slurmd, and "
        "scontrol update NodeName=NODE State=RESUME",
        "Slurm gres.conf(5); awslabs/awsome-distributed-ai#195; BiBiServ/bibigrid#705",
    ),
    FailureRule(
        "mlx5-fault",
        r"mlx[45]_[^\n]*(?:TX timeout detected|timeout\. Will cause a leak|health compromised"
        r"|Health issue observed|internal error|unrecoverable hardware|Fatal error [0-9]|High temperature"
        r"|initialization timeout|failed with error -110|FW (?:fatal|in ill state))"
        r"|mlx[45]_[^\n]*(?:health monitor disabled|device's health|assert_var)"
        r"|mlx[45]_core[^\n]*probe (?:of \S{1,20} )?(?:with driver \w{1,20} )?failed with error"
        r"|mlx[45]_(?:load_one|init_one|function_setup|probe_one)[^\n]*failed with error code"
        r"|handle_hca_cap failed",
        "a Mellanox network card, or its firmware, does not respond to its driver, or reports an internal fault",
        "Update the card's firmware (mlxfwmanager) and its driver; check its temperature and seat; cycle the host's "
        "power. If it recurs, have the card replaced",
        "Linux drivers/net/ethernet/mellanox/mlx5/core: health.c, cmd.c, en_main.c",
    ),
    FailureRule(
        "infiniband-link",
        r"Port module event\[error\]|Physical state: {0,9}LinkErrorRecovery"
        r"|State: {0,9}Initializing\s{1,40}Physical state|state:\s{1,9}PORT_INIT \(2\)"
        r"|State: {0,9}Down\s{1,60}Physical state: {0,9}(?:Polling|Disabled)|state DOWN physical_state (?:POLLING"
        r"|DISABLED)"
        r"|PORT_DOWN \(1\)(?:\s{1,40}[a-z_]{3,12}:\s{1,40}\S{1,12}(?: \([0-9]\))?){0,6}\s{1,40}link_layer:\s{1,40}Infi"
        r"niBand"
        r"|insufficient power on the PCIe slot",
        "an InfiniBand port is not active: its cable or module has an error, or no subnet manager has configured it",
        "Run ibstat. If the port is Initializing, start the subnet manager (opensm, or the switch's); otherwise seat "
        "or replace the cable, and check the switch's port",
        "Linux drivers/net/ethernet/mellanox/mlx5/core/events.c; ibstat(8)",
        weight="consequence",  # an unused port also reports this error
    ),
)
