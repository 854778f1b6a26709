"""A folder as npm makes it, of files that say their name."""

from seqkeras.serving.playground.page import FROM_NPM


def npm_folder(parent):
    folder = parent / "node_modules"
    for path in FROM_NPM.values():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)
    return folder
