"""Common code of BERT, RoBERTa and DistilBERT: an encoder, and the heads of each architecture.

`WithHeads` holds heads under their kinds: "masked", "next", "classes", "numbers", "tags", "span",
"choice".
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqkeras.models import (
    Bert,
    ClassificationHead,
    MaskedLMHead,
    MultipleChoiceHead,
    NextSentenceHead,
    RegressionHead,
    SpanHead,
    TaggingHead,
    WithHeads,
)
from seqkeras.pretrained import links as lines
from seqkeras.pretrained.assignment import Link
from seqkeras.pretrained.family import Description, Plan

if TYPE_CHECKING:
    import keras

    from seqkeras.pretrained.config import Config

KINDS = {
    MaskedLMHead: "masked",
    NextSentenceHead: "next",
    ClassificationHead: "classes",
    RegressionHead: "numbers",
    TaggingHead: "tags",
    SpanHead: "span",
    MultipleChoiceHead: "choice",
}
FIXED = {
    "is_decoder": False,
    "position_embedding_type": "absolute",
    "tie_word_embeddings": True,  # the embeddings of a masked-LM head
}
POOLED = {"next", "classes", "numbers", "choice"}  # kinds that take what the pooler gives


@dataclasses.dataclass(frozen=True)
class Form:
    """The differences of the families; names of tensors are without .weight and .bias.

    Args:
        architectures: kinds of heads, by architecture.
        block: pattern of a block's names, with {} for its number.
        parts: within a block; see `links.block`.
        masked: "transform", "norm", "bias" and "decoder" of a `MaskedLMHead`.
        outputs: the other kinds' linear maps.
        pooler: its activation, where there is one.
        poolers: its name, by the kind of head that takes it; "" for none.
        outside: what the names of heads begin with.
        dropouts: dropouts of the kinds of heads that have a dropout, its field of config.json and
            its default; None for the encoder's dropout, as field or as default.
    """

    architectures: dict
    block: str
    parts: dict
    masked: dict
    outputs: dict
    pooler: str
    poolers: dict
    outside: tuple
    dropouts: dict

    def pooler_name(self, kinds: Iterable[str]) -> str | None:
        """Return the pooler's name below these heads, or None if there is no pooler."""
        named = [kind for kind in kinds if kind in self.poolers]
        return self.poolers[named[0]] if named else self.poolers.get("")


def split(model: keras.Model) -> tuple[Bert, dict[str, keras.Layer]] | None:
    """Return a model's `Bert` and its heads by kind; None if there is no `Bert`."""
    with_heads = isinstance(model, WithHeads)
    encoder = model.encoder if with_heads else model
    if not isinstance(encoder, Bert):
        return None
    heads = model.heads.values() if with_heads else ()
    return encoder, {kind_of(head): head for head in heads}


def kind_of(head: keras.Layer) -> str:
    """Return the kind of a head, or the name of its class if seqkeras does not define it."""
    return KINDS.get(type(head), type(head).__name__)


def links(form: Form, model: keras.Model) -> list[Link]:
    """Return the name map of a `Bert`, and of heads on it."""
    encoder, heads = split(model)
    all_links = [
        *_table_links(form, encoder, heads.get("masked")),
        *lines.norm("embeddings.LayerNorm", encoder.embedding_norm),
    ]
    for number, block in enumerate(encoder.encoder.blocks):
        all_links += lines.block(form.block.format(number), form.parts, block)
    if encoder.pooler is not None:
        all_links += lines.dense(form.pooler_name(heads) or "pooler.dense", encoder.pooler)
    for kind, head in heads.items():
        if kind == "masked":
            all_links += _masked_links(form.masked, head)
        else:
            all_links += lines.dense(form.outputs[kind], head.output_layer)
    return all_links


def _table_links(form, encoder, masked):
    tables = {"word": encoder.embedding, "position": encoder.positions}
    if encoder.segment_embedding is not None:
        tables["token_type"] = encoder.segment_embedding
    aliases = {"word": (f"{form.masked['decoder']}.weight",)} if masked else {}
    return [
        Link(
            f"embeddings.{table}_embeddings.weight",
            (layer.embeddings,),
            aliases=aliases.get(table, ()),
        )
        for table, layer in tables.items()
    ]


def _masked_links(names, head):
    return [
        *lines.dense(names["transform"], head.transform),
        *lines.norm(names["norm"], head.norm),
        Link(f"{names['bias']}.bias", (head.bias,), aliases=(f"{names['decoder']}.bias",)),
    ]


def plan(
    form: Form,
    arguments: Mapping[str, Any],
    config: Config,
    architecture: str,
    tensors: Collection[str],
    heads: bool,
    head_activation: str | None = None,
) -> Plan:
    """Return a plan of a `Bert`, and of heads on it.

    Args:
        form: form of the family.
        arguments: arguments of `Bert`, but the pooler.
        config, architecture, tensors, heads: see `Family.plan`.
        head_activation: activation of a `MaskedLMHead`; None for the encoder's.
    """
    for name, value in FIXED.items():
        config.fixed(name, value)
    labels = config.labels()
    kinds = _kinds(form, architecture, config, tensors, labels) if heads else []
    pooled = bool(POOLED & set(kinds)) or (
        not kinds and "" in form.poolers and f"{form.poolers['']}.weight" in tensors
    )
    arguments = {**arguments, "pooler": form.pooler if pooled else None}
    dropouts = {
        kind: arguments["dropout"]
        if field is None
        else config.rate(field, arguments["dropout"] if default is None else default)
        for kind, (field, default) in form.dropouts.items()
        if kind in kinds
    }
    masked = {
        "vocab_size": arguments["vocab_size"],
        "epsilon": arguments["epsilon"],
        "activation": head_activation or arguments["activation"],
    }
    makers = {
        "masked": functools.partial(MaskedLMHead, **masked),
        "next": NextSentenceHead,
        "classes": functools.partial(ClassificationHead, labels),
        "numbers": functools.partial(RegressionHead, labels),
        "tags": functools.partial(TaggingHead, labels),
        "span": SpanHead,
        "choice": MultipleChoiceHead,
    }

    def make(dtype):
        encoder = Bert(**arguments, dtype=dtype)
        if not kinds:
            return encoder
        made = {}
        for kind in kinds:
            options = {"dropout": dropouts[kind]} if kind in dropouts else {}
            made[kind] = makers[kind](**options, dtype=dtype)
        return WithHeads(encoder, made, dtype=dtype)

    unused = [*([] if heads else form.outside), *([] if pooled else ["pooler."])]
    return Plan(make, (r"embeddings\.position_ids", *(f"{re.escape(name)}.*" for name in unused)))


def _kinds(form, architecture, config, tensors, labels):
    """Return the architecture's kinds of heads, and those that files of another one may hold
    too."""
    kinds = list(form.architectures.get(architecture, ()))
    prefixes = {"masked": form.masked["transform"]} | {
        kind: name for kind, name in form.outputs.items() if kind == "next"
    }
    kinds += [
        kind for kind, name in prefixes.items() if f"{name}.weight" in tensors and kind not in kinds
    ]
    if labels == 1 or config.get("problem_type") == "regression":
        return ["numbers" if kind == "classes" else kind for kind in kinds]
    return kinds


def describe(
    form: Form,
    model: keras.Model,
    fields: Mapping[str, Any],
    problems: Sequence[str],
    head_activation: str | None = None,
) -> Description:
    """Return the `Description` of a model in terms of a family.

    Args:
        form: form of the family.
        model: in the form that `split` takes.
        fields: fields of config.json, for the encoder.
        problems: why the family has no such encoder, a sentence for each.
        head_activation: in the form that `plan` takes.

    Raises:
        ValueError: if the family has no such model.
    """
    encoder, heads = split(model)
    names = [kind_of(head) for head in getattr(model, "heads", {}).values()]
    kinds = sorted("classes" if name == "numbers" else name for name in names)
    architecture = next(
        (name for name, its in form.architectures.items() if kinds == sorted(its)), ""
    )
    if not architecture:
        problems = [*problems, f"no architecture has the heads {sorted(names)}"]
    used = not kinds or POOLED & set(kinds)  # otherwise no head reads the pooler's output
    poolers = (form.pooler, None) if form.pooler_name(heads) else (None,)
    if used and encoder.config["pooler"] not in poolers:
        received = encoder.config["pooler"]
        problems = [*problems, f"pooler must be one of {poolers}; received {received!r}"]
    if POOLED & set(kinds) and model.pooling != "pooler":
        problems = [*problems, f"pooling must be 'pooler'; received {model.pooling!r}"]
    for name, theirs in (("attention_window", None), ("positions", "learned")):
        if (received := encoder.config[name]) != theirs:
            problems = [*problems, f"{name} must be {theirs!r}; received {received!r}"]
    if "masked" in heads:
        problems = [*problems, *_masked_problems(heads["masked"], encoder, head_activation)]
    if "numbers" in heads:
        problems = [*problems, *_scale_problems(heads["numbers"])]
    if problems:
        raise ValueError(
            f"save_hugging_face: none of {list(form.architectures)} is this model:\n  "
            + "\n  ".join(problems)
        )
    return Description(
        architecture,
        {**fields, **_head_fields(form, heads)},
        _labels(heads),
        left_out=() if used else ("pooler.",),
    )


def _scale_problems(head):
    if (head.offset, head.scale) == (0, 1):
        return []
    return [
        f"the RegressionHead must have offset 0 and scale 1; received {head.offset:g} and "
        f"{head.scale:g}: give a head without them kernel * scale and bias * scale + offset"
    ]


def _masked_problems(head, encoder, activation):
    expected = True, encoder.config["epsilon"], activation or encoder.config["activation"]
    received = head.tied, head.epsilon, head.activation
    if received == expected:
        return []
    return [
        f"the MaskedLMHead must have tied, epsilon and activation {expected}; received {received}"
    ]


def _head_fields(form, heads):
    fields = {"problem_type": "regression"} if "numbers" in heads else {}
    for kind, head in heads.items():
        field = form.dropouts.get(kind, (None,))[0]
        if field is not None:
            fields[field] = head.dropout
    return fields


def _labels(heads):
    """Return the field `id2label`, which gives the number of labels by their names."""
    for head in heads.values():
        if hasattr(head, "num_outputs"):
            labels = [f"LABEL_{number}" for number in range(head.num_outputs)]
            numbers = {label: number for number, label in enumerate(labels)}
            return {"id2label": dict(enumerate(labels)), "label2id": numbers}
    return {}
