"""`optimum` with onnxruntime, and `transformers` with PyTorch, answering a line with a line.

    python -m benchmarks.hugging_face_generation FOLDER

FOLDER is a Marian model in the format of `transformers`. First comes the list of the names; then a
line [name, rows of token ids, beam size] is answered by rows of token ids, `benchmarks.generation`
being the one who asks. It is a process of its own, as `benchmarks.fused_model` is.
"""

import json
import sys

from benchmarks import harness
from benchmarks.generation_rivals import TARGET, THREADS


def open_models(folder):
    """Return a dictionary: name -> the model, which has a `generate`."""
    onnxruntime, torch, transformers, optimum = (
        harness.import_rival(name, harness.OPTIMUM)
        for name in ("onnxruntime", "torch", "transformers", "optimum.onnxruntime")
    )
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(THREADS)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    # Threads that spin after a run would take the cores from whose turn is next.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return {
        "optimum": optimum.ORTModelForSeq2SeqLM.from_pretrained(
            folder, export=True, session_options=options
        ),
        "transformers": transformers.MarianMTModel.from_pretrained(folder).eval(),
    }


def main(folder):
    """Answer until the input ends."""
    models = open_models(folder)
    import torch

    print(json.dumps([*models]), flush=True)
    for line in sys.stdin:
        name, token_ids, num_beams = json.loads(line)
        with torch.inference_mode():
            made = models[name].generate(
                input_ids=torch.tensor(token_ids),
                attention_mask=torch.ones((len(token_ids), len(token_ids[0])), dtype=torch.int64),
                num_beams=num_beams,
                do_sample=False,
                max_new_tokens=TARGET,
                min_new_tokens=TARGET,
                forced_eos_token_id=None,
            )
        print(json.dumps(made[:, 1:].tolist()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
