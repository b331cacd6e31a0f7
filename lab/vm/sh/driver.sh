# After install.sh: installs a kernel with its headers, and a set of packages whose module DKMS builds for it.
# root: as there. files: of the kernel, below the archive's pool/main/l, and their SHA-256 sums, in turn.
# packages: as name=version.
: "${root?}"
: "${files:?}"
: "${packages:?}"
# shellcheck disable=SC2016  # the text in single quotes is for the shell in there
chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive files="$files" packages="$packages" \
    sh -euc '
archive=$(apt-get indextargets --format "\$(REPO_URI)" "Created-By: Packages" "Release: trixie" | head -n 1)
mkdir /root/kernel
cd /root/kernel
eval "set -- $files"
while [ "$#" -gt 0 ]; do
    /usr/lib/apt/apt-helper download-file "${archive}pool/main/l/$1" "$PWD/${1##*/}" "SHA256:$2"
    shift 2
done
apt-get install -y --no-install-recommends ./*.deb build-essential dkms
cd /
rm -r /root/kernel
eval "set -- $packages"
apt-get install -y --no-install-recommends "$@"
'
