"""What each verb does: words in, calls to the fleet, a view of what came of them, an exit status back."""
