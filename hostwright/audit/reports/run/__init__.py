"""A recorded run as one self-contained HTML page."""
