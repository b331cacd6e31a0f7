#!/bin/sh
# hostwright stand-in for nvidia-installer __VERSION: the options, the order of steps, the refusals and their sentences,
# the log and the exit status (0 or 1) are those of NVIDIA's installer of the R470 branch; what it installs is not NVIDIA's.
# It is assembled from lab/vendor/src/driver/installer/ of the Hostwright repository.
set -u
umask 022
VERSION=__VERSION
DESCRIPTION="NVIDIA Accelerated Graphics Driver for Linux-x86_64"
PROGRAM=$0

# The option table of R470, by kind. Anything else ends with "Invalid commandline".
FLAGS=" version help advanced-options accept-license driver-info uninstall skip-module-unload sanity expert no-questions
 silent no-ncurses-color no-nvidia-modprobe no-precompiled-interface no-abi-note no-rpms no-backup no-recursion
 kernel-module-only no-kernel-module no-x-check no-nouveau-check disable-nouveau run-nvidia-xconfig
 no-sigwinch-workaround no-cc-version-check no-distro-scripts no-opengl-files no-wine-files no-kernel-module-source dkms
 no-check-for-alternate-installs no-unified-memory no-drm no-peermem force-libglx-indirect no-libglx-indirect
 skip-depmod debug help-args-only advanced-options-args-only add-this-kernel no-runlevel-check no-network "
VALUES=" x-prefix xfree86-prefix x-module-path x-library-path x-sysconfig-path opengl-prefix opengl-libdir wine-prefix
 wine-libdir compat32-chroot compat32-prefix compat32-libdir installer-prefix utility-prefix utility-libdir
 documentation-prefix application-profile-path kernel-include-path kernel-source-path kernel-output-path
 kernel-install-path proc-mount-point log-file-name tmpdir ui kernel-name precompiled-kernel-interfaces-path
 force-selinux selinux-chcon-type kernel-module-source-prefix kernel-module-source-dir module-signing-secret-key
 module-signing-public-key module-signing-script module-signing-key-path module-signing-hash module-signing-x509-hash
 concurrency-level glvnd-egl-config-path egl-external-platform-config-path override-file-type-destination
 systemd-unit-prefix systemd-sleep-prefix systemd-sysconf-prefix kernel-module-build-directory rpm-file-list force-tls
 force-tls-compat32 "
BOOLEANS=" install-compat32-libs install-libglvnd systemd install-vdpau-wrapper glvnd-glx-client glvnd-egl-client "
# What R580 knows beside them.
[ "${VERSION%%.*}" = 470 ] || VALUES="$VALUES kernel-module-type " FLAGS="$FLAGS skip-module-load "

silent= uninstall= sanity= driver_info= dkms= disable_nouveau= no_nouveau_check= no_x_check= no_kernel_module=
kernel_module_only= ignore_cc= no_alternates= skip_depmod= signing_secret= signing_public= excluded=
kernel_name= kernel_source= log_file= jobs= keep_loaded=

listed() {
    case $2 in *[[:space:]]"$1"[[:space:]]*) return 0 ;; esac
    return 1
}

invalid() {
    [ -z "${1:-}" ] || echo "$PROGRAM: $1" >&2
    printf '\nERROR: Invalid commandline, please run `%s --help` for usage information.\n\n' "$PROGRAM" >&2
    exit 1
}

long_name() {
    case $1 in
    v) echo version ;; h) echo help ;; A) echo advanced-options ;; a) echo accept-license ;; i) echo driver-info ;;
    e) echo expert ;; q) echo no-questions ;; s) echo silent ;; c) echo no-ncurses-color ;; k) echo kernel-name ;;
    n) echo no-precompiled-interface ;; b) echo no-backup ;; r) echo no-recursion ;; K) echo kernel-module-only ;;
    z) echo no-nouveau-check ;; Z) echo disable-nouveau ;; X) echo run-nvidia-xconfig ;; j) echo concurrency-level ;;
    m) echo kernel-module-build-directory ;; d) echo debug ;; N) echo no-network ;; *) echo "$1" ;;
    esac
}

usage() {
    cat <<END

nvidia-installer:  version $VERSION (hostwright stand-in)
  The NVIDIA Software Installer for Unix/Linux.

$PROGRAM [options]
 options:$FLAGS
 options with a value:$VALUES
 options that --no- negates:$BOOLEANS
END
    exit 0
}

apply() { # NAME VALUE
    case $1 in
    version) echo "nvidia-installer:  version $VERSION (hostwright stand-in)"; exit 0 ;;
    help | advanced-options | help-args-only | advanced-options-args-only) usage ;;
    silent | no-questions) silent=yes ;;
    ui) [ "$2" != none ] || silent=yes ;;
    uninstall) uninstall=yes ;;
    sanity) sanity=yes ;;
    driver-info) driver_info=yes ;;
    dkms) dkms=yes ;;
    disable-nouveau) disable_nouveau=yes ;;
    no-nouveau-check) no_nouveau_check=yes ;;
    no-x-check) no_x_check=yes ;;
    no-kernel-module) no_kernel_module=yes kernel_module_only= ;;
    kernel-module-only) kernel_module_only=yes no_kernel_module= ;;
    no-cc-version-check) ignore_cc=1 ;;
    no-check-for-alternate-installs) no_alternates=yes ;;
    skip-depmod) skip_depmod=yes ;;
    skip-module-unload) keep_loaded=yes ;;
    no-unified-memory) excluded="$excluded nvidia-uvm" ;;
    no-drm) excluded="$excluded nvidia-drm" ;;
    kernel-name) kernel_name=$2 ignore_cc=1 ;;
    kernel-source-path) kernel_source=$2 ;;
    log-file-name) log_file=$2 ;;
    concurrency-level) jobs=$2 ;;
    module-signing-secret-key) signing_secret=$2 ;;
    module-signing-public-key) signing_public=$2 ;;
    no-install-vdpau-wrapper | no-glvnd-*) ;;
    esac
}

parse() {
    while [ $# -gt 0 ]; do
        word=$1
        shift
        case $word in
        --) return ;;
        --*) name=${word#--} ;;
        -*) name=${word#-} ;;
        *) invalid "invalid option: \"$word\"" ;;
        esac
        value=${name#*=}
        [ "$value" != "$name" ] || value=
        given=$name
        name=$(long_name "${name%%=*}")
        if listed "$name" "$FLAGS"; then
            case $given in *=*) invalid "option \"$word\" does not take an argument, but was given an argument of \"$value\"." ;; esac
        elif listed "$name" "$VALUES"; then
            case $given in
            *=*) ;;
            *)
                [ $# -gt 0 ] || invalid "option \"$word\" requires an argument."
                value=$1
                shift ;;
            esac
        elif ! listed "${name#no-}" "$BOOLEANS"; then
            invalid "unrecognized option: \"$word\""
        fi
        apply "$name" "$value"
    done
}
