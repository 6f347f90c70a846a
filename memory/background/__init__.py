"""Runs work beside the event loop and behind requests: long texts, bulk work, sweeps, work by key."""
