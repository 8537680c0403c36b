"""The judge: what it is asked, how its replies are read, and who answers."""
