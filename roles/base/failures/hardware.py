"""Messages of failing hardware: memory modules, processors, disks and their filesystems, PCIe."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.failures import AuditContext, FailureRule, Sign
from hostwright.resources import MEMORY, memory_bytes
from hostwright.standard.roles.base.failures.journal import kernel_sign

#: pattern of disk devices that report errors on healthy virtual machines too
_NO_DISK = r"dev(?:ice)? (?:fd[0-9]|sr[0-9]|loop|nbd|mmcblk\w*(?:rpmb|boot))"

_MACHINE_CHECK = (
    r"[Mm]achine [Cc]heck(?: Exception)?: [0-9a-f]{1,2} Bank|Fatal (?:local )?machine check"
    r"|Processor context corrupt|Hardware event\. This is not a software error|event severity: fatal"
    r"|event severity: recoverable"
)
_PCIE = (
    r"severity=Uncorrect(?:ed|able) \((?:Non-)?Fatal\)|AER: (?:Multiple )?Uncorrect(?:ed|able) \((?:Non-)?Fatal\)"
    r"|DPC: containment event|AER: device recovery failed"
    r"|PCIe Bus Error: severity=Uncorrected|can't recover \(no error_detected callback\)"
)
_DISK = (
    r"I/O error, dev(?:ice)? |Buffer I/O error on dev(?:ice)? |critical (?:medium|target|nexus) error, dev(?:ice)? "
    r"|lost (?:async )?page write|I/O error -?[0-9]{1,4} (?:reading from|writing to) inode"
    r"|\bata[0-9]{1,3}(?:\.[0-9]{2})?: (?:failed command:|exception Emask|error: \{ [A-Z]|COMRESET failed)"
    r"|\[sd[a-z]{1,3}\] .*Sense Key : (?:Medium Error|Hardware Error|0x[34]\b)|Unrecovered read error"
    r"|rejecting I/O to (?:offline|dead) device"
    r"|FAILED Result: hostbyte=DID_(?:NO_CONNECT|BAD_TARGET|ERROR|TIME_OUT)"
    r"|Device offlined - not ready|\bmd/raid.*: Disk failure|read error (?:not correctable|NOT corrected)"
    r"|Fail event had been detected on md|unreadable \(pending\) sectors|[Oo]ffline uncorrectable sectors"
    r"|FAILED SMART self-check|self-assessment test result: FAILED|SMART error \("
    r"|\bnvme[0-9]{1,3}: .*(?:timeout, |controller is down|Device not ready|frozen state error)"
    r"|\bnvme[0-9n]{1,9}: .*I/O Error \(sct|Removing after probe failure|after reset failure"
    r"|Error: (?:UNC|WP|IDNF)\b[^\n]* at LBA|\bATA Error Count: [1-9]|Completed: read failure|\bFAILING_NOW\b"
    r"|SMART Failure: |IMPENDING FAILURE|FAILURE PREDICTION THRESHOLD EXCEEDED|SMART Health Status: "
    r"(?:[A-NP-Z]|O[A-JL-Z])"
    r"|Critical Warning: {1,40}0x(?:0[1-9a-f]|[1-9a-f][0-9a-f])|bdev /dev/\S+ errs: "
    r"|attempt to access beyond end of device|no available path - failing I/O|Disabling device after reset failure"
    r"|OSError: \[Errno 5\]|: input/output error\b"
    r"|Operation continuing on [0-9]{1,3} devices|DegradedArray event|Failed Devices : [1-9]"
    r"|\bState : [\w, ]{0,40}degraded|\[(?:U{1,16}_|_{1,16}U)[U_]{0,16}\]|\bfaulty {1,8}(?:spare {1,8})?/dev/"
    r"|^\s{0,9}state: (?:DEGRADED|FAULTED|SUSPENDED)\b|kicking non-fresh"
)
_FILESYSTEM = (
    r"EXT[234]-fs error|EXT[234]-fs.*: (?:Remounting filesystem read-only|previous I/O error to superblock)"
    r"|Aborting journal on device|JBD2: .*(?:I/O error|Error -[0-9])|RUN fsck MANUALLY"
    r"|EXT[234]-fs.*: error count since last fsck|Failed to start File System Check on|xfs_log_force: error"
    r"|Please u[mn]{1,2}ount the filesystem and rectify|BTRFS: Transaction aborted \(error -[0-9]"
    r"|XFS \(\S+: metadata I/O error|XFS.*(?:[Cc]orruption (?:detected|warning)|CRC error detected"
    r"|log mount failed|[Cc]orruption detected|Internal error|[Ss]hutting down filesystem|shut down due to"
    r"|log mount/recovery failed|run xfs_repair)|xfs_(?:do_)?force_shutdown"
    r"|BTRFS.{0,10}(?:error|critical|: error) \((?:device|in)|BTRFS.*(?:forced readonly|csum failed)"
    r"|[Ss]tructure needs cleaning|SQUASHFS error:|has encountered an uncorrectable I/O failure"
    r"|I/O error while writing superblock|no valid journal superblock"
    r"|\bRemote I/O error|EXT[234]-fs \(\S+: error loading journal"
    r"|JBD2: Detected IO errors|parent transid verify failed|FAT-fs \(\S+\): error"
    r"|Bad magic number in super-block"
    r"|Superblock invalid, trying"
    r"|fsck (?:exited with status code|failed with exit status) [4-9]"
)


def _less_memory(ctx: AuditContext) -> Iterator[str]:
    """The kernel has less memory than an audit of the last 30 days found."""
    ctx.require(MEMORY)
    if (size := memory_bytes(ctx.facts)) and (less := ctx.known.less_memory(size)):
        yield less


HARDWARE = (
    FailureRule(
        "memory-less-than-before",
        "",
        "the host has less memory than at an earlier audit",
        "Compare the memory modules in dmidecode -t memory with the installed ones; the BMC's event log names one "
        "that the firmware switched off. Seat or replace it. A lasting change is reported for 30 days",
        "Azure/azurehpc-health-checks",
        sign=Sign("base", _less_memory, (MEMORY,), grave=False),
    ),
    FailureRule(
        "memory-errors",
        r"EDAC .{0,30}MC[0-9]{1,3}: [0-9]{1,9} [CU]E |HANDLING MCE MEMORY ERROR|MEMORY CONTROLLER [A-Z]{1,9}_CHANNEL"
        r"|section_type: memory error|Memory failure: 0x[0-9a-fA-F]{1,16}: "
        r"|hardware memory (?:error|corruption)|[Cc]orrected (?:DIMM )?memory error"
        r"|error_type: [0-9]{1,2}, (?:single|multi)-bit ECC"
        r"|Unified Memory Controller.*Error|DRAM ECC error"
        r"|Transaction: Memory (?:read|write|scrubbing) error|Memory [^|\n]*\| {0,3}(?:Unc|C)orrectable "
        r"(?:memory )?ECC|(?:Unc|C)orrectable (?:memory|ECC|DIMM) (?:error )?.*DIMM"
        r"|EDAC MC[0-9]{1,3}: [CU]E (?:page|row|-)",
        "a memory module of the host has errors",
        "For corrected errors (CE), find the module (ras-mc-ctl --errors, the BMC's event log) and replace it at the "
        "next opportunity. For an uncorrected one (UE), drain the host now and replace the module",
        "Linux drivers/edac, mm/memory-failure.c; mcelog; IPMI event log",
        unless=r"recovery action for (?:free|already)|corrected (?:DIMM )?memory errors:",
        transient=False,
        # The pattern omits corrected memory errors because single ones are normal.
        sign=kernel_sign(
            r"EDAC .{0,30}MC[0-9]{1,3}: [0-9]{1,9} UE |EDAC MC[0-9]{1,3}: UE |Memory failure: "
            r"|(?i:uncorrected.{0,40}memory error)",
            r"recovery action for (?:free|already)",
        ),
    ),
    FailureRule(
        "machine-check",
        _MACHINE_CHECK,
        "a processor reported a hardware error: in itself, its caches, memory or a device",
        "Find the part (mcelog, ras-mc-ctl --errors, the BMC's event log); drain the host and update the firmware. "
        "If it recurs, replace the part",
        "Linux arch/x86/kernel/cpu/mce, drivers/firmware/efi/cper.c; mcelog",
        transient=False,
        sign=kernel_sign(_MACHINE_CHECK),
    ),
    FailureRule(
        "pcie-error",
        _PCIE,
        "a PCIe device or its slot had an error that the link could not correct",
        "Find the device (lspci -s with the address in the message); power-cycle the host, reseat the card or riser, "
        "and update the firmware. If the error recurs, replace it",
        "Linux drivers/pci/pcie/aer.c, dpc.c",
        sign=kernel_sign(_PCIE),
    ),
    FailureRule(
        "disk-error",
        _DISK,
        "a disk (SATA, SCSI, NVMe, RAID, or a network disk) reports errors, or does not respond",
        "Save the data; check the disk (smartctl -a, nvme smart-log, /proc/mdstat), its cable or network path and its"
        " firmware, and replace it",
        "Linux block/blk-core.c, drivers/ata, drivers/scsi, drivers/nvme, drivers/md; smartd",
        unless=rf"{_NO_DISK}|(?:nvidia|tty|stdin|stdout|resumed again)[^\n]*: input/output error",
        transient=False,
        sign=kernel_sign(_DISK, _NO_DISK),
    ),
    FailureRule(
        "filesystem-error",
        _FILESYSTEM,
        "a filesystem is damaged, or the disk below it failed; the kernel may have made it read-only",
        "Search dmesg before this message for errors of the disk, and replace the disk if it has any; then unmount "
        "the filesystem and repair it (fsck, xfs_repair, btrfs check)",
        "Linux fs/ext4/super.c, fs/xfs/xfs_error.c, fs/btrfs/messages.c",
        unless=r"aborted \(error -28",  # The kernel reports "error -28" if no space is left on the device.
        transient=False,
        sign=kernel_sign(_FILESYSTEM, r"aborted \(error -28"),
    ),
    FailureRule(
        "filesystem-features",
        r"because of unsupported optional features|has unsupported feature\(s\): |unknown (?:read-only "
        r"|ro )?(?:in)?compat(?:ible)?"
        r" features? \(0x[0-9a-f]{1,16}\) (?:enabled|present)"
        r"|cannot mount[^\n]*unsupported (?:optional )?features",
        "a filesystem has features that this kernel, or this fsck, is too old to support, so it is not mounted, or "
        "only read-only: it was created on a newer system",
        "Mount or check it on a system at least as new as the one that created it, or switch the feature off there "
        "(tune2fs -O ^FEATURE). If its content is not needed, create it again with this host's own mkfs",
        "Linux fs/ext4/super.c and fs/xfs/xfs_sb.c; e2fsprogs e2fsck",
        transient=False,
    ),
)
