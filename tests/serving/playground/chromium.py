"""A page in a real Chromium."""

import contextlib
import shutil

import pytest

from seqkeras.serving.playground import page_of
from tests.serving.http.served import served

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE = 60_000  # milliseconds
REFUSED = "Failed to load resource: the server responded with a status of 4"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]

NEEDS_CHROMIUM = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH"),
]
NEEDS_PACKAGES = pytest.mark.skipif(
    bool(page_of().missing), reason="needs the packages of serving/javascript: npm ci there"
)


@contextlib.contextmanager
def driven():
    """Yield a Chromium that playwright drives."""
    api = pytest.importorskip("playwright.sync_api", reason="needs requirements-test.txt")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@contextlib.contextmanager
def opened(browser, address, refusals=False, **options):
    """Open an address; yields playwright's page, and fails if the browser complained.

    Args:
        browser: the fixture.
        address: of the page.
        refusals: whether the server refuses requests in this test, of which the browser complains.
        options: of the browser's context, such as `color_scheme`.
    """
    with contextlib.closing(browser.new_context(**options)) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        complaints = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: _require_own(address, request.url, complaints))
        page.goto(address)
        yield page
    if refusals:
        complaints = [text for text in complaints if not text.startswith(REFUSED)]
    assert not complaints, complaints


@contextlib.contextmanager
def served_page(browser, bundles, path="", token=None, **options):
    """Serve bundles, name -> folder, and open their page as `opened` does."""
    with (
        served(bundles, page=page_of(), token=token) as port,
        opened(browser, f"http://127.0.0.1:{port}/{path}", **options) as page,
    ):
        yield page


def _require_own(address, url, complaints):
    origin = "/".join(address.split("/")[:3])
    if not url.startswith(f"{origin}/"):
        complaints.append(f"asks {url}")


def panel(page, side="on the server"):
    return page.get_by_role("region", name=f"Answer {side}")
