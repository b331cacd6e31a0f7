"""HTTP server on this machine for files that hosts fetch during their installation: seeds, and files of the stack."""
