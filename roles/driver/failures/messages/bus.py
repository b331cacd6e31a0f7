"""Kernel messages about requests of a GPU card that the PCI bus or the IOMMU rejects."""

from __future__ import annotations

from hostwright.failures import FailureRule

#: pattern of a message that names the driver of a card, except NVIDIA's, nouveau and nova
BOUND = r"is already bound to (?P<driver>(?:[a-mo-z]|n[a-np-uw-z]|nv[a-hj-z]|nvidia[a-z])[\w-]{0,40})"

BUS = (
    FailureRule(
        "card-of-another-driver",
        BOUND,
        "DRIVER holds the card, usually for a virtual machine (passthrough), so NVIDIA's driver does not get it",
        "If the host needs the card: remove its ids from DRIVER's options in /etc/modprobe.d and on the kernel's "
        "command line, remove DRIVER from softdep lines, /etc/modules and the initramfs, run update-initramfs -u -k "
        "all and reboot. If a virtual machine needs it, remove the role driver from the host",
        "nvidia.ko, nv-pci.c; Linux drivers/vfio/pci/vfio_pci.c, ids; jurkovic-nikola/OpenLinkHub#174",
        names=(BOUND,),
    ),
    FailureRule(
        "gpu-bar-invalid",
        r"No address space to allocate resized BAR1|Failed to re-allocate BAR1"
        r"|PCI I/O region assigned to your\s{1,9}NVIDIA device is invalid|NVRM: BAR ?[0-5] is 0M"
        r"|system BIOS may have\s{1,9}misconfigured your GPU|64-bit BAR mapped above"
        r"|BAR [0-9]{1,2}: (?:no space for|failed to assign) \[mem size 0x[1-9a-f][0-9a-f]{7,10} 64bit pref"
        r"|BAR [0-9]{1,2} \[mem size 0x[1-9a-f][0-9a-f]{7,10} 64bit pref\]: (?:can't assign|failed to assign)"
        r"|Region [0-9]: Memory at <(?:ignored|unassigned)>|BAR1 is 0M"
        r"|BAR [0-9]: (?:no space for|failed to assign) \[mem size 0x0[1-9a-f][0-9a-f]{6}\b"
        r"|BAR [0-9]{1,2} \[mem [^\]\n]+\]:? not claimed; can't enable",
        "firmware or hypervisor gave the card's memory regions (BARs) no address space, so no driver can use it",
        'Switch on "Above 4G Decoding" (and a large MMIO window) in the firmware\'s settings, or give the virtual '
        "machine a larger window. If that is already so, try pci=realloc on the kernel's command line, and newer "
        "firmware",
        "nvidia.ko, nv-pci.c; Linux drivers/pci/setup-res.c",
    ),
    FailureRule(
        "iommu-fault",
        r"DMAR:? ?\[(?:DMA (?:Read|Write)|fault reason|INTR-REMAP)|DMAR: DRHD: handling fault status"
        r"|DMAR: INTR-REMAP: Request device|AMD-Vi: Event logged \[|AMD-Vi: Completion-Wait loop timed out"
        r"|arm-smmu\S{0,20} \S+ (?:Unhandled context fault|event 0x[0-9a-f]{1,4} received)"
        r"|memdescMapIommu[^\n]+not addressable by GPU|DMA address not in addressable range of device"
        r"|\[?IO_PAGE_FAULT\b|PTE (?:Read|Write) access is not set",
        "the IOMMU rejected a device's access to memory: transfers between cards under an IOMMU, addresses out of "
        "the card's range, or a bug in the firmware's map or in a driver",
        "Find the device by the address in the line (lspci -s). Try iommu=pt on the kernel's command line; or, if no "
        "virtual machine needs the IOMMU, switch it off in the firmware's settings, and update firmware and driver",
        "Linux drivers/iommu: intel/dmar.c, amd/iommu.c; NVIDIA's NCCL troubleshooting guide, PCI access control",
    ),
    FailureRule(
        "vgpu-driver",
        r"VGPU message [0-9]{1,4} failed|vmiop_log: [^\n]*(?:error|failed)"
        r"|nvidia-vgpu-(?:vfio|mgr)[^\n]*(?:error|failed|mismatch)",
        "the device is a vGPU, or provides vGPUs, and the driver is not NVIDIA's vGPU driver of the matching release",
        "Install NVIDIA's guest driver of the same release as the hypervisor's vGPU manager (from NVIDIA's licensing "
        "portal), or pass the whole card through",
        "NVIDIA's vGPU software user guide",
    ),
)
