"""The training step of a translation recipe, which ours and its rivals take."""

from benchmarks import whole_steps


def recipe_step(model, options):
    """Return a function: (inputs, targets) -> loss of a training step of a Keras model, with the
    recipe's optimizer.

    Args:
        model: built.
        options: `TranslationOptions`.
    """
    from seqkeras.losses import SmoothedCrossEntropy
    from seqkeras.tokenizers import PAD
    from seqkeras.training.optimizing import make_optimizer

    loss = SmoothedCrossEntropy(options.label_smoothing, ignore_class=PAD)
    return whole_steps.keras_step(model, make_optimizer(options, options.warmup_steps), loss)
