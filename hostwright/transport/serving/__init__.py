"""HTTP server on this machine for files that hosts fetch during an install: seeds and files of the stack."""
