"""The text of the model card; `docs/bundles.md` explains what it names."""

CARD = """# {name}

{task}: {pipeline}, exported {created} by seqkeras {version}.

## Run it

From the folder that holds this one:

```
{command}
```

With NumPy and onnxruntime only{libraries}. In Python: `serving.load("{name}")({example})`.
What each part of this folder is, and how to replace it while it is served: `docs/bundles.md` of
seqkeras.
{saved_models}{operators}
| input | answer |
|---|---|
{answers}

## Input

{input}

{generation}{stream}## Measured
{scores}
| Keras against what was exported, on {examples} real inputs | largest difference |
|---|---|
{parity}
{precisions}
## Files

| file | bytes |
|---|---|
{files}
"""
SCORES = """
| on test data | |
|---|---|
{rows}
"""
PRECISIONS = """
| against float32 | bytes | speed, batch 1 | speed, batch 16 | {names} |
|---|---|---|---|{line}|
{rows}

{notes}
"""
STREAM = """## Stream

`serving.load("{name}").open()` answers each frame as it comes, {late}: `push(frames)`. The
state of a stream has {size} bytes. Another host gives `{file}` frames and the state, first zeros,
and takes the next state from the outputs `{next}…`.

| takes | type | shape |
|---|---|---|
{tensors}

"""
GENERATION = """## `{file}`

From {source} to token ids, {how}, for hosts that are not Python.{weights_note}

| | name | type | shape |
|---|---|---|---|
{tensors}

| | |
|---|---|
{facts}

"""
