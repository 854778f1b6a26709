"""Bundles of tiny Keras models with random weights."""

from seqkeras.export.families import plan_export
from seqkeras.export.onnx_files import save
from seqkeras.models import GPT, Transformer
from seqkeras.serving.manifest import DecodingDefaults, GraphFile, Limits
from seqkeras.serving.text import CharacterTable
from tests.arrays import randomize
from tests.export.running import graphs_of
from tests.serving.written import write

LETTERS = CharacterTable.learn(["abcdefghijklm"])
LIMIT = 40  # tokens of a text of letters


def export_graphs(folder, parts, generate=None):
    """Write the graphs of an `ExportPlan` into a bundle's folder; the manifest's `GraphFile`s.

    `generate` takes the graphs and their signatures, and returns the graph that generates.
    """
    (folder / "onnx").mkdir(parents=True)
    graphs = graphs_of(parts.graphs)
    signatures = {role: parts.graphs[role] for role in graphs}
    if generate:
        graphs["generate"] = generate(graphs, parts.graphs)
        signatures["generate"] = parts.saved_model["generate"]
    weights = save(graphs, folder / "onnx")
    return {
        role: GraphFile(
            f"onnx/{role}.onnx",
            tuple(each.inputs),
            tuple(each.outputs),
            tuple(f"onnx/{file}" for file in weights[role]),
        )
        for role, each in signatures.items()
    }


def write_bundle(
    folder, model, pipeline, tokenizers, attention_heads=False, generate=None, **changes
):
    """Write the bundle of `model` into `folder`.

    Args:
        folder: where.
        model: a built Keras model of `seqkeras.models`.
        pipeline: the name of the pipeline.
        tokenizers: role -> tokenizer.
        attention_heads: as of `plan_export`.
        generate: of `seqkeras.export.generation.one_graph`, to write the graph that generates too.
        changes: fields of the manifest.
    """
    fields = {"limits": Limits(16, 16), "decoding": DecodingDefaults()} | changes
    parts = plan_export(
        model,
        max_length=fields["limits"].target_length,
        decoding=fields["decoding"],
        attention_heads=attention_heads,
    )

    def one_graph(graphs, signatures):
        return generate(graphs, signatures, fields["decoding"], fields["limits"].target_length)

    graphs = export_graphs(folder, parts, one_graph if generate else None)
    return write(folder, pipeline, graphs, tokenizers, state=parts.state, **fields)


def write_letters(folder, kind):
    """Write the bundle of a model of letters with random weights, whose pipeline has that name."""
    generates, size, sizes = kind == "Generate", len(LETTERS), (32, 2, 4, 40)
    model = GPT(size, *sizes, LIMIT) if generates else Transformer(size, size, *sizes, LIMIT)
    model.build({"token_ids": (None, None)} if generates else None)
    randomize(model)
    tokenizers = dict.fromkeys(["text"] if generates else ["source", "target"], LETTERS)
    return write_bundle(folder, model, kind, tokenizers, limits=Limits(LIMIT, LIMIT))
