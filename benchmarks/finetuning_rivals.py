"""The BERT of a fine-tuning recipe, of other libraries: `benchmarks.finetuning`."""

import tempfile

import numpy as np

from benchmarks import harness, training_steps

EPSILON = 1e-7  # of Adam, Keras's
HEADS = {  # task -> the model of transformers
    "classification": "AutoModelForSequenceClassification",
    "tagging": "AutoModelForTokenClassification",
    "question-answering": "AutoModelForQuestionAnswering",
}


def keras_nlp_model(task, run):
    """Return keras_nlp's `BertBackbone` of the same size, with random weights, under a head as
    ours.

    Args:
        task: a `seqkeras.training.task.Task` that is read, with a pre-trained encoder.
        run: its `seqkeras.runs.RunFiles`.
    """
    import keras
    from keras import ops

    models, config = training_steps.import_keras_nlp().models, task.reading.pretrained.config
    backbone = models.BertBackbone(
        config["vocab_size"],
        config["num_layers"],
        config["num_heads"],
        config["hidden_dim"],
        config["feed_forward_dim"],
        dropout=config["dropout"],
        max_sequence_length=config["max_length"],
        num_segments=2,
    )
    token_ids = keras.Input((None,), dtype="int64", name="token_ids")
    lengths = keras.Input((), dtype="int64", name="lengths")
    inputs = {"token_ids": token_ids, "lengths": lengths}
    segments = ops.zeros_like(token_ids)
    if "segment_ids" in _names_of(task):
        segments = inputs["segment_ids"] = keras.Input((None,), dtype="int64", name="segment_ids")
    padding_mask = ops.cumsum(ops.ones_like(token_ids), axis=1) <= lengths[:, None]
    found = backbone(
        {"token_ids": token_ids, "segment_ids": segments, "padding_mask": padding_mask}
    )
    vectors = found["pooled_output" if _pools(task) else "sequence_output"]
    backbone.get_layer("pooled_dense").trainable = _pools(task)
    if _takes_mean(task):
        vectors = keras.layers.GlobalAveragePooling1D()(vectors, mask=padding_mask)
    vectors = keras.layers.Dropout(task.options.dropout)(vectors)
    if task.name == "question-answering":
        logits = keras.layers.Dense(2)(vectors)
        logits = ops.where(padding_mask[:, :, None], logits, -1e9)
        outputs = {"start_logits": logits[:, :, 0], "end_logits": logits[:, :, 1]}
        return keras.Model(inputs, {"span": outputs})
    [name] = task.modelling.heads(run)
    logits = keras.layers.Dense(len(run.record.settings["labels"]), name=name)(vectors)
    return keras.Model(inputs, {name: logits})


def _names_of(task):
    pairs = task.name == "question-answering" or getattr(task.options, "pair_column", None)
    return {"segment_ids"} if pairs and task.reading.pretrained.has_segments else set()


def _takes_mean(task):
    return getattr(task.options, "pooling", None) == "mean"


def _pools(task):
    return task.name == "classification" and not _takes_mean(task)


class TorchModel:
    """A model of transformers from the same folder, and its training: AdamW in one kernel, as
    transformers' `Trainer` has it by default, the recipe's schedule and clipping, no decay of
    weights of one axis, the mean of the cross-entropy over targets.

    Args:
        task: a `seqkeras.training.task.Task` that is read, with a pre-trained encoder.
        run: its `seqkeras.runs.RunFiles`.
        num_steps: of the whole training, for the schedule.

    Raises:
        ImportError: if PyTorch or transformers is not installed.
    """

    def __init__(self, task, run, num_steps):
        from seqkeras.training.optimizing import learning_rate

        self.torch = torch = harness.import_rival("torch")
        transformers = harness.import_rival("transformers")
        self.task, self.run = task, run
        torch.manual_seed(task.options.seed)
        given = {"classifier_dropout": task.options.dropout}
        if task.name != "question-answering":
            given["num_labels"] = len(run.record.settings["labels"])
        make = getattr(transformers, HEADS[task.name])
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self.model = make.from_pretrained(str(task.options.pretrained), **given).float().train()
        decayed, others = [], []
        for weight in self.model.parameters():
            (decayed if weight.ndim > 1 else others).append(weight)
        groups = [
            {"params": decayed, "weight_decay": task.options.weight_decay or 0.0},
            {"params": others, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(
            groups, lr=task.options.learning_rate, eps=EPSILON, fused=True
        )
        schedule = learning_rate(task.options, num_steps)
        self.rates = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: float(schedule(step)) / task.options.learning_rate
        )

    def step(self, inputs, targets):
        """Return the loss of a step of training."""
        torch = self.torch
        given = {name: torch.from_numpy(np.asarray(array)).long() for name, array in inputs.items()}
        places = torch.arange(given["token_ids"].shape[1])
        loss = self._loss(
            self._answer(
                input_ids=given["token_ids"],
                attention_mask=(places < given["lengths"][:, None]).long(),
                token_type_ids=given.get("segment_ids"),
            ),
            targets,
        )
        self.optimizer.zero_grad()
        loss.backward()
        if self.task.options.clip_norm is not None:
            clip = self.task.options.clip_norm
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), clip)
        self.optimizer.step()
        self.rates.step()
        return loss.item()

    def _answer(self, **inputs):
        """Return the logits by their names, of the mean of all tokens where the recipe takes it."""
        if not _takes_mean(self.task):
            return self.model(**inputs)
        hidden = self.model.base_model(**inputs).last_hidden_state
        kept = inputs["attention_mask"][:, :, None]
        mean = (hidden * kept).sum(1) / kept.sum(1)
        return {"logits": self.model.classifier(self.model.dropout(mean))}

    def _loss(self, found, targets):
        entropy = self.torch.nn.functional.cross_entropy
        if self.task.name == "question-answering":
            both = (
                (found[name], self.torch.from_numpy(targets["span"][name]))
                for name in ("start_logits", "end_logits")
            )
            return sum(entropy(logits, places.long()) for logits, places in both)
        targets = self.torch.from_numpy(np.asarray(targets)).long()
        return entropy(found["logits"].flatten(0, -2), targets.flatten(), ignore_index=-1)

    def in_keras(self):
        """Return the task's own model with these weights."""
        from seqkeras.pretrained import load_hugging_face

        model = self.task.modelling.model(self.run)
        with tempfile.TemporaryDirectory() as folder:
            self.model.save_pretrained(folder)
            theirs = load_hugging_face(folder)
        # The pooler's are the last, which a model of the mean has not.
        weights = theirs.encoder.get_weights()
        model.encoder.set_weights(weights[: len(model.encoder.weights)])
        for own, other in zip(model.heads.values(), theirs.heads.values(), strict=True):
            own.set_weights(other.get_weights())
        return model
