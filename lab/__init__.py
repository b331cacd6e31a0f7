"""Real hosts on this machine, for the demo and the tests: each boots systemd and has its own address, sshd and apt."""
