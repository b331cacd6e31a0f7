# On a host with the lab's driver from its .run: packs what is installed as packages with Ubuntu's names, every one a
# stand-in, the module compiled, in a signed repository at /srv/driver, beside a CUDA toolkit that only says its version;
# the key is /srv/driver/key.asc.
: "${version:?}"
: "${validity:?}"
kernel=$(uname -r)
work=/root/driver-packages libraries=/usr/lib/x86_64-linux-gnu repository=/srv/driver
rm -rf "$work" "$repository"
mkdir -p "$repository"

pack() { # NAME VERSION [DEPENDS]: what lies in $work/NAME
  mkdir -p "$work/$1/DEBIAN"
  {
    printf 'Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: lab <lab@example.org>\n' "$1" "$2"
    [ -z "${3:-}" ] || printf 'Depends: %s\n' "$3"
    echo 'Description: hostwright stand-in of a part of the driver'
  } >"$work/$1/DEBIAN/control"
  dpkg-deb --root-owner-group -Znone -b "$work/$1" "$repository" >/dev/null
}

name=libnvidia-compute-470-server
mkdir -p "$work/$name$libraries" "$work/$name/DEBIAN"
cp -a "$libraries"/libcuda.so* "$libraries"/libnvidia-ml.so* "$libraries"/libnvidia-cfg.so* "$work/$name$libraries"
echo 'activate-noawait ldconfig' >"$work/$name/DEBIAN/triggers"
pack "$name" "$version-0lab1"

name=nvidia-utils-470-server
mkdir -p "$work/$name/usr/bin"
cp -a /usr/bin/nvidia-smi /usr/bin/nvidia-modprobe "$work/$name/usr/bin"
pack "$name" "$version-0lab1" "libnvidia-compute-470-server (= $version-0lab1)"

name=nvidia-compute-utils-470-server
mkdir -p "$work/$name/usr/bin" "$work/$name/lib/systemd/system"
cp -a /usr/bin/nvidia-persistenced "$work/$name/usr/bin"
cp /etc/systemd/system/nvidia-persistenced.service "$work/$name/lib/systemd/system"
pack "$name" "$version-0lab1"

name=linux-modules-nvidia-470-server-$kernel
place=$work/$name/lib/modules/$kernel/kernel/nvidia-470-server
mkdir -p "$place" "$work/$name/DEBIAN"
cp "/lib/modules/$kernel"/updates/dkms/nvidia*.ko* "$place"
for script in postinst postrm; do
  printf '#!/bin/sh\ndepmod -a %s || true\n' "$kernel" >"$work/$name/DEBIAN/$script"
  chmod 755 "$work/$name/DEBIAN/$script"
done
pack "$name" 1.2.3+1
for name in "linux-objects-nvidia-470-server-$kernel" "linux-signatures-nvidia-$kernel"; do
  mkdir -p "$work/$name"
  pack "$name" 1.2.3+1
done

name=cuda-toolkit-11-2
prefix=$work/$name/usr/local/cuda-11.2
mkdir -p "$prefix/bin" "$prefix/targets/x86_64-linux/lib" "$prefix/extras/CUPTI/lib64"
printf '#!/bin/sh\necho Cuda compilation tools, release 11.2, V11.2.152\n' >"$prefix/bin/nvcc"
chmod 755 "$prefix/bin/nvcc"
echo stand-in >"$prefix/targets/x86_64-linux/lib/libcudart.so.11.2.152"
pack "$name" 11.2.2-1

cd "$repository" || exit
for file in *.deb; do
  dpkg-deb -f "$file"
  printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$file" "$(stat -c %s "$file")" "$(sha256sum "$file" | cut -d' ' -f1)"
done >Packages
{
  printf 'Origin: lab\nLabel: lab\nSuite: lab\nCodename: lab\nDate: %s\nArchitectures: amd64\n' "$(date -Ru)"
  printf 'SHA256:\n %s %s Packages\n' "$(sha256sum Packages | cut -d' ' -f1)" "$(stat -c %s Packages)"
} >Release
GNUPGHOME=/root/driver-key
export GNUPGHOME
rm -rf "$GNUPGHOME"
mkdir -m 700 "$GNUPGHOME"
gpg --batch --quiet --passphrase '' --quick-generate-key 'Lab <lab@example.org>' ed25519 sign "$validity" 2>/dev/null
gpg --batch --quiet --clearsign -o InRelease Release 2>/dev/null
gpg --batch --export --armor >key.asc
gpg --batch --with-colons --list-keys 2>/dev/null | sed -n 's/^fpr:*\([0-9A-F]*\):/\1/p'
