# Installs the headers $package again, whose files were deleted while dpkg counts them as installed. Most files are in
# the packages that it depends on. Needs lists.sh of hostwright.resources.packages.
# shellcheck disable=SC2086  # $apt_options, $parts and $auto are words
: "${package:?}"
: "${apt_options:?}"
: "${patiently:?}"
again() {
  DEBIAN_FRONTEND=noninteractive apt-get $apt_options --no-install-recommends --allow-change-held-packages \
    --reinstall install $parts
}
parts=$(apt-cache depends --recurse --installed --important "$package" | grep '^linux-' | sort -u)
auto=$(apt-mark showauto $parts)
again || { fetch_lists; again || { not_fetched "$package"; exit 100; }; }
# What apt is named counts as wanted for itself from then on.
if [ -n "$auto" ]; then sh -c "$patiently" patiently apt-mark auto $auto; fi
