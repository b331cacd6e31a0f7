"""Pictures of every verb in a real terminal emulator, and what must hold of each: `make pictures`."""
