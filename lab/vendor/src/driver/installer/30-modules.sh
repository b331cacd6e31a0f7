
# --- the kernel modules -------------------------------------------------------------------------------------------------

MODULES="nvidia nvidia-uvm nvidia-modeset nvidia-drm"
kernel() { echo "${kernel_name:-$(uname -r)}"; }

wanted_modules() {
    for module in $MODULES; do
        listed "$module" "$excluded " || echo "$module"
    done
}

concurrency() { echo "${jobs:-$(nproc)}"; }

# What process_dkms_conf of NVIDIA's installer does; only --no-cc-version-check sets IGNORE_CC_MISMATCH.
fill_dkms_conf() { # TEMPLATE TARGET
    modules=$(wanted_modules | awk '{ printf "BUILT_MODULE_NAME[%d]=\"%s\"\\nDEST_MODULE_LOCATION[%d]=\"/kernel/drivers/video\"\\n", NR-1, $1, NR-1 }')
    sed -e "s|__VERSION_STRING|$VERSION|; s|__JOBS|$(concurrency)|; s|__EXCLUDE_MODULES|${excluded# }|" \
        -e "s|__IGNORE_CC_MISMATCH|$ignore_cc|; s|__DKMS_MODULES|$modules|" "$1" >"$2"
}

run_dkms() { # ACTION ARGUMENT…
    if ! command -v dkms >/dev/null; then
        error "Failed to find dkms on the system!"
        return 1
    fi
    log "Running \`$(command -v dkms) $*\`"
    run dkms "$@" && return 0
    error "Failed to run \`$(command -v dkms) $*\`: $output"
    return 1
}

dkms_install() {
    log "Installing DKMS kernel module:"
    for action in add build install; do
        run_dkms $action -m nvidia -v "$VERSION" -k "$(kernel)" && continue
        log "error."
        error "Failed to install the kernel module through DKMS. No kernel module was installed; please try installing again without DKMS, or check the DKMS logs for more information."
        return 1
    done
    log "done."
}

check_development_tools() {
    for tool in cc make ld; do
        case $tool in cc) package="gcc"; [ -z "${CC:-}" ] || continue ;; ld) package="binutils" ;; *) package="make" ;; esac
        command -v $tool >/dev/null && continue
        error "Unable to find the development tool \`$tool\` in your path; please make sure that you have the package '$package' installed.  If $package is installed on your system, then please check that \`$tool\` is in your PATH."
        return 1
    done
    [ -e /usr/include/stdio.h ] && return 0
    error "You do not appear to have libc header files installed on your system.  Please install your distribution's libc development package."
    return 1
}

find_kernel_source() {
    advice="Please make sure you have installed the kernel source files for your kernel and that they are properly configured; on Red Hat Linux systems, for example, be sure you have the 'kernel-source' or 'kernel-devel' RPM installed.  If you know the correct kernel source files are installed, you may specify the kernel source path with the '--kernel-source-path' command line option."
    if [ -z "$kernel_source" ]; then
        kernel_source=/lib/modules/$(kernel)/build
        if [ ! -d "$kernel_source/" ]; then
            error "Unable to find the kernel source tree for the currently running kernel.  $advice"
            return 1
        fi
    elif [ ! -d "$kernel_source" ]; then
        error "The kernel source path '$kernel_source' does not exist.  $advice"
        return 1
    fi
    log "Kernel source path: '$kernel_source'"
}

# Without DKMS: built in a temporary directory before the old driver is touched. NVIDIA's installer also loads the
# module once here; in the lab that is left to the modprobe at the end.
build_modules() {
    check_development_tools && find_kernel_source || return 1
    if ! run sh kernel/cc-version-check.sh "${CC:-cc}" "$kernel_source"; then
        if [ -z "$silent$ignore_cc" ]; then log "The CC version check failed (Answer: Ignore CC version check)"; fi
        warn "Ignoring CC version mismatch: $output"
    fi
    log "Cleaning kernel module build directory."
    log "Building kernel modules:"
    if ! run env IGNORE_CC_MISMATCH=1 make -C kernel -j"$(concurrency)" NV_EXCLUDE_BUILD_MODULES="${excluded# }" \
        SYSSRC="$kernel_source" KERNEL_UNAME="$(kernel)" modules; then
        error "An error occurred while performing the step: \"Building kernel modules\". See /var/log/nvidia-installer.log for details."
        printf '%s\n' "$output" >>"$log_file"
        return 1
    fi
    for module in $(wanted_modules); do
        [ ! -e "kernel/$module.ko" ] || continue
        error "The $module kernel module was not created."
        return 1
    done
    log "Kernel module compilation complete."
}

install_built_modules() {
    for module in $(wanted_modules); do
        put_file 644 "kernel/$module.ko" "/lib/modules/$(kernel)/kernel/drivers/video/$module.ko" || return 1
    done
}

# NVIDIA's installer loads no module at all when it was told to leave nvidia-drm out.
load_driver() {
    ! listed nvidia-drm "$excluded " || return 0
    run modprobe nvidia-drm && return 0
    printf '%s\n' "$output" >>"$log_file"
    error "Unable to load the 'nvidia-drm' kernel module."
    return 1
}
