"""The state machine of a turn."""
