"""Folders of pre-trained encoders: small and random, in every form that --pretrained takes."""

import json

import keras

from seqkeras.models import Bert, MaskedLMHead, NextSentenceHead, WithHeads
from seqkeras.pretrained import save_hugging_face
from seqkeras.pretrained.assignment import tensors_of
from seqkeras.pretrained.google_bert import links_of as links_of_google
from seqkeras.pretrained.keras_nlp_backbones import _links as links_of_keras_nlp
from seqkeras.tokenizers import word_piece

WORDS = "a the film story cast play good bad fine dull house book child one two in oslo lives"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split(), ".", ",", "##s"]
SIZES = {"hidden_dim": 12, "num_layers": 2, "num_heads": 3, "feed_forward_dim": 23}


def tiny_bert(**given):
    """A `Bert` over `VOCABULARY`, with random weights."""
    keras.utils.set_random_seed(3)
    defaults = {"vocab_size": len(VOCABULARY), "max_length": 37, "dropout": 0.1}
    encoder = Bert(**{**SIZES, **defaults, **given})
    encoder.build(None)
    return encoder


def hugging_face_folder(path, **given):
    """A folder in Hugging Face's format with a `tiny_bert`; returns its path as a string."""
    save_hugging_face(
        tiny_bert(**given), path, tokenizers={"text": word_piece(VOCABULARY, lowercase=True)}
    )
    return str(path)


def keras_nlp_folder(path, **given):
    """A preset of KerasNLP with the weights of a `tiny_bert`."""
    import keras_nlp

    encoder = tiny_bert(**given)
    config = encoder.config
    backbone = keras_nlp.models.BertBackbone(
        vocabulary_size=config["vocab_size"],
        num_layers=config["num_layers"],
        num_heads=config["num_heads"],
        hidden_dim=config["hidden_dim"],
        intermediate_dim=config["feed_forward_dim"],
        dropout=config["dropout"],
        max_sequence_length=config["max_length"],
        num_segments=config["num_segments"],
    )
    arrays = tensors_of(links_of_keras_nlp(encoder, ""))
    for weight in backbone.weights:
        weight.assign(arrays[weight.path])
    backbone.save_to_preset(str(path))
    tokenizer = keras_nlp.models.BertTokenizer(VOCABULARY, lowercase=True)
    tokenizer.save_to_preset(str(path))
    return str(path)


def google_folder(path, heads=False, **given):
    """A checkpoint of TensorFlow 1 with the weights of a `tiny_bert`, and of its heads or none."""
    import tensorflow as tf

    model = encoder = tiny_bert(**given)
    if heads:
        made = {"masked": MaskedLMHead(len(VOCABULARY)), "next": NextSentenceHead()}
        model = WithHeads(encoder, made)
        model.build(None)
    config = encoder.config
    path.mkdir()
    description = {
        "vocab_size": config["vocab_size"],
        "hidden_size": config["hidden_dim"],
        "num_hidden_layers": config["num_layers"],
        "num_attention_heads": config["num_heads"],
        "intermediate_size": config["feed_forward_dim"],
        "max_position_embeddings": config["max_length"],
        "hidden_act": "gelu",
    }
    (path / "bert_config.json").write_text(json.dumps(description))
    (path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    arrays = tensors_of(links_of_google(model))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = [
            tf.compat.v1.get_variable(name, initializer=array) for name, array in arrays.items()
        ]
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver(variables).save(
            session, str(path / "bert_model.ckpt"), write_meta_graph=False
        )
    return str(path)
