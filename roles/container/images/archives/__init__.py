"""Archives of images and OCI layouts, read on this machine: somebody's files, of which nothing is believed."""
