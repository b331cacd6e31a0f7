"""Images without a registry: archives read here, brought to hosts, and what hosts have of images and containers."""
