"""Embeddings of Gemini and Vertex AI, and the credentials of Google Cloud."""
