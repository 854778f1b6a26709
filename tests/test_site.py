"""The site of docs/: it builds without a warning, its links lead somewhere, it asks nothing of the
network, and nothing in it keeps anybody out.

It is opened as files, which nothing serves.
"""

import functools
import importlib.util
import os
import subprocess
import sys
from html.parser import HTMLParser
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
KINDS += ["examples/translator.ipynb"]
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
def test_formulas_and_the_diagram_are_drawn(site, browser):
    with opened(browser, (site / "backward.html").as_uri()) as page:
        page.locator(".katex-display").wait_for()
        assert page.locator(".arithmatex").count() == page.locator(".arithmatex .katex").count()
        assert page.evaluate("document.fonts.check('1em KaTeX_Main')")
        page.goto((site / "architecture.html").as_uri())
        page.locator("div.mermaid").wait_for()


@in_chromium
def test_the_search_finds_a_page(site, browser):
    with opened(browser, (site / "index.html").as_uri()) as page:
        page.get_by_role("textbox", name="Search").fill("truncated BPTT")
        found = page.locator(".md-search-result__link", has_text="backward pass")
        found.first.wait_for()
