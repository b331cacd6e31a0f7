"""What people type and see: tasks (the options of each verb), verbs (words to calls), views (results to text)."""
