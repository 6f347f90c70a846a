"""Objects that a program passes in a configuration where settings pass names."""

from recollect.memory.values.errors import ConfigurationError


class GivenEmbeddings:
    """An object that embeds: LangChain's `Embeddings`, or one that has `encode`. It equals only itself."""

    def __init__(self, embeddings: object) -> None:
        if not any(hasattr(embeddings, call) for call in ("embed_documents", "aembed_documents", "encode")):
            raise ConfigurationError(
                "embeddings must be a model's name, or an object with embed_documents; set embedding_model to a name."
            )
        self.embeddings = embeddings

    @property
    def name(self) -> str:
        """The model's name: the object's `model` or `model_name`, or the name of its class."""
        for attribute in ("model", "model_name"):
            name = getattr(self.embeddings, attribute, None)
            if isinstance(name, str) and name:
                return name
        return type(self.embeddings).__name__
