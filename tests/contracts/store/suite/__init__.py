"""The contract of each port of the store: one class a file, which every implementation inherits."""
