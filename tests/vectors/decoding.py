"""Hugging Face's processors of logits and its beam search, on a decoder that is a table."""

import numpy as np

PLACES, VOCAB_SIZE, EOS = 101, 11, 3


def make(rows=7, vocab_size=VOCAB_SIZE, max_length=9):
    random = np.random.default_rng(0)
    logits = random.normal(0, 2, (rows, vocab_size)).astype("float32")
    token_ids = random.integers(0, vocab_size, (rows, 4))
    table = random.normal(0, 2, (PLACES, vocab_size)).astype("float32")
    table[:, EOS] += random.normal(1, 2, PLACES)
    prompts = random.integers(4, vocab_size, (rows, 3))  # 0 is padding there
    arrays = {"logits": logits, "token_ids": token_ids, "table": table, "prompts": prompts}
    for name, processor in processors(max_length).items():
        arrays[f"processor/{name}"] = processed(processor, token_ids, logits)
    for name, options in SEARCHES.items():
        width = 3 if name == "prompt" else 1
        ids, scores = searched(table, prompts[:, :width], max_length, **options)
        arrays |= {f"beam/{name}/token_ids": ids, f"beam/{name}/scores": scores}
    return arrays


def processors(max_length):
    """By the name that we give to the same."""
    from transformers.generation import logits_process as hugging_face

    device = {"device": "cpu"}
    return {
        "temperature": hugging_face.TemperatureLogitsWarper(0.7),
        "top_k": hugging_face.TopKLogitsWarper(3),
        "top_p": hugging_face.TopPLogitsWarper(0.8),
        "repetition_penalty": hugging_face.RepetitionPenaltyLogitsProcessor(1.3),
        "banned_tokens": hugging_face.SuppressTokensLogitsProcessor([2, 5], **device),
        "min_length": hugging_face.MinLengthLogitsProcessor(6, EOS, **device),
        "min_length_reached": hugging_face.MinLengthLogitsProcessor(4, EOS, **device),
        "forced_end": hugging_face.ForcedEOSTokenLogitsProcessor(5, EOS, **device),
    }


def processed(processor, token_ids, logits):
    import torch

    # A copy: some of them write into what they are given.
    return processor(torch.tensor(token_ids), torch.tensor(logits)).numpy().copy()


BEAMS = {"num_beams": 3, "length_penalty": 0.0}
SEARCHES = {
    "greedy": {"num_beams": 1},
    "prompt": {**BEAMS, "early_stopping": "never"},
    "never": {**BEAMS, "early_stopping": "never"},
    "true": {**BEAMS, "early_stopping": True},
    "min_length": {**BEAMS, "early_stopping": "never", "min_length": 5, "renormalize_logits": True},
}


def searched(table, prompts, max_length, num_beams, **options):
    """(B, K, max_length) ids after the first, zero after the end, and (B, K) scores."""
    import torch

    found = _table_model(table).generate(
        torch.tensor(prompts),
        max_length=max_length + 1,
        num_beams=num_beams,
        num_return_sequences=num_beams,
        do_sample=False,
        output_scores=True,
        return_dict_in_generate=True,
        **options,
    )
    ids = found.sequences[:, 1:].numpy()
    ended = np.cumsum(ids == EOS, axis=1) - (ids == EOS) > 0
    if num_beams > 1:
        scores = found.sequences_scores.numpy()
    else:
        steps = torch.log_softmax(torch.stack(found.scores, dim=1), dim=-1).numpy()
        chosen = np.take_along_axis(steps, ids[..., None], axis=2)[..., 0]
        scores = np.where(ended, 0.0, chosen).sum(axis=1, dtype="float32")
    ids = np.pad(np.where(ended, 0, ids), [(0, 0), (0, max_length - ids.shape[1])])
    return ids.reshape(len(prompts), num_beams, -1), scores.reshape(len(prompts), num_beams)


def _table_model(table):
    import torch
    from transformers import GenerationConfig, GenerationMixin, PreTrainedConfig, PreTrainedModel
    from transformers.modeling_outputs import CausalLMOutput

    class TableModel(PreTrainedModel, GenerationMixin):
        config_class = PreTrainedConfig
        main_input_name = "input_ids"

        def __init__(self, config):
            super().__init__(config)
            self.table = torch.nn.Parameter(torch.tensor(table))
            self.post_init()

        def forward(self, input_ids, **kwargs):
            place = torch.zeros(len(input_ids), dtype=torch.int64)
            logits = []
            for token in input_ids.T:
                place = (7 * place + token) % PLACES
                logits.append(self.table[place])
            return CausalLMOutput(logits=torch.stack(logits, dim=1))

        def _init_weights(self, module):
            pass

    model = TableModel(PreTrainedConfig(vocab_size=table.shape[1]))
    model.generation_config = GenerationConfig(pad_token_id=0, eos_token_id=EOS, use_cache=False)
    return model.eval()
