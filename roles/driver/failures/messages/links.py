"""Messages of NVLinks and NVSwitches, of Slurm about them, and of Mellanox network cards and their links."""

from __future__ import annotations

from hostwright.failures import FailureRule, Variant

FABRIC_LINKS = (
    FailureRule(
        "sxid-fatal",
        r"\bSXid \([0-9A-Fa-f:.PCI]{4,24}\): [0-9]{5}, Fatal|NVSwitch fatal error [0-9]{5}"
        r"|SXid[^\n]+\b[0-9]{5}, Fatal",
        "an NVSwitch reported an error (SXid) after which its links carry nothing: CUDA programs on these cards end",
        "Drain the host and reset all its cards and NVSwitches together (nvidia-smi --gpu-reset), or cycle its power;"
        " when it recurs, have the board checked",
        "NVIDIA Fabric Manager user guide, NVSwitch errors",
    ),
    FailureRule(
        "sxid",
        r"\bSXid \([0-9A-Fa-f:.PCI]{4,24}\): [0-9]{5}|NVSwitch non-fatal error [0-9]{5}",
        "an NVSwitch reported an error (SXid) that it does not call fatal; the program on that link may have ended",
        "Look the number up in Fabric Manager's guide; start the program again, and when the same switch and link"
        " report it again, drain the host and reset all its cards",
        "NVIDIA Fabric Manager user guide, NVSwitch errors",
    ),
    FailureRule(
        "xid-nvlink-nonfatal",
        r"NVRM: Xid [^\n]+\): 1(?:4[4-9]|50), [A-Z0-9_]{1,40} {1,4}Nonfatal\b",
        "an NVLink of the fifth generation reported an error that the driver itself calls nonfatal: the transfer is"
        " tried again, and the card goes on",
        "Nothing is to be done at once. Count them for each link, and have the link looked at where they become"
        " frequent or a fatal one comes",
        "NVIDIA's Xid catalog; leptonai/gpud#1174",
        weight="consequence",
    ),
    FailureRule(
        "nvswitch-missing",
        r"number of NVSwitches don't match|failed to find the GPU handle [0-9]{1,20} in the multicast team",
        "Fabric Manager finds fewer NVSwitches or links than the board has: one of them failed or did not start",
        "Count them (lspci -d 10de: | grep -i bridge) and read dmesg for SXid; cycle the host's power, and have the"
        " board checked when it stays",
        "NVIDIA Fabric Manager user guide; leptonai/gpud fabric-manager",
    ),
    FailureRule(
        "nvlinks-inactive",
        r"Unable to retrieve Nvlink information as all links are inActive|knvlink\w{1,60}: [^\n]*PostRxDet\w{0,20}"
        r"|knvlink\w{1,60}: Failed to update Rx Detect Link mask",
        "the NVLinks of a card carry nothing: Fabric Manager does not run, a neighbour or switch failed, or the driver"
        " hangs, as some of R570 do after 66 days without a reboot",
        "Drain the host; where nvidia-smi hangs or the host has been up for two months, reboot it and name a newer"
        " driver release; else read nvidia-fabricmanager's journal and dmesg for SXid and Xid 74, 145 and 149, reset"
        " all cards together, and have the board checked when it stays",
        "NVIDIA/open-gpu-kernel-modules#971, #1150; leptonai/gpud#1085",
        weight="consequence",
    ),
    FailureRule(
        "nvls-not-set-up",
        r"transport/nvls\.cc:[0-9]{1,5} NCCL WARN (?:Cuda|CUDA) failure [^\n]*"
        r"|Failed to (?:bind|map|create) NVLink SHARP \(NVLS\)[^\n]*"
        r"|cuMulticast\w{1,40}\b[^\n]*(?:[Ff]ail|[Ee]rror|ERROR)[^\n]*"
        r"|Multicast Team (?:Setup|Release)[^\n]*(?:fail|cannot)[^\n]*|GPUs in the partition need to be reset[^\n]*",
        "NCCL could not set up the sums in the NVSwitches (NVLS): these or the cards are not in the state that Fabric"
        " Manager set up, mostly because it was restarted, or failed, and the cards were not reset since",
        "Look on this host at nvidia-fabricmanager (its journal, /var/log/fabricmanager.log, the driver's version) and"
        " at Fabric in nvidia-smi -q. Drain the host, end what uses the cards, stop Fabric Manager, reset all cards"
        " together (nvidia-smi --gpu-reset) and start it, or reboot. NCCL_NVLS_ENABLE=0 lets a job run without NVLS"
        " until then, and for good in a virtual machine without the switches. Where all that is in order and the"
        " failure is 'invalid argument', take a newer NCCL (2.26.5 or later)",
        "NVIDIA/nccl-tests#276; NCCL src/transport/nvls.cc; pytorch/pytorch#150852, #177472",
        closing=r"NCCL INFO transport/nvls\.cc:[0-9]{1,5} -> [1-9]",
        unless=r"[Oo]ut of memory|[Pp]roceeding with|[Nn]ot supported|NOT_SUPPORTED",
        beside=r"CUDA error 401|in the present state",
        variants=(
            Variant(
                r"\b401\b|in the present state",
                "the cards are not joined for the sums in the NVSwitches (NVLS): Fabric Manager does not run, or it was"
                " restarted and the cards were not reset since, or the host has no IMEX channel",
                "Look at systemctl status nvidia-fabricmanager and at Fabric in nvidia-smi -q. Where it does not run,"
                " systemctl enable --now nvidia-fabricmanager (of exactly the driver's version). Where it was"
                " restarted, drain the host, reset all cards together (nvidia-smi --gpu-reset) or reboot. Where ls"
                " /dev/nvidia-caps-imex-channels shows no channel0, write options nvidia NVreg_CreateImexChannel0=1"
                " into /etc/modprobe.d and load the driver anew. NCCL_NVLS_ENABLE=0 lets a job run without NVLS until"
                " then. Where all that is in order, take a newer NCCL (2.26.5 or later)",
            ),
            Variant(
                r"not yet initialized|\b802\b",
                "Fabric Manager did not join the cards for the sums in the NVSwitches (NVLS) when NCCL asked for it: it"
                " does not run, is not done yet (Fabric: State other than Completed), or stalled for some seconds",
                "Look at Fabric in nvidia-smi -q (State Completed, Status Success for each card) and at"
                " nvidia-fabricmanager (systemctl status, /var/log/fabricmanager.log, the driver's version; HGX B200"
                " and B300 need nvlsm beside it): start it where it does not run, and start the job again. Where it"
                " stays, drain the host, reset all cards together and restart it. NCCL_NVLS_ENABLE=0 lets a job run"
                " without NVLS until then",
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
        "the program may not share the cards' memory over the fabric (NVLink of several hosts, MNNVL): it has no IMEX"
        " channel, as /dev/nvidia-caps-imex-channels/channel0 is not there, or not for its user or container",
        "As root: look at grep nvidia-caps-imex-channels /proc/devices for the major number, then mkdir -p"
        " /dev/nvidia-caps-imex-channels and mknod .../channel0 c MAJOR 0, which every user of the domain is to open;"
        " a boot takes it away (the module's option NVreg_CreateImexChannel0=1 makes it each time). Give it to a"
        " container with --device or NVIDIA_IMEX_CHANNELS=0. Across hosts nvidia-imex runs as well. Where one host is"
        " enough, switch the program's fabric handles off",
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
        "the IMEX daemon does not run, or does not reach that of another host: it shares memory between the hosts of a"
        " rack with one NVLink domain (GB200, GB300); a host without such neighbours needs none, and no link is broken",
        "Where a job goes over several hosts of the rack, see that /etc/nvidia-imex/nodes_config.cfg names the same"
        " addresses on all, start nvidia-imex on all and read nvidia-imex-ctl -N and /var/log/nvidia-imex.log;"
        " elsewhere take the message for harmless",
        "NVIDIA IMEX guide; NVIDIA/NVSentinel#1471",
        variants=(
            Variant(
                r"IMEX_UNHEALTHY|IMEX daemon status is",
                "DCGM says that no IMEX daemon is ready, which is so wherever none is needed at the moment: a host"
                " without neighbours in its NVLink domain, or one on which no job over several hosts runs (Kubernetes:"
                " no ComputeDomain). No link, switch or card is broken",
                "Nothing is to be done for this alone. Only where a job over several hosts of a rack fails, start"
                " nvidia-imex on all of them (the same addresses in /etc/nvidia-imex/nodes_config.cfg) and read"
                " nvidia-imex-ctl -N",
            ),
        ),
        weight="consequence",
    ),
    FailureRule(
        "slurm-fewer-gpus",
        r"gres/gpu count reported lower than configured[^\n]*|can't stat gres\.conf file /dev/nvidia[^\n]*",
        "Slurm's daemon found fewer GPUs on the host than gres.conf and slurm.conf name, so that Slurm gives it no"
        " work",
        "Count them (nvidia-smi -L; `invoke audit` and `invoke doctor` name a card that is gone and device files that"
        " are missing); where MIG or the hardware was changed on purpose, correct both files. Then systemctl restart"
        " slurmd, and scontrol update NodeName=NODE State=RESUME",
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
        "a Mellanox network card, or its firmware, does not answer its driver, or reports a fault of its own",
        "Bring the card's firmware up to date (mlxfwmanager) and the driver with it; look at its temperature and seat;"
        " cycle the host's power, and have the card replaced when it recurs",
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
        "Look at ibstat: while it is Initializing, start the subnet manager (opensm, or the switch's); else seat or"
        " replace the cable, and look at the port of the switch",
        "Linux drivers/net/ethernet/mellanox/mlx5/core/events.c; ibstat(8)",
        weight="consequence",  # programs on a host with an unused port fail for other reasons
    ),
)
