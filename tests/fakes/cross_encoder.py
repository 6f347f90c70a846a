"""A small cross-encoder in the files that fastembed reads: real ONNX, whose score counts the words in common.

    write_cross_encoder(folder, words="where did ada park the car")

Query and text come as one sequence, told apart by their type ids as BERT has it; the score of a pair is 2 for each
equal pair of words among query and text, minus 3. Words that it does not know are equal to each other.
"""

import json
from pathlib import Path

from tests.fakes.onnx_file import FLOAT, Node, model

WEIGHT, BIAS = 2.0, 3.0
MODEL_FILE = "onnx/model.onnx"
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def write_cross_encoder(folder: Path, *, words: str, longest: int = 1_024, last: str = "Identity") -> None:
    """Write the files; `longest` is in tokens, `last` an operation on the scores ("Log" makes those below 0 NaN)."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from tokenizers.processors import TemplateProcessing

    vocabulary = {word: number for number, word in enumerate([*_SPECIAL, *dict.fromkeys(words.split())])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    (folder / MODEL_FILE).parent.mkdir(parents=True)
    (folder / MODEL_FILE).write_bytes(_words_in_common(last))
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"model_max_length": longest, "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[PAD]"}))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))


def _words_in_common(last: str) -> bytes:
    nodes = [
        Node("Cast", ["token_type_ids"], "in_text", {"to": FLOAT}),
        Node("Cast", ["attention_mask"], "in_either", {"to": FLOAT}),
        Node("Sub", ["in_either", "in_text"], "in_query"),
        Node("Unsqueeze", ["input_ids", "second"], "down"),
        Node("Unsqueeze", ["input_ids", "first"], "across"),
        Node("Equal", ["down", "across"], "same"),
        Node(
            "Cast",
            [
                "same",
            ],
            "equal",
            {"to": FLOAT},
        ),
        Node("Unsqueeze", ["in_query", "second"], "query_down"),
        Node("Unsqueeze", ["in_text", "first"], "text_across"),
        Node("Mul", ["query_down", "text_across"], "pairs"),
        Node("Mul", ["pairs", "equal"], "equal_pairs"),
        Node("ReduceSum", ["equal_pairs", "second"], "each", {"keepdims": 0}),
        Node("ReduceSum", ["each", "first"], "shared", {"keepdims": 1}),
        Node("Sub", ["shared", "one"], "words"),  # without the two [SEP]
        Node("Mul", ["words", "weight"], "weighted"),
        Node("Sub", ["weighted", "bias"], "score"),
        Node(last, ["score"], "logits"),
    ]
    return model(
        nodes,
        inputs=["input_ids", "attention_mask", "token_type_ids"],
        output="logits",
        constants={"first": [1], "second": [2], "one": 1.0, "weight": WEIGHT, "bias": BIAS},
    )
