
# --- what keeps an installation from starting ---------------------------------------------------------------------------

check_root() {
    [ "$(id -u)" -eq 0 ] && return
    error "nvidia-installer must be run as root"
    exit 1
}

check_tool() { # TOOL PACKAGE, of those that every use needs
    command -v "$1" >/dev/null && return
    error "Unable to find the ${3:-system} utility \`$1\`; please make sure you have the package '$2' installed.  If you do have $2 installed, then please check that \`$1\` is in your PATH."
    exit 1
}

check_system_tools() {
    check_tool ldconfig glibc
    check_tool grep grep
    check_tool sed sed
    for tool in modprobe rmmod lsmod depmod; do check_tool $tool "module-init-tools' or 'kmod" module; done
}

check_for_cards() {
    for device in /sys/bus/pci/devices/*; do
        [ "$(cat "$device/vendor" 2>/dev/null)" != 0x10de ] || return 0
    done
    warn "You do not appear to have an NVIDIA GPU supported by the $VERSION NVIDIA Linux graphics driver installed in this system.  For further details, please see the appendix SUPPORTED NVIDIA GRAPHICS CHIPS in the README available on the Linux driver download page at www.nvidia.com."
}

check_for_x() {
    for display in 0 1 2 3 4 5 6 7; do
        lock=/tmp/.X$display-lock
        [ -r "$lock" ] || continue
        pid=$(tr -cd 0-9 <"$lock")
        [ -n "$pid" ] && [ -d "/proc/$pid" ] || continue
        log "The file '$lock' exists and appears to contain the process ID '$pid' of a running X server."
        if [ -n "$no_x_check" ]; then
            log "Continuing per the '--no-x-check' option."
            continue
        fi
        error "You appear to be running an X server; please exit X before installing.  For further details, please see the section INSTALLING THE NVIDIA DRIVER in the README available on the Linux driver download page at www.nvidia.com."
        return 1
    done
}

is_loaded() { [ -d "/sys/module/$(echo "$1" | tr - _)" ]; }

# In the order in which they sit on each other.
CONFLICTING="nv_peer_mem nvidia-peermem nvidia-vgpu-vfio nvidia-uvm nvidia-drm nvidia-modeset nvidia"

unload_quietly() { # what cannot be unloaded stays until the next boot
    for module in $CONFLICTING; do
        ! is_loaded $module || rmmod $module >>"$log_file" 2>&1
    done
}

unload_modules() {
    if [ -n "$no_kernel_module" ]; then
        log "Not installing a kernel module; skipping the \"is an NVIDIA kernel module loaded?\" test."
        return 0
    fi
    for module in $CONFLICTING; do
        is_loaded $module || continue
        rmmod $module >>"$log_file" 2>&1
        is_loaded $module || continue
        error "An NVIDIA kernel module '$module' appears to already be loaded in your kernel.  This may be because it is in use (for example, by an X server, a CUDA program, or the NVIDIA Persistence Daemon), but this may also happen if your kernel was configured without support for module unloading.  Please be sure to exit any programs that may be using the GPU(s) before attempting to upgrade your driver.  If no GPU-based programs are running, you know that your kernel supports module unloading, and you still receive this message, then an error may have occurred that has corrupted an NVIDIA kernel module's usage count, for which the simplest remedy is to reboot your computer."
        return 1
    done
}

check_existing_driver() {
    installed=$(installed_version)
    if [ -n "$kernel_module_only" ]; then
        if [ -z "$installed" ]; then
            error "No NVIDIA driver is currently installed; the '--kernel-module-only' option can only be used to install the NVIDIA kernel module on top of an existing driver installation."
            return 1
        elif [ "$installed" != "$VERSION" ]; then
            error "The '--kernel-module-only' option can only be used to install a kernel module on top of an existing driver installation of the same driver version.  The existing driver installation is $installed, but the kernel module is $VERSION."
            return 1
        fi
    elif [ -n "$installed" ]; then
        log "There appears to already be a driver installed on your system (version: $installed).  As part of installing this driver (version: $VERSION), the existing driver will be uninstalled.  Are you sure you want to continue? (Answer: Continue installation)"
    fi
}

check_alternates() {
    [ -z "$no_alternates" ] || return 0
    if [ -e /usr/lib/nvidia/alternate-install-present ]; then
        log "The NVIDIA driver appears to have been installed previously using a different installer. To prevent potential conflicts, it is recommended either to update the existing installation using the same mechanism by which it was originally installed, or to uninstall the existing installation before installing this driver. (Answer: Abort installation)"
        error "The installation was canceled due to the availability or presence of an alternate driver installation. Please see $log_file for more details."
        return 1
    elif [ -e /usr/lib/nvidia/alternate-install-available ]; then
        log "An alternate method of installing the NVIDIA driver was detected. (This is usually a package provided by your distributor.) A driver installed via that method may integrate better with your system than a driver installed by nvidia-installer. (Answer: Continue installation)"
    fi
}

nouveau_is_bound() {
    for device in /sys/bus/pci/devices/*; do
        case $(readlink "$device/driver") in */nouveau) return 0 ;; esac
    done
    return 1
}

write_nouveau_files() {
    written=
    for directory in /etc/modprobe.d /usr/lib/modprobe.d; do
        [ -d $directory ] || continue
        file=$directory/nvidia-installer-disable-nouveau.conf
        printf '# generated by nvidia-installer\nblacklist nouveau\noptions nouveau modeset=0\n' >$file || continue
        written=$file${written:+, $written}
    done
    tell "One or more modprobe configuration files to disable Nouveau have been written.  For some distributions, this may be sufficient to disable Nouveau; other distributions may require modification of the initial ramdisk.  Please reboot your system and attempt NVIDIA driver installation again.  Note if you later wish to re-enable Nouveau, you will need to delete these files: $written"
}

check_nouveau() {
    [ -z "$no_nouveau_check" ] || return 0
    pointer="Please consult the NVIDIA driver README and your Linux distribution's documentation for details on how to correctly disable the Nouveau kernel driver."
    bound=
    if nouveau_is_bound; then
        bound=yes
        error "The Nouveau kernel driver is currently in use by your system.  This driver is incompatible with the NVIDIA driver, and must be disabled before proceeding.  $pointer"
    elif [ -z "$disable_nouveau" ]; then
        return 0
    fi
    present=$(ls /etc/modprobe.d/nvidia-installer-disable-nouveau.conf /usr/lib/modprobe.d/nvidia-installer-disable-nouveau.conf 2>/dev/null | paste -sd, -)
    if [ -n "$present" ]; then
        warn "One or more modprobe configuration files to disable Nouveau are already present at: $present.  Please be sure you have rebooted your system since these files were written.  If you have rebooted, then Nouveau may be enabled for other reasons, such as being included in the system initial ramdisk or in your X configuration file.  $pointer"
    fi
    [ -z "$disable_nouveau" ] || write_nouveau_files
    [ -z "$bound" ]
}
