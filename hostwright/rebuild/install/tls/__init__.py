"""Whom installers trust: this machine's own certificate authority, and how a boot loader tells them of it."""
