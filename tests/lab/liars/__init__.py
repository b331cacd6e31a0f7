"""Ten hosts on this machine, of which one lies: sshd and mount namespaces of their own, without a lab."""
