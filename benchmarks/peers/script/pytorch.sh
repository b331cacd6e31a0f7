# A stack of today as somebody writes it by hand, for one host, as root: the steps of `hostwright provision`, one after
# the other, without a look at what is there already. The files of the stack lie in the directory that this is run in.
set -eu
export DEBIAN_FRONTEND=noninteractive
runfile=NVIDIA-Linux-x86_64-580.159.04.run
venv=/opt/pytorch-2.14
put() { install -D -m "${3:-644}" -o root -g root "$1" "$2"; }

# base
put 52hostwright /etc/apt/apt.conf.d/52hostwright
apt-get -qy update
apt-get -qy install build-essential dkms curl ca-certificates gnupg pciutils kmod procps "linux-headers-$(uname -r)"
# shellcheck disable=SC2016,SC2046  # dpkg's own fields; a list of names
apt-mark hold $(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'linux-image-*' 'linux-headers-*' 2>/dev/null | sed -n 's/^installed //p')

# driver
put hostwright-no-other-driver /etc/apt/preferences.d/hostwright-no-other-driver
put hostwright-nouveau.conf /etc/modprobe.d/hostwright-nouveau.conf
put hostwright-nvidia.conf /etc/modules-load.d/hostwright-nvidia.conf
sh "./$runfile" --silent --dkms --no-cc-version-check --disable-nouveau --no-install-compat32-libs \
  --no-check-for-alternate-installs --kernel-module-type=proprietary --log-file-name=/var/log/nvidia-installer.log
modprobe nvidia
modprobe nvidia-uvm
useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin \
  --comment 'NVIDIA persistence daemon' nvidia-persistenced
put nvidia-persistenced.service /etc/systemd/system/nvidia-persistenced.service
systemctl daemon-reload
systemctl enable --now nvidia-persistenced

# PyTorch
apt-get -qy install python3.11-venv python3.11-dev gcc libc6-dev
python3.11 -m venv $venv
put constraints.txt $venv/constraints.txt
$venv/bin/pip install -q --no-index --find-links . -c constraints.txt torch==2.14.1 numpy

# containers
apt-get -qy install docker.io
put nvidia-container-toolkit-keyring.gpg /usr/share/keyrings/nvidia-container-toolkit-keyring.gpg
put nvidia-container-toolkit.list /etc/apt/sources.list.d/nvidia-container-toolkit.list
apt-get -qy update
toolkit='nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools libnvidia-container1'
# shellcheck disable=SC2046,SC2086  # lists of names
apt-get -qy install $(printf '%s=1.20.0-1 ' $toolkit)
# shellcheck disable=SC2086
apt-mark hold $toolkit
put hostwright-nvidia-dev-char.service /etc/systemd/system/hostwright-nvidia-dev-char.service
put daemon.json /etc/docker/daemon.json
systemctl daemon-reload
systemctl enable hostwright-nvidia-dev-char
nvidia-ctk system create-dev-char-symlinks --create-all
systemctl enable --now nvidia-cdi-refresh.path
systemctl enable nvidia-cdi-refresh.service
systemctl restart nvidia-cdi-refresh.service
systemctl enable docker
systemctl restart docker
