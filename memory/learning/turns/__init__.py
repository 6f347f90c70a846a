"""Does what a person does with a finished turn: undo, learn again, regenerate."""
