# Compiles NVIDIA's own kernel module, of a non-free package of Debian's, for a kernel, in the root filesystem of a virtual
# machine that is not running: natively it takes minutes, inside an emulated machine hours.
# root: that root filesystem. kernel: the release. package: with the source. name: of the module for DKMS. archive: empty,
# or one of its suites and the one beside it that has the package. module: where the module is to be.
: "${root:?}"
: "${kernel:?}"
: "${package:?}"
: "${name:?}"
: "${archive?}"
: "${module:?}"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --bind /dev "$root/dev"
# shellcheck disable=SC2016  # the text in single quotes is for the shell in there
chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -euc '
kernel=$1 package=$2 name=$3 archive=$4
if [ -n "$archive" ]; then
    mirror=$(apt-get indextargets --format "\$(REPO_URI)" "Created-By: Packages" "Release: ${archive% *}" | head -n 1)
    echo "deb $mirror ${archive#* } non-free" >/etc/apt/sources.list.d/other.list
fi
apt-get update
dpkg -s dkms "linux-headers-$kernel" >/dev/null 2>&1 ||
    apt-get install -y --no-install-recommends build-essential dkms "linux-headers-$kernel"
cd /tmp
apt-get download "$package${archive:+/${archive#* }}"
dpkg --fsys-tarfile "$package"_*.deb | tar -x -C / ./usr/src
source=$(ls -d "/usr/src/$name"-[0-9]*)
version=${source##*-}
dkms add -m "$name" -v "$version"
dkms build -m "$name" -v "$version" -k "$kernel" || { cat "/var/lib/dkms/$name/$version/build/make.log"; exit 1; }
cd "/var/lib/dkms/$name/$version/$kernel/x86_64/module"
[ -e "$name.ko" ] || unxz "$name.ko.xz"
strip -g -o /tmp/real.ko "$name.ko"
' sh "$kernel" "$package" "$name" "$archive"
mv "$root/tmp/real.ko" "$module"
