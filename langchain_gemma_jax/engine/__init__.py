"""Who runs what, when, and on which memory."""
