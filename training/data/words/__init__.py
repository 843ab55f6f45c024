"""Word lists, written for this project. Each is split into what is learned from and what is held out."""
