# The whole stack as somebody writes it by hand, for one host, as root: the steps of `hostwright provision`, one after the
# other, without a look at what is there already. The files of the stack lie in the directory that this is run in.
set -eu
export DEBIAN_FRONTEND=noninteractive
runfile=NVIDIA-Linux-x86_64-470.182.03.run
prefix=/usr/local/cuda-11.2
tree=$prefix/targets/x86_64-linux
ring=/usr/share/keyrings
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
  --no-check-for-alternate-installs --log-file-name=/var/log/nvidia-installer.log
modprobe nvidia
modprobe nvidia-uvm
useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin \
  --comment 'NVIDIA persistence daemon' nvidia-persistenced
put nvidia-persistenced.service /etc/systemd/system/nvidia-persistenced.service
systemctl daemon-reload
systemctl enable --now nvidia-persistenced

# CUDA
put cuda-ubuntu2004.pin /etc/apt/preferences.d/cuda-repository-pin-600
dpkg -i ./cuda-repo-ubuntu2004-11-2-local_*.deb
gpg --batch --dearmor -o $ring/cuda-repo-ubuntu2004-11-2-local-keyring.gpg \
  /var/cuda-repo-ubuntu2004-11-2-local/7fa2af80.pub
put cuda-ubuntu2004-11-2-local.list /etc/apt/sources.list.d/cuda-ubuntu2004-11-2-local.list
apt-get -qy update
cuda='cuda-toolkit-11-2=11.2.2-1 cuda-cudart-11-2=11.2.152-1 cuda-nvcc-11-2=11.2.152-1 libcublas-11-2=11.4.1.1043-1
  libcufft-11-2=10.4.1.152-1 libcurand-11-2=10.2.3.152-1 libcusolver-11-2=11.1.0.152-1 libcusparse-11-2=11.4.1.1152-1'
# shellcheck disable=SC2086  # lists of names
apt-get -qy install $cuda
# shellcheck disable=SC2046,SC2086
apt-mark hold $(printf '%s\n' $cuda | sed 's/=.*//')
ln -sfn targets/x86_64-linux/lib $prefix/lib64
ln -sfn targets/x86_64-linux/include $prefix/include
update-alternatives --install /usr/local/cuda cuda $prefix 112

# cuDNN
tar -xzf cudnn-11.2-linux-x64-v8.1.0.77.tgz -C $tree --no-same-owner --strip-components=1 --transform=s,cuda/lib64,cuda/lib,

# environment
put cuda-11-2.conf /etc/ld.so.conf.d/cuda-11-2.conf
ldconfig
put cuda.sh /etc/profile.d/cuda.sh
put cuda-command /usr/local/lib/hostwright/cuda-command 755
for tool in nvcc ptxas fatbinary nvlink cuobjdump nvdisasm; do
  ln -sfn /usr/local/lib/hostwright/cuda-command "/usr/bin/$tool"
done

# TensorFlow
apt-get -qy install python3.9 python3.9-venv
mkdir wheels
tar -xf wheelhouse-*.tar -C wheels
python3.9 -m venv /opt/tensorflow-2.9
/opt/tensorflow-2.9/bin/pip install -q --no-index --find-links wheels -c constraints.txt tensorflow==2.9.0

# containers
apt-get -qy install docker.io
put nvidia-container-toolkit-keyring.gpg $ring/nvidia-container-toolkit-keyring.gpg
put nvidia-container-toolkit.list /etc/apt/sources.list.d/nvidia-container-toolkit.list
apt-get -qy update
toolkit='nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools libnvidia-container1'
# shellcheck disable=SC2046,SC2086
apt-get -qy install $(printf '%s=1.20.0-1 ' $toolkit)
# shellcheck disable=SC2086
apt-mark hold $toolkit
nvidia-ctk config --in-place --set nvidia-container-runtime.mode=legacy
put hostwright-nvidia-dev-char.service /etc/systemd/system/hostwright-nvidia-dev-char.service
put daemon.json /etc/docker/daemon.json
systemctl daemon-reload
systemctl enable hostwright-nvidia-dev-char
nvidia-ctk system create-dev-char-symlinks --create-all
systemctl enable docker
systemctl restart docker
