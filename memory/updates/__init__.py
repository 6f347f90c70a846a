"""Works off the pending updates of turns, under one claim per user, and enforces the retention bounds."""
