"""Numbers from score columns: summaries, agreement with labels, self-checks."""
