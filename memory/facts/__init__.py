"""Does what a person does with facts: write, change, approve, forget."""
