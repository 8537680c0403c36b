"""One file per measure."""
