"""What people look at: figures as pure functions of a frame."""
