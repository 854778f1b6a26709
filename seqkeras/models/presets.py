"""Published sizes as plain numbers: `Bert(**BERT_BASE)`.

Vocabularies are the published weights'; the user brings the Transformer's.
"""

TRANSFORMER_BASE = {
    "hidden_dim": 512,
    "num_layers": 6,
    "num_heads": 8,
    "feed_forward_dim": 2048,
    "dropout": 0.1,
}
TRANSFORMER_BIG = {
    "hidden_dim": 1024,
    "num_layers": 6,
    "num_heads": 16,
    "feed_forward_dim": 4096,
    "dropout": 0.3,
}

GPT1 = {
    "vocab_size": 40478,
    "hidden_dim": 768,
    "num_layers": 12,
    "num_heads": 12,
    "feed_forward_dim": 3072,
    "max_length": 512,
    "pre_norm": False,
    "dropout": 0.1,
    "attention_dropout": 0.1,
}


def _gpt2(hidden_dim, num_layers, num_heads):
    return {
        "vocab_size": 50257,
        "hidden_dim": hidden_dim,
        "num_layers": num_layers,
        "num_heads": num_heads,
        "feed_forward_dim": 4 * hidden_dim,
        "max_length": 1024,
        "dropout": 0.1,
        "attention_dropout": 0.1,
    }


GPT2_SMALL = _gpt2(768, 12, 12)
GPT2_MEDIUM = _gpt2(1024, 24, 16)
GPT2_LARGE = _gpt2(1280, 36, 20)
GPT2_XL = _gpt2(1600, 48, 25)


def _bert(hidden_dim, num_layers, num_heads):
    return {
        "vocab_size": 30522,
        "hidden_dim": hidden_dim,
        "num_layers": num_layers,
        "num_heads": num_heads,
        "feed_forward_dim": 4 * hidden_dim,
        "dropout": 0.1,
        "attention_dropout": 0.1,
    }


BERT_BASE = _bert(768, 12, 12)
BERT_LARGE = _bert(1024, 24, 16)
