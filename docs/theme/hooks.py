"""What the site needs beside docs/: pages from other folders, and scripts from npm.

A page may link to any file of the checkout, relative to itself, as on GitHub. A file outside of
docs/ that a page links to comes into the site under its path in the checkout: Markdown and
notebooks as pages, another text as a page that shows it, anything else as it is. Only README.md,
whose place is taken by docs/README.md, gets another name.

Without the files from npm no page asks for them: formulas and diagrams stay text, and the search
answers only where a server hands out the site.
"""

import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.structure.files import File, InclusionLevel
from mkdocs.utils import get_relative_url
from notebooks import page_of

CHECKOUT = Path(__file__).resolve().parents[2]
DOCS = CHECKOUT / "docs"
NPM = Path(__file__).parent / "node_modules"
OVERVIEW = "overview.md"
LINK = re.compile(r'(\]\(|src=")(?!\w+:)([^)#\s"]+)')
LANGUAGES = {"": "text", ".yml": "yaml"}
PERCENT = re.compile(r"(\d) %(?![^<]*</code>)")
PICTURES = {".png", ".svg", ".jpg", ".gif"}

# What a page shows, and what it then takes of a package from npm into its head.
FORMULAS = (
    'class="arithmatex"',
    "katex",
    (
        '<link rel="stylesheet" href="{}assets/katex/katex.min.css">'
        '<script defer src="{}assets/katex/katex.min.js"></script>'
        '<script defer src="{}assets/katex/contrib/auto-render.min.js"></script>'
        '<script defer src="{}assets/formulas.js"></script>'
    ),
)
DIAGRAMS = (
    'class="mermaid"',
    "mermaid",
    '<script src="{}assets/mermaid/mermaid.tiny.js"></script>',
)
SEARCH_OF_FILES = "iframe-worker"
SECTION = '<nav class="md-nav" aria-label="'  # of the table of contents
FROM_NPM = {
    "katex": ("katex/dist", ("katex.min.*", "contrib/auto-render.min.js", "fonts/*.woff2")),
    "mermaid": ("@mermaid-js/tiny/dist", ("mermaid.tiny.js",)),
    SEARCH_OF_FILES: ("iframe-worker/shim", ("index.js",)),
}
# Weights in the search: the first pattern that the place of a page begins with decides. A page that
# tells how comes before the reference, figures, programs, and files of other folders.
WEIGHTS = (
    ("reference/", 0.5),
    ("(scores|speed|zh|architecture|gallery)[./]", 0.5),
    ("training/(scripts|recipes|.*-scores)", 0.5),
    ("CHANGELOG|CONTRIBUTING|SECURITY", 0.2),
    (r"(bundles|server|streams)\.md|library/(attention|recurrent)\.md", 8),
    ("backward|library/runs|edge[./]|(pretrained|server|streams)/", 2),
    (r"serving/(javascript/)?README\.md", 2),
    (r"[\w-]+\.md|(export|library|tasks)/", 3),
    ("training/|examples/", 1),
    ("", 0.1),
)


def on_config(config):
    """Let the search run in pages that are opened as files, if npm has brought what it needs."""
    brought = _from_npm(SEARCH_OF_FILES)
    config.extra["polyfills"] = [f"assets/{SEARCH_OF_FILES}/index.js"] if brought else []
    return config


def on_files(files, config):
    """Add what pages link to outside of docs/, the style, and the files from npm."""
    waiting = [Path(file.abs_src_path) for file in files.documentation_pages()]
    while waiting:
        page = waiting.pop()
        for _, link in LINK.findall(page.read_text(encoding="utf-8")):
            target = _target(page, link)
            if target is None or target.is_relative_to(DOCS) or _uri(target) in files.src_uris:
                continue
            files.append(_brought(target, config))
            if target.suffix in {".md", ".ipynb"}:
                waiting.append(target)
    for asset in ("style.css", "access.js", "formulas.js"):
        files.append(_asset(config, asset, Path(__file__).parent / asset))
    for name, (folder, patterns) in FROM_NPM.items():
        for pattern in patterns:
            for path in sorted((NPM / folder).glob(pattern)):
                inside = path.relative_to(NPM / folder).as_posix()
                files.append(_asset(config, f"{name}/{inside}", path))
    return files


def on_page_markdown(markdown, page, config, files):
    """Lead links between files of the checkout to their places in the site; weigh the page in the
    search."""
    uri = page.file.src_uri
    if uri == "README.md":  # names every page: the search would find it first
        page.meta["search"] = {"exclude": True}
    else:
        weight = next(weight for pattern, weight in WEIGHTS if re.match(pattern, uri))
        page.meta["search"] = {"boost": weight}
    source = _source(page.file)
    here = PurePosixPath(uri).parent

    def led(match):
        target = _target(source, match[2])
        if target is None:
            return match[0]
        return match[1] + os.path.relpath(_uri(target), here)

    return LINK.sub(led, markdown) if source else markdown


def on_page_content(html, page, config, files):
    """Mend what a browser makes of tables and code.

    An empty head of a column, which a screen reader would announce, becomes an empty cell. A short
    phrase of code, such as an option, stays on one line; a path breaks after a slash or an
    underscore, a long name after a dot. A percentage in a table stays on one line.
    """
    html = re.sub(r"<th( [^>]*)?></th>", r"<td\1></td>", html)
    html = re.sub(
        r"<t[dh].*?</t[dh]>", lambda cell: PERCENT.sub(r"\1&nbsp;%", cell[0]), html, flags=re.S
    )
    return re.sub(r"<code>([^<\n]*)</code>", lambda match: _phrase(match[1]), html)


def on_post_page(output, page, config):
    """Add the scripts of formulas and diagrams where there are any, and names of landmarks."""
    root = get_relative_url(".", page.url) + "/"
    for shown, package, head in (FORMULAS, DIAGRAMS):
        if shown in output and _from_npm(package):
            output = output.replace("</head>", f"{head.replace('{}', root)}</head>", 1)
    shown, package, _ = DIAGRAMS
    if not _from_npm(package):  # the theme would fetch Mermaid from another server
        output = output.replace(shown, 'class="diagram"')
    # A heading with headings below it may have the name of a part of the site.
    output = output.replace(SECTION, f"{SECTION}On this page: ")
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"', 1)


def _from_npm(package):
    """Return whether npm has brought what the site takes of a package."""
    folder, _ = FROM_NPM[package]
    return (NPM / folder).is_dir()


def _target(page, link):
    """Return the file of the checkout that a link of a page leads to; None where there is none."""
    target = (page.parent / link).resolve()
    if target.is_dir():
        target /= "README.md"
    return target if target.is_file() and target.is_relative_to(CHECKOUT) else None


def _uri(target):
    """Return the place of a file of the checkout among the sources of the site."""
    if target == CHECKOUT / "README.md":
        return OVERVIEW
    if target.is_relative_to(DOCS):
        return target.relative_to(DOCS).as_posix()
    path = target.relative_to(CHECKOUT).as_posix()
    return path if target.suffix in {".md", *PICTURES} else f"{path}.md"


def _source(file):
    """Return the file of the checkout that a page of the site is made from, or None."""
    if file.src_uri.endswith(".ipynb.md"):
        return CHECKOUT / file.src_uri.removesuffix(".md")
    path = Path(file.abs_src_path) if file.abs_src_path else None
    return path if path and path.suffix == ".md" else None


def _brought(target, config):
    """Return a file of the checkout as a file of the site."""
    uri = _uri(target)
    if target.suffix == ".md" or target.suffix in PICTURES:
        return File.generated(config, uri, abs_src_path=str(target))
    if target.suffix == ".ipynb":
        return File.generated(config, uri, content=page_of(target))
    path = target.relative_to(CHECKOUT).as_posix()
    language = LANGUAGES.get(target.suffix, target.suffix.removeprefix("."))
    content = f"# {path}\n\n````{language}\n{target.read_text(encoding='utf-8')}````\n"
    return File.generated(config, uri, content=content, inclusion=InclusionLevel.NOT_IN_NAV)


def _phrase(code):
    if "/" in code:
        return "<code>" + re.sub("([/_])", r"\1<wbr>", code) + "</code>"
    if len(code) > 20 and re.fullmatch(r"[\w.]+", code):
        return f"<code>{code.replace('.', '.<wbr>')}</code>"
    return f'<code class="short">{code}</code>' if len(code) <= 30 else f"<code>{code}</code>"


def _asset(config, name, path):
    return File.generated(config, f"assets/{name}", abs_src_path=str(path))
