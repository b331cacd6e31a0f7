"""Real hosts on this machine, for the demo and the tests: booted systemd, own address, sshd, apt, sudo, reboot."""
