# Installs kernel, initramfs and boot loaders into the root filesystem of a host that is not running, in a mount and
# process namespace of its own: the packages' scripts look at /proc, /sys and /dev.
# root: that root filesystem. packages: their names.
: "${root?}"
: "${packages:?}"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --bind /dev "$root/dev"
eval "set -- $packages"
# The lists may be some weeks old.
chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
    sh -euc 'apt-get update; apt-get install -y --no-install-recommends "$@"' sh "$@"
