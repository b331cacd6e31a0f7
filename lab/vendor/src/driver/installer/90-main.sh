
# --- what was asked for -------------------------------------------------------------------------------------------------

install_driver() {
    check_for_cards
    check_for_x || give_up
    unload_modules || give_up
    log "Installing NVIDIA driver version $VERSION."
    check_existing_driver || cancelled
    check_alternates || cancelled
    check_nouveau || give_up
    if [ -n "$no_kernel_module" ]; then
        warn "You specified the '--no-kernel-module' command line option, nvidia-installer will not install a kernel module as part of this driver installation, and it will not remove existing NVIDIA kernel modules not part of an earlier NVIDIA driver installation.  Please ensure that an NVIDIA kernel module matching this driver version is installed separately."
        [ -z "$dkms" ] || warn "You have specified both the '--no-kernel-module' and the '--dkms' command line options. The '--dkms' option will be ignored."
        dkms=
    elif [ -z "$dkms" ]; then
        build_modules || give_up  # with DKMS nothing is built, nor looked for, before the old driver is gone
    fi
    if [ -z "$kernel_module_only" ]; then
        remove_existing_driver
        begin_record
        install_files || give_up
    fi
    if [ -z "$no_kernel_module$dkms" ]; then install_built_modules || give_up; fi
    refresh_caches
    if [ -n "$dkms" ]; then dkms_install || give_up; fi
    if [ -z "$no_kernel_module" ]; then load_driver || give_up; fi
    tell "Installation of the $DESCRIPTION (version: $VERSION) is now complete."
}

report_driver() {
    former=$(installed_version)
    if [ -z "$former" ]; then
        echo "There is no NVIDIA driver currently installed."
    else
        echo "The currently installed driver is: '$DESCRIPTION' (version: $former)."
    fi
}

check_sanity() {
    former=$(installed_version)
    if [ -z "$former" ]; then
        error "Unable to find any installed NVIDIA driver.  The sanity check feature is only intended to be used with an existing NVIDIA driver installation."
        exit 1
    fi
    problems=$(each_entry check_entry 2>&1)
    if [ -n "$problems" ]; then
        printf '%s\n' "$problems" >&2
        tell "The '$DESCRIPTION' installation has been altered since it was originally installed.  It is recommended that you reinstall."
        exit 1
    fi
    tell "'$DESCRIPTION' (version: $former) appears to be installed correctly."
}

uninstall_driver() {
    former=$(installed_version)
    if [ -z "$former" ]; then
        tell "There is no NVIDIA driver currently installed."
        return
    fi
    do_uninstall
    tell "Uninstallation of existing driver: $DESCRIPTION ($former) is complete."
}

case ${PROGRAM##*/} in nvidia-uninstall) uninstall=yes ;; esac
parse "$@"
if [ -n "$dkms" ] && [ -n "$signing_secret" ] && [ -n "$signing_public" ]; then dkms='' dkms_disabled=yes; fi
if [ -z "$log_file" ]; then
    log_file=/var/log/nvidia-installer.log
    [ -z "$uninstall" ] || log_file=/var/log/nvidia-uninstall.log
fi
open_log "$@"
[ -z "${dkms_disabled:-}" ] || warn "You selected the DKMS kernel module option, and also specified a pair of module signing keys. Keys cannot be managed securely under the automated DKMS framework. The DKMS option will be disabled."
check_root
check_system_tools
if [ -n "$driver_info" ]; then
    report_driver
elif [ -n "$sanity" ]; then
    check_sanity
elif [ -n "$uninstall" ]; then
    uninstall_driver
else
    cd "$(dirname "$PROGRAM")" || exit 1
    install_driver
fi
