"""From prompts and applications to outputs that are scored: `generate` and `run_evals`."""
