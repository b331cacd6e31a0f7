"""Messages of NVSwitches, and of Mellanox network cards and their links."""

from __future__ import annotations

from hostwright.failures import FailureRule

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
        "nvswitch-missing",
        r"number of NVSwitches don't match|failed to find the GPU handle [0-9]{1,20} in the multicast team",
        "Fabric Manager finds fewer NVSwitches or links than the board has: one of them failed or did not start",
        "Count them (lspci -d 10de: | grep -i bridge) and read dmesg for SXid; cycle the host's power, and have the"
        " board checked when it stays",
        "NVIDIA Fabric Manager user guide; leptonai/gpud fabric-manager",
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
