"""Container images: loading of archives from the controller, and lists of images and containers on hosts."""
