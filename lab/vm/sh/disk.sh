# Makes the disk of a virtual machine: an EFI system partition with shim and GRUB, and a root filesystem.
# root: the host's files. image: the new file. size_bytes: of the whole disk. uuid: of the root filesystem.
: "${root:?}"
: "${image:?}"
: "${size_bytes:?}"
: "${uuid:?}"
sector=512
esp_start=2048      # sectors: 1 MiB, as every partitioning program begins
esp_size=131072     # 64 MiB
root_start=$((esp_start + esp_size))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/EFI/BOOT" "$work/EFI/debian"
cp "$root/usr/lib/shim/shimx64.efi.signed" "$work/EFI/BOOT/BOOTX64.EFI"
cp "$root/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed" "$work/EFI/BOOT/grubx64.efi"
cat >"$work/EFI/debian/grub.cfg" <<END
search.fs_uuid $uuid root
set prefix=(\$root)'/boot/grub'
configfile \$prefix/grub.cfg
END
truncate -s $((esp_size * sector)) "$work/esp"
mkfs.vfat -n ESP "$work/esp" >/dev/null
mcopy -s -i "$work/esp" "$work/EFI" ::

rm -f "$image"
truncate -s "$size_bytes" "$image"
sfdisk -q "$image" <<END
label: gpt
start=$esp_start, size=$esp_size, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B
start=$root_start, type=0FC63DAF-8483-4772-8E79-3D69D8477DE4
END
dd if="$work/esp" of="$image" bs=$sector seek=$esp_start conv=notrunc,sparse status=none
# 1 MiB at the end is the partition table's copy.
blocks=$(((size_bytes - root_start * sector) / 1024 - 1024))
mkfs.ext4 -q -F -U "$uuid" -d "$root" -E offset=$((root_start * sector)) "$image" "${blocks}k" 2>/dev/null
