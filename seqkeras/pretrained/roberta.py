"""Hugging Face's RoBERTa and its heads.

The dropout before the dense layer of its sequence classification is left out.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import TYPE_CHECKING

from seqkeras.pretrained import bert, encoders
from seqkeras.pretrained.config import write_fields
from seqkeras.pretrained.family import Family

if TYPE_CHECKING:
    import keras

    from seqkeras.pretrained.config import Config
    from seqkeras.pretrained.family import Description, Plan

FORM = encoders.Form(
    architectures={
        "RobertaModel": [],
        "RobertaForMaskedLM": ["masked"],
        "RobertaForSequenceClassification": ["classes"],
        "RobertaForTokenClassification": ["tags"],
        "RobertaForQuestionAnswering": ["span"],
        "RobertaForMultipleChoice": ["choice"],
    },
    block="encoder.layer.{}.",
    parts=bert.PARTS,
    masked={
        "transform": "lm_head.dense",
        "norm": "lm_head.layer_norm",
        "bias": "lm_head",
        "decoder": "lm_head.decoder",
    },
    outputs={
        **dict.fromkeys(["classes", "numbers"], "classifier.out_proj"),
        **dict.fromkeys(["tags", "choice"], "classifier"),
        "span": "qa_outputs",
    },
    pooler="tanh",
    poolers={"": "pooler.dense", **dict.fromkeys(["classes", "numbers"], "classifier.dense")},
    outside=("lm_head.", "classifier.", "qa_outputs."),
    dropouts={
        **dict.fromkeys(["classes", "numbers", "tags"], ("classifier_dropout", None)),
        "choice": (None, None),
    },
)
HEAD_ACTIVATION = "gelu"


def plan(config: Config, architecture: str, tensors: Collection[str], heads: bool) -> Plan:
    arguments = bert.read_arguments(config)
    first = config.size("pad_token_id", 1, least=0) + 1
    if arguments["max_length"] <= first:
        config.refuse(
            f"max_position_embeddings must be over {first}, as positions begin after "
            f"pad_token_id; received {arguments['max_length']}"
        )
    arguments |= {"max_length": arguments["max_length"] - first, "first_position": first}
    return encoders.plan(FORM, arguments, config, architecture, tensors, heads, HEAD_ACTIVATION)


def describe(model: keras.Model) -> Description | None:
    parts = encoders.split(model)
    if parts is None or not parts[0].config["num_segments"]:
        return None
    config = parts[0].config
    first = config["first_position"]
    if not first:
        return None
    fields = write_fields({**config, "max_length": first + config["max_length"]}, bert.FIELDS)
    fields["pad_token_id"] = first - 1
    return encoders.describe(FORM, model, fields, [], HEAD_ACTIVATION)


ROBERTA = Family(
    "roberta",
    tuple(FORM.architectures),
    base="roberta.",
    outside=FORM.outside,
    plan=plan,
    links=functools.partial(encoders.links, FORM),
    describe=describe,
    renamed=bert.BERT.renamed,
)
