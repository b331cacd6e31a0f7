"""Running programs as root on a host: with sudo, in one shell or many, compressed or not."""
