"""Which models are in memory, what they take, and who has to go. Plain Python: no array comes here."""
