"""Container images: loads archives from the controller on hosts, and lists images and containers on hosts."""
