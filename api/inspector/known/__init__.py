"""The page "What is known": facts, and what a person does with them."""
