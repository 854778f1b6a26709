"""Transformer, GPT, Bert, and what stands on Bert."""

import numpy as np

from seqkeras.models import (
    GPT,
    AttentionWeightsHead,
    Bert,
    ChainTaggingHead,
    ClassificationHead,
    Distillation,
    HiddenStateHead,
    LinearChain,
    MaskedLMHead,
    MultipleChoiceHead,
    NextSentenceHead,
    OpenClassificationHead,
    PermutedGPT,
    RegressionHead,
    SentenceEncoder,
    SpanHead,
    TaggingHead,
    Transformer,
    WithHeads,
)
from tests.arrays import floats, right_padded
from tests.catalogue.case import B, Case, D, S
from tests.catalogue.transformer import HIDDEN, LENGTH, LENGTHS, F, N, ids

SIZES = {"hidden_dim": HIDDEN, "num_layers": 2, "num_heads": N, "feed_forward_dim": F}
C = 3  # choices
LENGTH_OF = {"token_ids": 1, "segment_ids": 1}  # the axis
ORDER = np.array([[3, 0, 6, 1, 2, 5, 4], [6, 5, 4, 3, 2, 1, 0]])


def gpt_case(pre_norm, activation, **options):
    def make():
        return GPT(
            vocab_size=17,
            **SIZES,
            max_length=13,
            activation=activation,
            pre_norm=pre_norm,
            dropout=0.3,
            attention_dropout=0.2,
            epsilon=1e-3,
            **options,
        )

    inputs = {"token_ids": ids(17, LENGTH)}
    kinds = [f", {value}" for value in options.values()]
    name = f"GPT({activation}, {pre_norm}{''.join(kinds)})"
    return Case(name, make, lambda: inputs, {"token_ids": 1}, past=("token_ids",))


T5 = {"norm": "rms", "use_bias": False, "gated": True, "head_dim": 4, "pre_norm": True}


def transformer_case(positions, shared_embeddings, kind="", make_encoder=None, **options):
    def make():
        more = {} if make_encoder is None else {"encoder": make_encoder(), "embedding_norm": True}
        return Transformer(
            source_vocab_size=17,
            target_vocab_size=17 if shared_embeddings in ("all", "source") else 19,
            **more,
            **SIZES | {"num_layers": 1},
            max_length=13,
            positions=positions,
            shared_embeddings=shared_embeddings,
            dropout=0.3,
            never_generated=[0, 5],
            **options,
        )

    inputs = {"token_ids": ids(17, LENGTH), "lengths": LENGTHS, "target_ids": ids(17, S, seed=1)}
    name = f"Transformer({positions}, {shared_embeddings}{kind})"
    lengths = {"token_ids": 1, "target_ids": 1}
    return Case(name, make, lambda: inputs, lengths, past=("target_ids",))


def make_bert(**options):
    arguments = {
        **SIZES,
        "num_layers": 1,
        "max_length": 13,
        "num_segments": 19,
        "activation": "relu",
        "dropout": 0.3,
        "attention_dropout": 0.2,
        "epsilon": 1e-3,
    }
    return Bert(17, **arguments | options)


def make_distilbert():
    return make_bert(num_segments=0, pooler=None)


def make_roberta():
    return make_bert(activation="silu", pooler="relu", first_position=2)


def bert_inputs():
    return {"token_ids": ids(17, LENGTH), "lengths": LENGTHS, "segment_ids": ids(3, LENGTH)}


def text_inputs():
    return {"token_ids": ids(17, LENGTH), "lengths": LENGTHS}


def choice_inputs():
    random = np.random.default_rng(0)
    return {
        "token_ids": random.integers(1, 17, (B, C, LENGTH)),
        "lengths": random.integers(1, LENGTH + 1, (B, C)),
    }


def heads_case(name, heads, inputs=bert_inputs, lengths=("token_ids", "segment_ids"), **options):
    return Case(
        f"WithHeads({name})",
        lambda: WithHeads(make_bert(), heads(), **options),
        inputs,
        {each: len(inputs()[each].shape) - 1 for each in lengths},
    )


def head_case(make, *shape, **options):
    takes = "hidden" if len(shape) == 3 else "pooled"
    inputs = {takes: floats(*shape)}
    lengths = {"hidden": 1} if takes == "hidden" else {}
    return Case(type(make()).__name__, make, lambda: inputs, lengths, **options)


def classifier():
    return WithHeads(make_bert(), {"label": ClassificationHead(5, dropout=0.1)})


GPTS = [
    gpt_case(True, "gelu"),
    gpt_case(False, "relu"),
    gpt_case(True, "relu", attention_window=2),
    gpt_case(True, "gelu", positions="bias"),
    gpt_case(True, "relu", positions="relative", attention_window=2),
    gpt_case(True, "gelu", positions="paper"),
]
MASKED_GPTS = [
    Case(
        "GPT(prefix)",
        lambda: GPT(17, **SIZES, max_length=13, mask="prefix", attention_window=3),
        lambda: {"token_ids": ids(17, LENGTH), "prefix_lengths": np.array([3, 5])},
    ),
    Case(
        "PermutedGPT",
        lambda: PermutedGPT(17, **SIZES, max_length=13, pre_norm=False, attention_dropout=0.2),
        lambda: {"token_ids": ids(17, LENGTH), "order": ORDER, "lengths": LENGTHS},
    ),
    Case(
        "PermutedGPT, from left to right",
        lambda: PermutedGPT(
            17,
            **SIZES,
            max_length=13,
            activation="relu",
            dropout=0.3,
            epsilon=1e-3,
            positions="relative",
        ),
        lambda: {"token_ids": ids(17, LENGTH)},
        {"token_ids": 1},
        past=("token_ids",),
    ),
]
TRANSFORMERS = [
    transformer_case(
        "tensor2tensor", "all", scale_embeddings=False, activation="gelu", activation_dropout=0.2
    ),
    transformer_case(
        "learned", "none", pre_norm=True, attention_dropout=0.2, epsilon=1e-3, output_bias=True
    ),
    transformer_case("marian", "target", ", restricted", attention_window=2),
    transformer_case("relative", "target"),
    transformer_case("bias", "target", pre_norm=True),
    transformer_case("learned", "target", ", Bert", make_encoder=lambda: make_bert(pooler=None)),
    transformer_case("bias", "source", ", T5", **T5),
]
BERTS = [
    Case("Bert", make_bert, bert_inputs, LENGTH_OF),
    Case("Bert, first position", make_roberta, bert_inputs, LENGTH_OF),
    Case("Bert, restricted", lambda: make_bert(attention_window=2), bert_inputs, LENGTH_OF),
    *(
        Case(f"Bert, {kind}", lambda kind=kind: make_bert(positions=kind), bert_inputs, LENGTH_OF)
        for kind in ("relative", "bias", "paper")
    ),
    Case("Bert, tokens alone", make_distilbert, text_inputs, {"token_ids": 1}),
]
SENTENCES = [
    Case(
        f"SentenceEncoder({pooling})",
        lambda pooling=pooling, make=make: SentenceEncoder(make(), pooling, pooling == "mean"),
        text_inputs,
        {"token_ids": 1},
    )
    for pooling, make in (("mean", make_distilbert), ("cls", make_roberta))
]
WITH_HEADS = [
    heads_case(
        "several",
        lambda: {
            "masked": MaskedLMHead(17, epsilon=1e-3),
            "next": NextSentenceHead(),
            "span": SpanHead(),
        },
    ),
    heads_case(
        "layers", lambda: {"low": HiddenStateHead(0, 5), "high": HiddenStateHead(1)}, frozen=True
    ),
    heads_case("frozen", lambda: {"tags": TaggingHead(7, 0.1)}, frozen=True),
    heads_case("mean", lambda: {"label": ClassificationHead(5, 0.1)}, pooling="mean"),
    heads_case(
        "choice",
        lambda: {"choice": MultipleChoiceHead(0.1)},
        inputs=choice_inputs,
        lengths=["token_ids"],
    ),
]
DISTILLATIONS = [
    Case(
        "Distillation(layers)",
        lambda: Distillation(
            classifier(), classifier(), [(0, 0), (1, 1)], [(1, 1)], temperature=3.0
        ),
        bert_inputs,
        LENGTH_OF,
    ),
    Case(
        "Distillation(logits)",
        lambda: Distillation(classifier(), soft="mse", scale=1.7),
        lambda: {**bert_inputs(), "teacher_logits": floats(B, 5)},
        LENGTH_OF,
    ),
]
HEADS = [
    head_case(lambda: ClassificationHead(5, dropout=0.1), B, D),
    head_case(lambda: OpenClassificationHead(5, 13, dim=3, learned=True, dropout=0.1), B, D),
    head_case(lambda: RegressionHead(3, dropout=0.1, offset=0.3, scale=1.7), B, D),
    head_case(lambda: NextSentenceHead(), B, D),
    head_case(lambda: TaggingHead(11, dropout=0.1), B, S, D, past=("hidden",)),
    head_case(lambda: ChainTaggingHead(3, dropout=0.1), B, S, D, past=("hidden",)),
    Case(
        "LinearChain",
        lambda: LinearChain(),
        lambda: {"logits": floats(B, S, C)},
        {"logits": 1},
        past=("logits",),
    ),
    Case(
        "MultipleChoiceHead", lambda: MultipleChoiceHead(0.1), lambda: {"pooled": floats(B, C, D)}
    ),
    Case(
        "SpanHead",
        lambda: SpanHead(dropout=0.1),
        lambda: {"hidden": floats(B, S, D), "padding_mask": right_padded([5, 3], S)},
        {"hidden": 1, "padding_mask": 1},
    ),
    Case(
        "HiddenStateHead",
        lambda: HiddenStateHead(1, dim=11),
        lambda: {"hidden_states": [floats(B, S, D, seed=seed) for seed in range(3)]},
    ),
    Case(
        "AttentionWeightsHead",
        lambda: AttentionWeightsHead(2),
        lambda: {"attention": [floats(B, 3, S, S, seed=seed) for seed in range(2)]},
    ),
    head_case(lambda: MaskedLMHead(17, False, 1e-3, "silu"), B, S, D, past=("hidden",)),
    Case(
        "MaskedLMHead, some positions",
        lambda: MaskedLMHead(17),
        lambda: {"hidden": floats(B, S, D), "masked_positions": np.array([[0, 3, 1], [4, 2, 2]])},
        {"hidden": 1},
    ),
]
CASES = [
    *GPTS,
    *MASKED_GPTS,
    *TRANSFORMERS,
    *BERTS,
    *SENTENCES,
    *WITH_HEADS,
    *DISTILLATIONS,
    *HEADS,
]
