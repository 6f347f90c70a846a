"""Commands that look after what is stored: through the running owner of DATA_DIR, or on their own."""
