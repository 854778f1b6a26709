"""The site of docs/: it builds without a warning, its links lead somewhere, it asks nothing of the
network, and nothing in it keeps anybody out.

It is opened as files, which nothing serves.
"""

import functools
import importlib
import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from types import SimpleNamespace
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from tests.conftest import CHECKOUT
from tests.serving.playground.chromium import NEEDS_CHROMIUM, driven, opened
from tests.serving.playground.test_access import AXE, require_nothing_found

FROM_NPM = CHECKOUT / "docs" / "theme" / "node_modules"
# A page of each kind: tables, commands, figures, formulas, a diagram, pictures, a reference, code,
# a notebook.
KINDS = "index tour tasks/classification speed backward architecture gallery".split()
KINDS += ["reference/recurrent", "serving/index", "serving/deploy/Dockerfile"]
KINDS += ["examples/translator.ipynb", "reference/commands/serve", "library/attention", "scores"]
KINDS += ["library/composites", "reference/commands/train-classification"]
# What people look for, and the page that the search puts first.
SOUGHT = {
    "server": "server",
    "export": "export",
    "bundle": "bundles",
    "lstm": "library/recurrent",
    "attention": "library/attention",
    "streams": "streams",
    "int8": "export/precisions",
    "docker": "clusters",
    "calibration": "training/calibration",
}
LOOKS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "light on a phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
    "dark on a phone": {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}},
}

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None, reason="needs requirements-docs.txt"
)


def in_chromium(test):
    """Mark what needs Chromium and the files from npm."""
    missing = pytest.mark.skipif(not FROM_NPM.is_dir(), reason="needs npm ci in docs/theme")
    for mark in (*NEEDS_CHROMIUM, missing):
        test = mark(test)
    return test


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built anew."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=CHECKOUT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return folder


class Links(HTMLParser):
    """What a page links to and fetches, and the places in it that links may lead to."""

    def __init__(self, path):
        super().__init__()
        self.linked, self.fetched, self.places = [], [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.places |= {attrs.get("id"), attrs.get("name")}
        if "href" in attrs:
            (self.linked if tag == "a" else self.fetched).append(attrs["href"])
        if "src" in attrs:
            self.fetched.append(attrs["src"])


links_of = functools.cache(Links)


def test_a_link_of_the_site_leads_somewhere(site):
    broken = []
    for page in site.rglob("*.html"):
        if page.name == "404.html":  # is shown at any address, so its links begin with /
            continue
        for link in links_of(page).linked + links_of(page).fetched:
            path, place = urldefrag(link)
            if urlsplit(link).scheme:
                continue
            target = (page.parent / unquote(path)).resolve() if path else page
            if not target.is_file() or (
                target.suffix == ".html" and unquote(place) not in links_of(target).places
            ):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert not broken


def test_a_page_fetches_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    fetched = {link for page in pages for link in links_of(page).fetched}
    outside = {link for link in fetched if urlsplit(link).scheme or link.startswith("//")}
    assert {link for link in outside if not link.startswith("data:")} == set()  # is in the page


@pytest.fixture
def hooks(monkeypatch):
    """The hooks of the build, as MkDocs loads them."""
    monkeypatch.syspath_prepend(CHECKOUT / "docs" / "theme")
    return importlib.import_module("hooks")


def heads(hooks):
    """Return what the hooks let a page with a formula and a diagram ask for."""
    config = SimpleNamespace(extra={"polyfills": ["https://example.org/iframe-worker"]})
    page = SimpleNamespace(url="tour.html")
    shown = '<head></head><p class="arithmatex"></p><p class="mermaid"></p>'
    output = hooks.on_post_page(shown, page, config)
    return hooks.on_config(config).extra["polyfills"], set(re.findall(r"assets/(\w+)/", output))


def test_a_page_asks_for_no_file_that_npm_has_not_brought(hooks, monkeypatch, tmp_path):
    monkeypatch.setattr(hooks, "NPM", tmp_path)
    assert heads(hooks) == ([], set())
    for folder, _ in hooks.FROM_NPM.values():
        (tmp_path / folder).mkdir(parents=True)
    assert heads(hooks) == (["assets/iframe-worker/index.js"], {"katex", "mermaid"})


def test_a_diagram_stays_text_where_npm_has_not_brought_mermaid(hooks, monkeypatch, tmp_path):
    """The theme would fetch it from a server for the class `mermaid`."""
    monkeypatch.setattr(hooks, "NPM", tmp_path)
    page = SimpleNamespace(url="tour.html")
    shown = '<head></head><pre class="mermaid"><code>flowchart LR</code></pre>'
    output = hooks.on_post_page(shown, page, None)
    assert "flowchart LR" in output and "mermaid" not in output


def test_what_belongs_together_in_a_table_stays_on_one_line(hooks):
    row = "<p>5 %</p><th>at 5 %</th><td>93.5 %; 4 %</td>"
    row += "<td><code>12 %</code> <code>tests/test_a.py</code></td>"
    told = "<th>at 5&nbsp;%</th><td>93.5&nbsp;%; 4&nbsp;%</td>"
    shown = hooks.on_page_content(row, None, None, None)
    assert told in shown and "<p>5 %</p>" in shown and ">12 %</code>" in shown
    assert "<code>tests/<wbr>test_<wbr>a.py</code>" in shown


def test_files_of_other_folders_are_pages(site):
    names = "CONTRIBUTING CHANGELOG overview serving/index serving/javascript/index"
    for name in [*names.split(), "examples/translator.ipynb"]:
        assert (site / f"{name}.html").is_file()


@pytest.fixture(scope="module")
def browser():
    """A Chromium, driven by playwright."""
    with driven() as browser:
        yield browser


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core: npm ci in serving/javascript")
@pytest.mark.parametrize("look", LOOKS)
@in_chromium
def test_nothing_keeps_anybody_out_and_only_wide_parts_scroll(site, browser, look):
    start = (site / "index.html").as_uri()
    with opened(browser, start, **LOOKS[look], reduced_motion="reduce") as page:
        for kind in KINDS:
            page.goto((site / f"{kind}.html").as_uri())
            require_nothing_found(page, preload=False)
            root = "document.documentElement"
            assert page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), kind


@in_chromium
def test_no_page_scrolls_sideways_and_a_desk_shows_whole_tables(site, browser):
    pages = [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]
    root, tables = "document.documentElement", "document.querySelectorAll('.md-typeset__table')"
    is_wide = "each => each.scrollWidth > each.parentElement.clientWidth + 1"
    wide = f"[...{tables}].filter({is_wide}).length"
    with opened(browser, pages[0].as_uri()) as page:
        for path in pages:
            page.goto(path.as_uri())
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 900})
                assert page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), (path, width)
            page.set_viewport_size({"width": 1280, "height": 900})
            assert page.evaluate(wide) == (path.name == "scores.html"), path  # of 11 columns


def pages_with(site, shown):
    return [page for page in sorted(site.rglob("*.html")) if shown in page.read_text("utf-8")]


@in_chromium
def test_every_formula_is_drawn_with_the_fonts_of_the_site(site, browser):
    pages = pages_with(site, 'class="arithmatex"')
    assert {"backward.html", "recurrent.html"} <= {page.name for page in pages}
    with opened(browser, pages[0].as_uri()) as page:
        for path in pages:
            page.goto(path.as_uri())
            page.locator(".katex").first.wait_for()
            assert page.locator(".arithmatex:not(:has(.katex))").count() == 0, path
            assert page.locator(".katex-error").count() == 0, path
            page.evaluate("document.fonts.ready")
            loaded = "[...document.fonts].filter(font => font.status === 'loaded')"
            assert "KaTeX_Main" in page.evaluate(f"{loaded}.map(font => font.family)"), path


@in_chromium
def test_every_diagram_is_drawn(site, browser):
    pages = pages_with(site, 'class="mermaid"')
    assert {"architecture.html", "composites.html"} <= {page.name for page in pages}
    with opened(browser, pages[0].as_uri()) as page:
        for path in pages:
            page.goto(path.as_uri())
            page.locator("div.mermaid").first.wait_for()
            # Where Mermaid understood nothing, the text stays.
            assert page.locator("pre.mermaid").count() == 0, path


@in_chromium
def test_a_wide_table_scrolls_within_itself_on_a_phone(site, browser):
    with opened(browser, (site / "index.html").as_uri(), **LOOKS["light on a phone"]) as page:
        for name in ("reference/commands/serve", "library/attention", "scores"):
            page.goto((site / f"{name}.html").as_uri())
            wide = "it => it.scrollWidth > it.clientWidth && it.clientWidth <= 390"
            tables = page.locator(".md-typeset__scrollwrap").all()
            assert any(table.evaluate(wide) for table in tables), name


@in_chromium
def test_the_search_puts_the_obvious_page_first(site, browser):
    with opened(browser, (site / "index.html").as_uri()) as page:
        query = page.get_by_role("textbox", name="Search")
        found = page.locator(".md-search-result__link")
        first = {}
        for sought in SOUGHT:
            query.fill(sought)
            query.press("End")  # a key that is let go begins the search
            # The links of an answer hold what was sought.
            page.locator(f'.md-search-result__link[href$="h={sought}"]').first.wait_for()
            address = found.first.get_attribute("href")
            first[sought] = re.sub(r"\.html.*", "", address.rpartition(f"{site.name}/")[2])
        assert first == SOUGHT


@in_chromium
def test_the_search_finds_words_side_by_side(site, browser):
    with opened(browser, (site / "index.html").as_uri()) as page:
        page.get_by_role("textbox", name="Search").fill("truncated BPTT")
        found = page.locator(".md-search-result__link", has_text="backward pass")
        found.first.wait_for()
