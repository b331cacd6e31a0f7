# Put a batch run into the queue of its GPUs: it is started once, when they are free, also after a reboot.
: "${name:?}"
unit=hostwright-batch@$name.service
systemctl stop -- "$unit" 2>/dev/null || :
mkdir -p /etc/systemd/system/multi-user.target.wants
ln -sfn "/etc/systemd/system/hostwright-batch@.service" "/etc/systemd/system/multi-user.target.wants/$unit"
must "it could not be put into the queue" systemctl start --no-block -- "$unit"
