# Compiles NVIDIA's own kernel module (R470, Debian's non-free package) for a kernel, in the root filesystem of a virtual
# machine that is not running: natively it takes minutes, inside an emulated machine hours.
# root: that root filesystem. kernel: the release. module: where the module is to be.
: "${root:?}"
: "${kernel:?}"
: "${module:?}"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --bind /dev "$root/dev"
# shellcheck disable=SC2016  # the text in single quotes is for the shell in there
chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -euc '
kernel=$1
apt-get update
apt-get install -y --no-install-recommends build-essential dkms "linux-headers-$kernel"
cd /tmp
apt-get download nvidia-tesla-470-kernel-dkms
dpkg --fsys-tarfile nvidia-tesla-470-kernel-dkms_*.deb | tar -x -C / ./usr/src
source=$(ls -d /usr/src/nvidia-tesla-470-*)
version=${source##*-}
dkms add -m nvidia-tesla-470 -v "$version"
dkms build -m nvidia-tesla-470 -v "$version" -k "$kernel"
strip -g -o /tmp/real.ko "/var/lib/dkms/nvidia-tesla-470/$version/$kernel/x86_64/module/nvidia-tesla-470.ko"
' sh "$kernel"
mv "$root/tmp/real.ko" "$module"
