"""States of services, accounts, the kernel and the dynamic loader."""
