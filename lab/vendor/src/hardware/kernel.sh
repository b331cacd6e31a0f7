# Hostwright lab: the part of the kernel that made-up cards need. Read by boot, insert and remove.
#
# The lab's hosts share the machine's kernel, which has no NVIDIA card and takes no module. STATE plays the kernel's
# memory: it lives in /run, so a reboot forgets it, and the boot unit shows it under /sys and /proc.
LAB=/opt/hostwright-lab/hardware
STATE=/run/hostwright-lab/hardware

# Device files have the numbers of /dev/null: they can be opened and held, which those of a missing driver cannot.
device_file() {
    [ -e "/dev/$1" ] || mknod -m 666 "/dev/$1" c 1 3
}

# on_disk FIELD MODULE: what modinfo says of a module's file; Debian's have names of their own there.
on_disk() {
    for file in "$2" "nvidia-current-open${2#nvidia}" "nvidia-current${2#nvidia}"; do
        if modinfo -F "$1" "$(echo "$file" | tr _ -)" 2>/dev/null; then return 0; fi
    done
    return 1
}

# put MODULE VERSION: the module is in the kernel from now on.
put() {
    mkdir -p "$STATE/module/$1/holders" "$STATE/module/$1/parameters"
    echo "$2" >"$STATE/module/$1/version"
    echo live >"$STATE/module/$1/initstate"
    echo 0 >"$STATE/module/$1/refcnt"
    case $1 in
    nvidia) drive "$2" ;;
    nvidia_uvm) device_file nvidia-uvm; device_file nvidia-uvm-tools ;;
    nvidia_modeset) device_file nvidia-modeset ;;
    esac
}

# bind DRIVER BUS: the driver has the card. Its own directory is there too: lspci 3.9 names no driver without it.
bind() {
    mkdir -p "$STATE/drivers/$1"
    ln -sfn "../../../../bus/pci/drivers/$1" "$STATE/pci/$2/driver"
    ln -sfn "../../devices/$2" "$STATE/drivers/$1/$2"
}

# unbind DRIVER: it has no card any more.
unbind() {
    for link in "$STATE"/pci/*/driver; do
        case $(readlink "$link") in */"$1") rm "$link" ;; esac
    done
    rm -rf "$STATE/drivers/$1"
}

# The driver takes the cards that it supports: LAB/cards/<bus>/minimum-driver is the first branch that does.
drive() {
    minor=0
    mkdir -p "$STATE/proc/nvidia/gpus" "$STATE/persistence"
    chmod 777 "$STATE/persistence"  # the persistence daemon drops its privileges
    kind='x86_64 Kernel Module'
    case $(on_disk license nvidia) in Dual*GPL*) kind='Open Kernel Module for x86_64' ;; esac
    printf 'NVRM version: NVIDIA UNIX %s  %s  (hostwright stand-in)\nGCC version:  none\n' "$kind" "$1" \
        >"$STATE/proc/nvidia/version"
    device_file nvidiactl
    for card in "$LAB"/cards/*; do
        supported "$card" "$1" || continue
        bus=${card##*/}
        bind nvidia "$bus"
        mkdir -p "$STATE/proc/nvidia/gpus/$bus"
        cp "$card/information" "$STATE/proc/nvidia/gpus/$bus/information"
        echo "Device Minor: 	 $minor" >>"$STATE/proc/nvidia/gpus/$bus/information"
        device_file "nvidia$minor"
        minor=$((minor + 1))
    done
}

supported() {
    [ -e "$1/minimum-driver" ] && [ "${2%%.*}" -ge "$(cat "$1/minimum-driver")" ]
}

# take MODULE: it is out of the kernel.
take() {
    rm -rf "$STATE/module/$1"
    rm -f "$STATE"/module/*/holders/"$1"
    case $1 in
    nvidia)
        rm -rf "$STATE/proc/nvidia" "$STATE/persistence"
        rm -f /dev/nvidia[0-9]* /dev/nvidiactl
        unbind nvidia ;;
    nvidia_uvm) rm -f /dev/nvidia-uvm /dev/nvidia-uvm-tools ;;
    nvidia_modeset) rm -f /dev/nvidia-modeset ;;
    nouveau) unbind nouveau ;;
    esac
}

nouveau_drives_a_card() {
    for link in "$STATE"/pci/*/driver; do
        case $(readlink "$link") in */nouveau) return 0 ;; esac
    done
    return 1
}
