"""Messages about failed suspend and resume of GPU cards."""

from __future__ import annotations

from hostwright.failures import FailureRule, Variant

POWER = (
    FailureRule(
        "suspend-failed",
        r"System Power Management attempted without driver procfs suspend interface[^\n]*"
        r"|nv_pmops_(?:suspend|freeze|poweroff)\S* \[nvidia\] returns -[0-9]{1,3}"
        r"|\bnvidia [0-9a-f:.]{7,12}: PM: failed to (?:suspend|freeze|resume|thaw|restore)[^\n]*"
        r"|nvidia-sleep\.sh\S*: [^\n]*(?:write error|[Ff]ailed)[^\n]*"
        r"|nvidia-(?:suspend|resume|hibernate)\.service: (?:Failed with result|Main process exited)[^\n]*"
        r"|memmgrSavePowerMgmtState|RmPowerManagement: [^\n]*fail|[Ff]ailed to (?:save|preserve|restore) video memory",
        "the host could not be suspended, because the driver could not save the cards' memory or state: programs "
        "still use the cards, the directory for the copy is too small (NVreg_TemporaryFilePath, else /tmp), or the "
        "driver's suspend units do not run",
        "A compute host should not suspend: run systemctl mask sleep.target suspend.target hibernate.target "
        "hybrid-sleep.target. If it must, end the programs on the cards (nvidia-smi), run systemctl enable "
        "nvidia-suspend nvidia-resume nvidia-hibernate, set NVreg_PreserveVideoMemoryAllocations=1 and "
        "NVreg_TemporaryFilePath=/var/tmp in /etc/modprobe.d with as much free space there as the cards have memory, "
        "rebuild the initramfs and reboot",
        "NVIDIA's driver README, configuring power management support",
        closing=r"Failed to put system to sleep[^\n]*|Some devices failed to suspend[^\n]*",
        variants=(
            Variant(
                r"put system to sleep|Some devices failed",
                "the host could not be suspended: a device's driver refused; the kernel log names it in the lines "
                "above (failed to suspend)",
                "Check these lines (journalctl -k -b | grep -iE 'suspend|NVRM'). If the driver is nvidia, end the "
                "programs on the cards and check that nvidia-suspend, nvidia-resume and nvidia-hibernate are "
                "enabled. A compute host should not suspend: run systemctl mask sleep.target suspend.target "
                "hibernate.target hybrid-sleep.target",
            ),
            Variant(
                r"without driver procfs suspend interface",
                "the module's option NVreg_PreserveVideoMemoryAllocations is set, and the host was suspended without "
                "the driver's own units, which must first save the cards' memory: the driver then refuses",
                "Run systemctl enable nvidia-suspend nvidia-resume nvidia-hibernate (the units are in the driver's "
                "packages, or in its documentation directory after a .run), and suspend with systemctl suspend. Or "
                "remove the option from /etc/modprobe.d, rebuild the initramfs and reboot; the content of the cards' "
                "memory is then lost at each suspend",
            ),
        ),
    ),
    FailureRule(
        "suspend-not-frozen",
        r"Freezing (?:user space processes|remaining freezable tasks) failed after[^\n]*"
        r"|Freezing of tasks failed after[^\n]*|Failed to freeze unit 'user\.slice'[^\n]*",
        "the host did not suspend, because a process could not be stopped in time: one that waits for a card or a "
        "file server, or one that must act before the driver can save the cards' memory",
        "End the process that the lines below the message name. A compute host should not suspend (systemctl mask "
        "sleep.target suspend.target). With systemd 256 or later and NVIDIA's driver, prevent it from freezing the "
        "sessions first: SYSTEMD_SLEEP_FREEZE_USER_SESSIONS=false in a drop-in of systemd-suspend.service",
        "Linux kernel/power/process.c; systemd's news of 256",
    ),
)
