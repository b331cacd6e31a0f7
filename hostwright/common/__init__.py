"""What everything stands on: errors, secrets, text, durations, YAML, shell."""
