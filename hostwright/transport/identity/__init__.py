"""Host key verification: keys, known_hosts files, certificates, and recording of keys."""
