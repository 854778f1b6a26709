"""One ONNX graph from token ids to token ids: a Loop around the exported step graph.

What stands before the steps, behind each of them and at the end is the loop of `seqkeras.decoding`
itself, traced in these three parts; the step between them is the graph that `serving` runs too.
"""

import dataclasses
import hashlib

import numpy as np
import onnx
from keras import ops
from onnx import TensorProto, helper

from export.graph import Graph
from export.onnx_graphs import IR_VERSION, OPSET, check_that_it_runs, convert
from seqkeras.decoding.beam import beam_search
from seqkeras.decoding.loop import Loop, OneSequence
from serving.manifest import TensorSpec

CARRIED = ("length", "last", "tokens", "beam_index")  # beside what is found, and the state


def encoder_decoder(graphs, signatures, decoding, max_length, portable=False):
    """The graph (token_ids, lengths) -> (generated_ids, generated_lengths, scores).

    Args:
        graphs: "encoder" and "decoder_step", `export.graph.Graph`s.
        signatures: the `Signature`s that they were made of.
        decoding: the manifest's `DecodingDefaults`: one beam is greedy search.
        max_length: the most tokens of a result, `<eos>` among them.
        portable: as of the graphs.

    Returns:
        An `export.graph.Graph`.
    """
    search = _Search(decoding, max_length, signatures["decoder_step"])
    parts = search.convert(portable)
    joined = _Joined()
    state = joined.add(
        graphs["encoder"], "encoder", {name: name for name in ("token_ids", "lengths")}
    )
    carried = joined.add(parts["begin"], "begin", {"lengths": "lengths"})
    state |= joined.empty_caches(signatures["decoder_step"])
    carried = joined.loop(graphs["decoder_step"], parts["advance"], carried, state, max_length)
    return joined.finish(parts["results"], carried, signatures["encoder"].inputs)


def language_model(graphs, signatures, decoding, max_length, portable=False):
    """The graph (token_ids, lengths) of prompts -> (generated_ids, generated_lengths, scores).

    What all prompts have is read at once; what the longer ones have beyond is forced, step by step.
    A result begins with its prompt, which costs nothing.

    Args:
        graphs: "decoder_step", an `export.graph.Graph`.
        signatures, decoding, portable: see `encoder_decoder`.
        max_length: the most tokens of a prompt and its continuation, `<eos>` among them.

    Returns:
        An `export.graph.Graph`.
    """
    signature = signatures["decoder_step"]
    search = _PromptedSearch(decoding, max_length, signature)
    parts = search.convert(portable)
    joined = _Joined()
    given = {"token_ids": "token_ids", "lengths": "lengths"}
    begun = joined.add(parts["begin"], "begin", given)
    state = joined.empty_caches(signature) | joined.zero_states(signature)
    step = graphs["decoder_step"].copy(
        [each.name for each in signature.outputs if each.name.startswith(("logits", "next_"))]
    )
    read = {"token_ids": begun["common"], "beam_index": begun["rows"]}
    stepped = joined.add(step, "prompt", state | read)
    logits = joined.apply("Expand", stepped["logits"], np.array([1, search.beams, 1]))
    advanced = joined.add(parts["advance"], "first", given | begun | {"logits": logits})
    advanced.pop("going")
    carried = {
        name.removeprefix("next_"): each
        for name, each in (stepped | advanced).items()
        if name.startswith("next_")
    }
    # The state behind the prompt is of one beam, whatever number of beams goes on from it.
    carried["beam_index"] = joined.apply("Div", carried["beam_index"], np.array(search.beams))
    carried = joined.loop(graphs["decoder_step"], parts["advance"], carried, given, max_length)
    return joined.finish(parts["results"], carried, search.prompt, given)


class _Joined:
    """Graphs set one behind the other; equal weights are one."""

    def __init__(self):
        self.nodes, self.constants, self.names = [], {}, {}

    def constant(self, name, value):
        """The name of a constant of that value."""
        key = value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).digest()
        self.constants.setdefault(self.names.setdefault(key, name), value)
        return self.names[key]

    def add(self, graph, prefix, inputs, nodes=None):
        """Add a graph's nodes; returns its outputs' names here by those that they have there.

        Args:
            graph: an `export.graph.Graph`.
            prefix: of the names of what is within.
            inputs: name there -> name here.
            nodes: list to add to, of a Loop's body; None for those outside.
        """
        names = dict(inputs)
        for name, value in graph.constants.items():
            names[name] = self.constant(f"{prefix}/{name}", value)
        nodes = self.nodes if nodes is None else nodes
        nodes.extend(_renamed(node, prefix, names) for node in graph.nodes)
        return {
            output.name: names.get(output.name, f"{prefix}/{output.name}")
            for output in graph.model.graph.output
        }

    def apply(self, op_type, name, constant):
        """The result of an operator on a tensor and a constant."""
        output = f"{name}/{op_type}"
        inputs = [name, self.constant(f"{output}/constant", constant)]
        self.nodes.append(helper.make_node(op_type, inputs, [output]))
        return output

    def empty_caches(self, step):
        """The caches of a step before any token: name -> name."""
        return {
            spec.name: self._zeros(spec, [0 if d == "past_length" else d for d in spec.shape[1:]])
            for spec in step.inputs
            if "past_length" in spec.shape
        }

    def zero_states(self, step):
        """Recurrent states of one beam before any token: name -> name."""
        return {
            spec.name: self._zeros(spec, [1, *spec.shape[2:]])
            for spec in step.inputs
            if spec.shape[:2] == ("previous_batch", "previous_beam")
        }

    def _zeros(self, spec, rest):
        """Zeros for every row of the lengths, of that shape behind the first axis."""
        name = f"zeros/{spec.name}"
        shape, rows, whole = (f"{name}/{part}" for part in ("shape", "rows", "whole"))
        zero, one = (self.constant(f"[{n}]", np.array([n])) for n in (0, 1))
        rest = self.constant(f"{name}/rest", np.array(rest))
        dtype = helper.np_dtype_to_tensor_dtype(np.dtype(spec.dtype))
        self.nodes += [
            helper.make_node("Shape", ["lengths"], [shape]),
            helper.make_node("Slice", [shape, zero, one], [rows]),
            helper.make_node("Concat", [rows, rest], [whole], axis=0),
            helper.make_node(
                "ConstantOfShape",
                [whole],
                [name],
                value=helper.make_tensor("zero", dtype, [1], [0]),
            ),
        ]
        return name

    def loop(self, step, advance, carried, fixed, max_length):
        """Steps until the search is done.

        Args:
            step, advance: `export.graph.Graph`s.
            carried: what goes into the first step and from each to the next: name there -> here.
            fixed: what every step reads: name there -> here. State that a step returns is carried.
            max_length: the most steps.

        Returns:
            What the last step carries on: name there -> here.
        """
        beam_state = [
            output.name.removeprefix("next_")
            for output in step.model.graph.output
            if output.name.startswith("next_")
        ]
        fixed = dict(fixed)
        carried = carried | {name: fixed.pop(name) for name in beam_state if name in fixed}
        step = step.copy(["logits", *(f"next_{name}" for name in beam_state)])
        nodes, inside = [], {name: f"body/{name}" for name in carried}
        last = inside["last"]
        [tokens] = [each for each in step.model.graph.input if each.name == "token_ids"]
        if len(tokens.type.tensor_type.shape.dim) == 3:  # some tokens of each beam
            last = "body/last/one"
            axis = self.constant("[2]", np.array([2]))
            nodes.append(helper.make_node("Unsqueeze", [inside["last"], axis], [last]))
        stepped = self.add(step, "step", fixed | inside | {"token_ids": last}, nodes)
        given = fixed | inside | {"logits": stepped["logits"]}
        after = stepped | self.add(advance, "advance", given, nodes)
        types = {
            value.name: value.type.tensor_type.elem_type
            for value in [*step.model.graph.output, *advance.model.graph.output]
        }
        body = helper.make_graph(
            nodes,
            "body",
            [
                helper.make_tensor_value_info("body/turn", TensorProto.INT64, ()),
                helper.make_tensor_value_info("body/going", TensorProto.BOOL, ()),
                *(_of_any_shape(inside[name], types[f"next_{name}"]) for name in carried),
            ],
            [
                helper.make_tensor_value_info(after["going"], TensorProto.BOOL, ()),
                *(_of_any_shape(after[f"next_{name}"], types[f"next_{name}"]) for name in carried),
            ],
        )
        results = {name: f"loop/{name}" for name in carried}
        turns = self.constant("turns", np.array(max_length))
        going = self.constant("going", np.array(True))
        inputs = [turns, going, *carried.values()]
        self.nodes.append(helper.make_node("Loop", inputs, [*results.values()], body=body))
        return results

    def finish(self, results, carried, inputs, given=()):
        """The whole as a graph that is proved to run.

        Args:
            results: the `export.graph.Graph` of the last part.
            carried, given: what it may read: name there -> here.
            inputs: `TensorSpec`s of the whole.
        """
        outputs = results.model.graph.output
        names = self.add(results, "results", {**carried, **dict(given)})
        for each in outputs:
            self.nodes.append(helper.make_node("Identity", [names[each.name]], [each.name]))
        graph = helper.make_graph(
            self.nodes, "generate", [_value(spec) for spec in inputs], list(outputs)
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )
        whole = Graph(model, self.constants)
        whole.declare_domains()
        # Symbolic shape inference gives up where a loop's state grows; the parts have passed it.
        check_that_it_runs(whole, "generate")
        return whole


def _of_any_shape(name, dtype):
    return helper.make_tensor_value_info(name, dtype, None)


def _value(spec):
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(spec.dtype))
    return helper.make_tensor_value_info(spec.name, dtype, spec.shape)


def _renamed(node, prefix, names):
    """A copy of a node with the names of its tensors as they are here, in its subgraphs too."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.name = f"{prefix}/{node.name}"
    for tensors in (copy.input, copy.output):
        tensors[:] = [each and names.get(each, f"{prefix}/{each}") for each in tensors]
    for attribute in copy.attribute:
        if attribute.HasField("g"):
            graph = attribute.g
            inner = [_renamed(each, prefix, names) for each in graph.node]
            del graph.node[:]
            graph.node.extend(inner)
            for value in [*graph.input, *graph.output, *graph.initializer, *graph.value_info]:
                value.name = names.get(value.name, f"{prefix}/{value.name}")
    return copy


class _Search:
    """The parts of a search around its steps, as functions of tensors.

    Attributes:
        prompt: `TensorSpec`s of what the parts read beside what is carried.
        begun: `TensorSpec`s of what the first part makes.
    """

    prompt = ()

    def __init__(self, decoding, max_length, step):
        self.decoding, self.max_length = decoding, max_length
        [logits] = [spec for spec in step.outputs if spec.name == "logits"]
        self.vocab_size = logits.shape[-1]
        self.beams = decoding.beam_size
        if self.beams == 1:
            self.search = OneSequence(_most_probable, decoding.end_id)
        else:
            self.search = beam_search(
                num_beams=self.beams,
                n_best=1,
                max_length=max_length,
                end_id=decoding.end_id,
                length_penalty=decoding.length_penalty,
            )
        self.found = [
            TensorSpec(f"found_{name}", each.dtype.name, ("batch", *each.shape[1:]))
            for name, each in self.search.begin(1).items()
        ]
        rows = ("batch", self.beams)
        self.tokens = TensorSpec("tokens", "int32", (*rows, max_length))
        self.length = TensorSpec("length", "int32", ())
        self.carried = self.begun = [
            self.length,
            self.tokens,
            TensorSpec("last", "int64", rows),
            TensorSpec("beam_index", "int64", rows),
            *self.found,
        ]

    def convert(self, portable):
        """The parts as `export.graph.Graph`s, by name."""
        lengths = TensorSpec("lengths", "int64", ("batch",))
        logits = TensorSpec("logits", "float32", ("batch", self.beams, self.vocab_size))
        after = [dataclasses.replace(each, name=f"next_{each.name}") for each in self.carried]
        specs = {
            "begin": (self._begin, self.prompt or [lengths], self.begun),
            "advance": (
                self._advance,
                [logits, self.length, self.tokens, *self.found, *self.prompt],
                [*after, TensorSpec("going", "bool", ())],
            ),
            "results": (
                self._results,
                [self.tokens, *self.found, *self.prompt],
                _results(self.max_length + len(self.prompt[:1])),
            ),
        }
        return {
            name: convert(function, inputs, outputs, name, portable)
            for name, (function, inputs, outputs) in specs.items()
        }

    def _begin(self, lengths):
        loop = Loop(self.search, self.max_length)
        batch_size = ops.shape(lengths)[0]
        length, last, tokens, _, found = loop.begin(batch_size, self.decoding.start_id, {})
        rows = ops.arange(batch_size, dtype="int64")[:, None]  # of one beam each, as yet
        return self._named(length, last, tokens, rows + 0 * ops.cast(last, "int64"), found)

    def _advance(self, logits, length, tokens, **others):
        prompt = [others.pop(spec.name) for spec in self.prompt]
        loop = Loop(self.search, self.max_length, prompt=self._rest(*prompt))
        beams = ops.arange(self.beams, dtype="int32") + ops.zeros_like(tokens[:, :, 0])
        length, last, tokens, state, found = loop.advance(
            logits, [], length, tokens, {"beams": beams}, _found(others)
        )
        rows = self.beams * ops.arange(ops.shape(tokens)[0], dtype="int64")[:, None]
        beam_index = rows + ops.cast(state["beams"], "int64")
        going = loop.unfinished(length, last, tokens, state, found)
        after = self._named(length, last, tokens, beam_index, found)
        return {f"next_{name}": each for name, each in after.items()} | {"going": going}

    def _rest(self):
        """The prompt of the loop."""
        return None

    def _named(self, length, last, tokens, beam_index, found):
        named = {"length": length, "tokens": tokens, "last": ops.cast(last, "int64")}
        named["beam_index"] = beam_index
        return named | {f"found_{name}": each for name, each in found.items()}

    def _results(self, tokens, **found):
        token_ids, lengths, scores = self.search.results(tokens, _found(found))
        if self.beams > 1:
            token_ids, lengths, scores = token_ids[:, 0], lengths[:, 0], scores[:, 0]
        return {"generated_ids": token_ids, "generated_lengths": lengths, "scores": scores}


class _PromptedSearch(_Search):
    """The same behind prompts, whose first token stands where else `<bos>` does."""

    prompt = (
        TensorSpec("token_ids", "int64", ("batch", "length")),
        TensorSpec("lengths", "int64", ("batch",)),
    )

    def __init__(self, decoding, max_length, step):
        super().__init__(decoding, max_length - 1, step)
        self.begun = [
            self.length,
            self.tokens,
            *self.found,
            TensorSpec("common", "int64", ("batch", 1, "common_length")),
            TensorSpec("rows", "int64", ("batch", 1)),
        ]

    def _begin(self, token_ids, lengths):
        common = ops.min(lengths)
        places = ops.arange(self.max_length, dtype="int64")
        longest = ops.cast(ops.shape(token_ids)[1], "int64")
        tokens = ops.take(token_ids, ops.minimum(places + 1, longest - 1), axis=1)
        tokens = ops.where(places < common - 1, tokens, 0)[:, None]  # (B, 1, T - 1)
        beams = ops.zeros((1, self.beams, 1), "int64")
        begun = {
            "length": ops.cast(common - 1, "int32"),
            "tokens": ops.cast(tokens + beams, "int32"),
            "common": token_ids[:, None, :common],
            "rows": ops.arange(ops.shape(token_ids)[0], dtype="int64")[:, None],
        }
        found = self.search.begin(ops.shape(token_ids)[0])
        return begun | {f"found_{name}": each for name, each in found.items()}

    def _rest(self, token_ids, lengths):
        # One more, so that there is one at least.
        return ops.pad(token_ids[:, 1:], [(0, 0), (0, 1)]), lengths - 1

    def _results(self, tokens, token_ids, lengths, **found):
        results = super()._results(tokens, **found)
        is_found = ops.cast(results["generated_lengths"] > 0, "int32")
        first = ops.cast(token_ids[:, :1], "int32") * is_found[:, None]
        results["generated_ids"] = ops.concatenate([first, results["generated_ids"]], axis=1)
        # Every prompt has a token: `lengths` is read, so that it stays an input.
        own = ops.cast(ops.minimum(lengths, 1), "int32")
        results["generated_lengths"] = results["generated_lengths"] + own * is_found
        return results


def _results(max_length):
    return [
        TensorSpec("generated_ids", "int32", ("batch", max_length)),
        TensorSpec("generated_lengths", "int32", ("batch",)),
        TensorSpec("scores", "float32", ("batch",)),
    ]


def _found(named):
    return {name.removeprefix("found_"): each for name, each in named.items()}


def _most_probable(log_probs, position):
    """Greedy search's choice; Keras's own arg-max is made of what ONNX has not."""
    return ops.top_k(log_probs, 1)[1][:, 0]
