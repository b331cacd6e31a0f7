"""Messages about suspend and resume: what the driver keeps of the cards' memory, and who asks it to."""

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
        "the host was to be suspended, and the driver could not save the cards' memory or state: programs still use the"
        " cards, the place for the copy is too small (NVreg_TemporaryFilePath, else /tmp), or the driver's units for it"
        " do not run",
        "A host for computing is better kept awake: systemctl mask sleep.target suspend.target hibernate.target"
        " hybrid-sleep.target. Where it is to sleep, end what uses the cards (nvidia-smi), systemctl enable"
        " nvidia-suspend nvidia-resume nvidia-hibernate, set NVreg_PreserveVideoMemoryAllocations=1 and"
        " NVreg_TemporaryFilePath=/var/tmp in /etc/modprobe.d with as much room there as the cards have memory, rebuild"
        " the initramfs and reboot",
        "NVIDIA's driver README, configuring power management support",
        closing=r"Failed to put system to sleep[^\n]*|Some devices failed to suspend[^\n]*",
        variants=(
            Variant(
                r"put system to sleep|Some devices failed",
                "the host could not be suspended: a device's driver refused, which the kernel's log names in the lines"
                " above (failed to suspend)",
                "Read them (journalctl -k -b | grep -iE 'suspend|NVRM'). Where it is nvidia, end what uses the cards"
                " and see that nvidia-suspend, nvidia-resume and nvidia-hibernate are enabled. A host for computing is"
                " better kept awake: systemctl mask sleep.target suspend.target hibernate.target hybrid-sleep.target",
            ),
            Variant(
                r"without driver procfs suspend interface",
                "the module's option NVreg_PreserveVideoMemoryAllocations is set, and the host was suspended without"
                " the driver's own units, which have to save the cards' memory first: the driver then refuses",
                "Enable them: systemctl enable nvidia-suspend nvidia-resume nvidia-hibernate (they come with the"
                " driver's packages, or lie in its documentation's folder after a .run), and suspend with systemctl"
                " suspend. Or take the option out of /etc/modprobe.d, rebuild the initramfs and reboot; what is in the"
                " cards' memory is then lost at each suspend",
            ),
        ),
    ),
    FailureRule(
        "suspend-not-frozen",
        r"Freezing (?:user space processes|remaining freezable tasks) failed after[^\n]*"
        r"|Freezing of tasks failed after[^\n]*|Failed to freeze unit 'user\.slice'[^\n]*",
        "the host did not go to sleep, for a process could not be stopped in time: one that waits for a card or a file"
        " server, or one that has to act before the driver can save the cards' memory",
        "The lines below the message name the process: end it first. A host for computing is better kept awake"
        " (systemctl mask sleep.target suspend.target). With systemd 256 or later and NVIDIA's driver, let it not"
        " freeze the sessions first: SYSTEMD_SLEEP_FREEZE_USER_SESSIONS=false in a drop-in of systemd-suspend.service",
        "Linux kernel/power/process.c; systemd's news of 256",
    ),
)
