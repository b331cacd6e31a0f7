"""Lab hosts of the kind ``vm``: QEMU virtual machines with Debian's kernel, initramfs and GRUB."""
