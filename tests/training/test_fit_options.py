"""Options of a training, each beside Keras or NumPy used directly."""

import keras
import numpy as np
import pytest
from tensorflow.python.framework.config import is_op_determinism_enabled

from seqkeras.data.batches import Batches, Sequences
from seqkeras.losses import SmoothedCrossEntropy
from seqkeras.runs import RunError
from seqkeras.training.callbacks import StopAtNaN
from seqkeras.training.first_weights import freeze
from seqkeras.training.fit import Plan, fit
from seqkeras.training.optimizing import learning_rate, make_optimizer
from seqkeras.training.options import FitOptions
from tests.conftest import others_long
from tests.training import test_going_on
from tests.training.commands import printed
from tests.training.stops import stopped_behind_a_checkpoint
from tests.training.test_going_on import Scored, classifier, history, same, stopped, trained

KEPT = [
    {"ema": 0.8, "freeze": ("*kernel",)},
    {"average_checkpoints": 3},
    {"mixed_precision": "float16"},
    {"mixed_precision": "bfloat16"},
]


@pytest.mark.parametrize("given", others_long(KEPT))
def test_what_an_option_keeps_survives_a_stop(given, tmp_path):
    whole = trained(tmp_path / "whole", keep="last", **given)
    stopped(tmp_path / "stopped", 4, keep="last", **given)
    same(trained(tmp_path / "stopped", keep="last", **given), whole)
    assert history(tmp_path / "stopped") == history(tmp_path / "whole")


def test_the_mean_of_the_last_checkpoints_is_looked_at_and_kept(tmp_path):
    plain = Scored()
    trained(tmp_path / "plain", validation=plain)
    validation = Scored()
    model = trained(tmp_path, validation=validation, average_checkpoints=3, keep="last")
    steps = [25, 30, 35]
    for place, weight in enumerate(model.get_weights()):
        expected = np.mean([plain.seen[step][place] for step in steps], axis=0)
        np.testing.assert_allclose(weight, expected, rtol=1e-5, atol=1e-7)
        np.testing.assert_array_equal(weight, validation.seen[35][place])


def test_the_moving_average_is_looked_at_and_kept(tmp_path, monkeypatch):
    seen, before = [], StopAtNaN.on_train_batch_end

    def watched(self, batch, logs=None):
        seen.append(self.model.get_weights())
        before(self, batch, logs)

    monkeypatch.setattr(StopAtNaN, "on_train_batch_end", watched)
    validation = Scored()
    model = trained(tmp_path, 10, validation, ema=0.8, keep="last")
    average = seen[0]
    for weights in seen[1:]:
        average = [0.8 * a + 0.2 * w for a, w in zip(average, weights)]
    for weight, expected, looked in zip(model.get_weights(), average, validation.seen[10]):
        np.testing.assert_allclose(weight, expected, rtol=1e-5, atol=1e-7)
        np.testing.assert_array_equal(weight, looked)


class InTurn:
    """48 rows in their order, again and again."""

    def __init__(self, batch_size):
        self.batch_size = batch_size

    def from_step(self, step):
        while True:
            yield (np.arange(self.batch_size) + step * self.batch_size) % 48
            step += 1


def texts(batch_size):
    """Batches of sequences of all lengths up to 7 and their classes; padding counts nothing."""
    draw = np.random.default_rng(0)
    rows = [draw.integers(1, 5, length).tolist() for length in draw.integers(1, 7, 48)]
    sequences = Sequences(rows, width=7)
    return Batches(sequences, sequences, InTurn(batch_size))


def labeller():
    return keras.Sequential(
        [keras.Input((7,), dtype="int64"), keras.layers.Embedding(5, 3), keras.layers.Dense(5)]
    )


def fitted(folder, batches, steps, **given):
    folder.mkdir(exist_ok=True)
    options = FitOptions(steps_per_save=4, warmup_steps=2, max_steps=steps, **given)
    loss = SmoothedCrossEntropy(0.1, ignore_class=0)
    if options.gradient_accumulation > 1:
        batches = batches.in_groups(options.gradient_accumulation, 0)
    return fit(Plan(labeller, loss, batches.for_fit, steps, options, folder))


@pytest.mark.parametrize(
    "given", others_long([{}, {"optimizer": "adamw", "ema": 0.7, "schedule": "linear"}])
)
def test_small_batches_that_accumulate_are_one_large_batch(given, tmp_path):
    small = fitted(tmp_path / "small", texts(4), 8, gradient_accumulation=3, **given)
    large = fitted(tmp_path / "large", texts(12), 8, **given)
    assert small.optimizer.gradient_accumulation_steps == 3
    assert small.loss.reduction == "mean_with_sample_weight"
    for weight, expected in zip(small.get_weights(), large.get_weights(), strict=True):
        np.testing.assert_allclose(weight, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.long
def test_accumulation_survives_a_stop(tmp_path):
    given = {"gradient_accumulation": 3}
    whole = fitted(tmp_path / "whole", texts(4), 8, **given)
    with stopped_behind_a_checkpoint():
        fitted(tmp_path / "stopped", texts(4), 8, **given)
    same(fitted(tmp_path / "stopped", texts(4), 8, **given), whole)


def test_a_loss_that_does_not_add_up_is_refused(tmp_path):
    with pytest.raises(RunError, match="adds up over batches"):
        given = FitOptions(gradient_accumulation=2)
        fit(Plan(classifier, lambda y, p: p, None, 4, given, tmp_path))


@pytest.mark.parametrize("name", others_long(["float16", "bfloat16"]))
def test_mixed_precision_computes_in_it_and_ends_in_float32(name, tmp_path):
    computed = []

    class Seen(Scored):
        def __call__(self, model):
            computed.append((model.layers[0].compute_dtype, model.layers[0].kernel.dtype))
            return super().__call__(model)

    model = trained(tmp_path, 10, Seen(), mixed_precision=name)
    assert computed == [(name, "float32")] * 2
    assert {layer.compute_dtype for layer in model.layers} == {"float32"}
    assert keras.config.dtype_policy().name == "float32"


def test_operations_are_deterministic_for_as_long_as_a_training_takes(tmp_path):
    deterministic = []

    class Seen(Scored):
        def __call__(self, model):
            deterministic.append(is_op_determinism_enabled())
            return super().__call__(model)

    trained(tmp_path, 10, Seen())
    assert deterministic == [True] * 2 and not is_op_determinism_enabled()


@pytest.mark.long
def test_xla_compiles_the_steps_and_changes_nothing_but_rounding(monkeypatch, tmp_path):
    def without_dropout():  # XLA draws other random numbers
        return keras.Sequential([keras.Input((3,)), *map(keras.layers.Dense, (5, 2))])

    monkeypatch.setattr(test_going_on, "classifier", without_dropout)
    expected, *models = (
        trained(tmp_path / str(place), 10, xla=xla)
        for place, xla in enumerate((False, True, False, True))
    )
    assert [model.jit_compile for model in models] == [True, False, True]
    for model in models:
        for weight, other in zip(model.get_weights(), expected.get_weights(), strict=True):
            np.testing.assert_allclose(weight, other, rtol=1e-3, atol=1e-5)


def test_frozen_weights_stay_as_they_are_and_the_others_learn(tmp_path):
    keras.utils.set_random_seed(0)
    before = classifier()
    model = trained(tmp_path, 10, freeze=("*/dense*/kernel",), keep="last")
    for variable, first in zip(model.weights, before.weights, strict=True):
        frozen = variable.path.endswith("kernel")
        assert np.array_equal(variable.numpy(), first.numpy()) == frozen


def test_a_pattern_that_freezes_nothing_or_all_is_refused():
    with pytest.raises(RunError, match="--freeze: no variable matches 'encoder'; there are .*/ker"):
        freeze(classifier(), ["encoder"])
    with pytest.raises(RunError, match="--freeze: no variable is left to learn; choose a narrower"):
        freeze(classifier(), ["*"])


@pytest.mark.parametrize("name", ["cosine", "linear", "inverse-root", "constant", "noam"])
def test_a_schedule_is_its_formula(name):
    class Wide(FitOptions):
        hidden_dim: int = 64

    rate, warm, steps = 0.5, 10, 50
    options = Wide(schedule=name, learning_rate=rate, warmup_steps=warm)
    formula = {
        "cosine": lambda i: rate * (1 + np.cos(np.pi * (i - warm) / (steps - warm))) / 2,
        "linear": lambda i: rate * (steps - i) / (steps - warm),
        "constant": lambda i: rate,
        "inverse-root": lambda i: rate * np.sqrt(warm / (i + 1)),
        "noam": lambda i: rate * 64**-0.5 * (i + 1) ** -0.5,
    }[name]
    schedule = learning_rate(options, steps)
    for step in (10, 11, 30, 49):
        assert float(schedule(step)) == pytest.approx(formula(step), rel=1e-5, abs=1e-7)
    growing = [float(schedule(step)) for step in range(10)]
    np.testing.assert_allclose(np.diff(growing), growing[-1] / (9 + (growing[0] > 0)), rtol=1e-4)


@pytest.mark.parametrize("name", ["cosine", "linear"])
def test_a_schedule_falls_to_the_last_learning_rate(name):
    """nanoGPT's get_lr: min_lr + (1 + cos(pi t)) / 2 (learning_rate - min_lr)."""
    options = FitOptions(schedule=name, learning_rate=0.5, last_learning_rate=0.1, warmup_steps=10)
    ratios = np.array([0, 1, 10, 20, 39, 40]) / 40
    falls = (1 + np.cos(np.pi * ratios)) / 2 if name == "cosine" else 1 - ratios
    found = [float(learning_rate(options, 50)(10 + 40 * ratio)) for ratio in ratios]
    np.testing.assert_allclose(found, 0.1 + 0.4 * falls, rtol=1e-5)


@pytest.mark.parametrize("name", ["adam", "adamw", "lion"])
def test_betas_are_those_of_the_formula(name):
    """The papers' updates of one weight in float64, of gradients that are written here."""
    options = FitOptions(
        optimizer=name, beta1=0.8, beta2=0.7, schedule="constant", warmup_steps=0, weight_decay=0.0
    )
    optimizer, variable = make_optimizer(options, 5), keras.Variable([0.0])
    weight = mean = square = 0.0
    for step, gradient in enumerate([0.3, -0.2, 0.5], start=1):
        optimizer.apply([keras.ops.convert_to_tensor([gradient])], [variable])
        if name == "lion":
            weight -= 3e-3 * np.sign(0.8 * mean + 0.2 * gradient)
            mean = 0.7 * mean + 0.3 * gradient
        else:
            mean, square = 0.8 * mean + 0.2 * gradient, 0.7 * square + 0.3 * gradient**2
            unbiased = np.sqrt(square / (1 - 0.7**step))
            weight -= 3e-3 * mean / (1 - 0.8**step) / (unbiased + 1e-7)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(variable), [weight], rtol=1e-4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"optimizer": "sgd", "beta2": 0.9}, "--beta2 is for adam, adamw, lion, keras-adam; sgd "),
        ({"schedule": "constant", "last_learning_rate": 0.0}, "is for --schedule cosine or linear"),
        ({"last_learning_rate": 0.1}, "must be at most --learning-rate 0.003; received 0.1"),
        ({"schedule": "noam"}, "--schedule noam needs a task with --hidden-dim; choose inverse-ro"),
        ({"ema": 0.9, "average_checkpoints": 2}, "are two averages; choose one"),
        ({"ema": 0.9, "optimizer": "keras-adam"}, "--ema is for the optimizers of seqkeras"),
        ({"gradient_accumulation": 2, "optimizer": "keras-adam"}, "choose adam"),
    ],
)
def test_options_that_do_not_go_together_are_refused(given, message):
    options = FitOptions(**given)
    [problem] = options.all_problems(options)
    assert message in problem


TOGETHER = [
    "--batch-tokens 64 --schedule constant --optimizer adamw --beta1 0.8 --beta2 0.9 --ema 0.9 "
    "--weight-decay 0.01 --clip-norm 0.5 --patience 3 --passes 1",
    "--batch-tokens 64 --gradient-accumulation 2 --schedule inverse-root --optimizer lion "
    "--warmup-share 0.1 --average-checkpoints 2 --keep last --steps-per-save 2",
    "--schedule linear --last-learning-rate 1e-5 --optimizer adafactor --steps-per-look 3 "
    "--best-by validation_loss --mixed-precision bfloat16 --freeze *bias",
]


@pytest.mark.parametrize("options", others_long(TOGETHER))
def test_options_of_a_training_work_together_in_the_command(options, tmp_path):
    words = "good bad fine dull nice poor".split()
    rows = [f"{' '.join(words[place % 6 :] * (1 + place % 7))},{place % 2}" for place in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    small = "--units 4 --embedding-dim 4 --max-steps 6 --baselines false --tensorboard false"
    run = tmp_path / "run"
    arguments = ["classification", tmp_path / "rows.csv", *options.split(), *small.split()]
    assert printed(*arguments, "--out", run)[-1].startswith(f"next: seqkeras export {run} ")
    losses = np.genfromtxt(run / "history.csv", delimiter=",", names=True)["loss"]
    assert np.all(np.isfinite(losses))
