"""Live evaluation: calls scored in the background, and the database that keeps every result."""
