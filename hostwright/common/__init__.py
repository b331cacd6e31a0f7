"""What every other package uses: errors, secrets, text, durations, YAML, shell quoting."""
