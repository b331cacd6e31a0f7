"""Ten hosts on this machine, one of which sends false output: separate sshds and mount namespaces, without a lab."""
