"""Lab hosts of the kind ``vm``: whole machines under QEMU, with Debian's own kernel, initramfs and GRUB."""
