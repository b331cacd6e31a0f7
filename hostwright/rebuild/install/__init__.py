"""Installation of a new operating system on a host: seeds (files for installers), their servers, and host keys."""
