"""Chat and embeddings of Amazon Bedrock (extra `bedrock`)."""
