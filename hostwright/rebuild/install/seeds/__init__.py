"""Seeds: what an installer is told, so that an operating system is installed unattended and its host key is known."""
