"""An audit as one self-contained HTML page."""
