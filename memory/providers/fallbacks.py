"""Says in sentences where a configuration falls back to something weaker than its other models."""

from recollect.memory.providers.endpoint import LEXICAL, embedding_model_name
from recollect.memory.providers.roles import embedding_endpoint, endpoint
from recollect.memory.values.mem_config import MemoryConfig

_FIGURE = (
    "of ten memories and six paraphrased questions it finds one, where a small local model finds six. Set "
    "EMBEDDING_MODEL=fastembed:BAAI/bge-small-en-v1.5 (extra `local`), or EMBEDDING_PROVIDER."
)


def warnings(config: MemoryConfig) -> tuple[str, ...]:
    """Return one sentence for each fallback, for logs and `/health`; none without a chat model, where all is built in.

    Raises:
        ConfigurationError: a setting is wrong.
    """
    has_own_embedder = config.given_embeddings is not None or config.embedder is not None
    chat = endpoint(config)
    if has_own_embedder or (chat is None and config.given_chat is None):
        return ()
    if embedding_model_name(config, embedding_endpoint(config)) != LEXICAL:
        return ()
    if config.embedding_model:
        return (f"Memories are searched with the built-in lexical embedder (EMBEDDING_MODEL=lexical): {_FIGURE}",)
    who = (chat.provider if chat and chat.defaults else "") or "this chat model"
    return (
        f"EMBEDDING_MODEL is unset, and {who} has no default for it: memories are searched with the built-in lexical "
        f"embedder instead: {_FIGURE}",
    )
