#!/bin/sh
# hostwright stand-in: does CC have the major and minor version of the compiler that built the kernel's configuration?
# usage: cc-version-check.sh CC KERNEL-SOURCE; IGNORE_CC_MISMATCH=1 lets a mismatch pass.
config=$2/.config
[ "${IGNORE_CC_MISMATCH:-}" != 1 ] && [ -r "$config" ] || exit 0
kernel=$(sed -n 's/^CONFIG_CC_VERSION_TEXT="\(.*\)"$/\1/p' "$config")
[ -n "$kernel" ] || exit 0
here=$($1 --version 2>/dev/null | head -n 1)
major() { echo "$1" | sed 's/([^)]*)//g' | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1 | cut -d. -f1,2; }
[ "$(major "$kernel")" != "$(major "$here")" ] || exit 0
cat <<END

Compiler version check failed:

The major and minor number of the compiler used to
compile the kernel:

$kernel

does not match the compiler used here:

$here

It is recommended to set the CC environment variable
to the compiler that was used to compile the kernel.

To skip the test and silence this warning message, set
the IGNORE_CC_MISMATCH environment variable to "1".
However, mixing compiler versions between the kernel
and kernel modules can result in subtle bugs that are
difficult to diagnose.

*** Failed CC version check. Bailing out! ***

END
exit 1
