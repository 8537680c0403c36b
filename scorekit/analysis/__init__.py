"""Numbers from score columns: summaries now; comparisons, agreement and trends to come."""
