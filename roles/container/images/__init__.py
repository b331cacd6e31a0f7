"""Images without a registry: archives from the controller, and the images and containers on hosts."""
