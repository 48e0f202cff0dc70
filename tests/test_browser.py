"""Open every page of the built site in headless Chromium, wide and phone-width, with the outside world cut off.

Where there is no Chromium the tests are skipped with the reason, or fail if the environment variable CI is set.
"""

import functools
import http.server
import os
import shutil
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]
SITE = Path(os.environ.get("XOR_SITE", ROOT / "_build" / "html"))
# Under _static lie the theme's own fragments, which are no pages.
PAGES = sorted(
    page for path in SITE.rglob("*.html") if not (page := path.relative_to(SITE).as_posix()).startswith("_static/")
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run"]  # fmt: skip
SIZES = {"wide": (1400, 900), "phone": (390, 844)}

INSPECT = r"""
async () => {
  if (window.MathJax?.startup?.promise) await MathJax.startup.promise;
  for (const image of document.images) image.loading = "eager";
  await Promise.all([...document.images].map(image => image.decode().catch(() => null)));
  const article = document.querySelector("article") ?? document.body;
  const maths = [...document.querySelectorAll(".math.notranslate")];
  const wide = document.documentElement.clientWidth;
  // What sticks out of the article, unless a box inside it scrolls or is meant to cut it off. The theme cuts the
  // article itself off at the screen's edge, so the page's own width tells nothing.
  const held = node => {
    for (let box = node.parentElement; box && box !== article; box = box.parentElement)
      if (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(box).overflowX)) return true;
    return false;
  };
  return {
    title: document.title,
    maths: maths.length,
    unrendered: maths.filter(node => !node.querySelector("mjx-container")).map(node => node.textContent.slice(0, 80)),
    // MathJax shows an unknown macro in red and a syntax error as an mjx-merror.
    wrong: [...document.querySelectorAll("mjx-merror, mjx-container [style*='color: red']")]
      .map(node => node.getAttribute("data-mjx-error") ?? node.closest(".math")?.id ?? "unknown macro"),
    raw: [...article.querySelectorAll("p, li, td, dd, figcaption")]
      .filter(node => !node.querySelector("code, pre, .math"))
      .filter(node => /\$[^$\s][^$]*\\[a-z]+[^$]*\$|\\\(|\\\[/.test(node.textContent))
      .map(node => node.textContent.slice(0, 80)),
    noAlt: [...document.images].filter(image => !image.alt.trim()).map(image => image.src.slice(0, 120)),
    badAlt: [...document.images].map(image => image.alt).filter(alt => /[\/\\]|\.(png|jpe?g|svg|gif)\b/i.test(alt)),
    noPixels: [...document.images].filter(image => !image.naturalWidth && image.getAttribute("src"))
      .map(image => image.src.slice(0, 120)),
    scroll: document.documentElement.scrollWidth - wide,
    overflow: [...article.querySelectorAll("*")]
      .filter(node => node.getBoundingClientRect().right > wide + 1 && node.getClientRects().length && !held(node))
      .map(node => node.tagName + "." + node.className).slice(0, 5),
  };
}
"""


def no_browser(reason: str):
    if os.environ.get("CI"):
        pytest.fail(f"{reason}; CI must have a browser")
    pytest.skip(reason)


@pytest.fixture(scope="module")
def site():
    """Serve the site on a free local port."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    assert PAGES, f"no built book in {SITE}: run `make book` first"
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        no_browser("playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    with sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, names)), None)
        own = playwright.chromium.executable_path
        path = found or (own if Path(own).exists() else None)
        if path is None:
            no_browser("no Chromium found")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


def visit(browser, site, page, size, scheme="light"):
    """Open one page; return what INSPECT found and what went wrong on the way."""
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, service_workers="block")
    context.add_init_script(f"localStorage.setItem('mode', '{scheme}'); localStorage.setItem('theme', '{scheme}')")
    trouble = {"outside requests": [], "console errors": [], "failed requests": []}

    def gate(route):
        url = route.request.url
        if url.startswith(site + "/"):
            route.continue_()
        else:
            trouble["outside requests"].append(url)
            route.abort()

    context.route("**/*", gate)
    tab = context.new_page()
    tab.on("console", lambda msg: msg.type == "error" and trouble["console errors"].append(msg.text))
    tab.on("pageerror", lambda error: trouble["console errors"].append(str(error)))
    tab.on("response", lambda r: r.status >= 400 and trouble["failed requests"].append(f"{r.status} {r.url}"))
    try:
        tab.goto(f"{site}/{page}", wait_until="networkidle")
        if page == "index.html":
            # It leads to the first page by itself, which is then inspected.
            tab.wait_for_url(lambda url: urlsplit(url).path != "/index.html")
            tab.wait_for_load_state("networkidle")
        found = tab.evaluate(INSPECT)
        tab.wait_for_timeout(100)
    finally:
        context.close()
    return found, {kind: seen for kind, seen in trouble.items() if seen}


def test_site_is_built():
    assert PAGES, f"no built book in {SITE}: run `make book` first"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("page", PAGES)
def test_page_in_a_browser(browser, site, page, size):
    found, trouble = visit(browser, site, page, size, "dark" if size == "phone" else "light")
    assert not trouble, f"{page}: {trouble}"
    assert found["title"].strip()
    for kind in ("unrendered", "wrong", "raw"):
        assert not found[kind], f"{page}: equations {kind}: {found[kind]}"
    for kind in ("noAlt", "badAlt", "noPixels"):
        assert not found[kind], f"{page}: images, {kind}: {found[kind]}"
    assert found["scroll"] <= 1 and not found["overflow"], (
        f"{page}: wider than a {size} screen by {found['scroll']} pixels; sticking out: {found['overflow']}"
    )


def test_the_equations_are_there(browser, site):
    """The checks above pass on a page without any equation, so some page must have them."""
    texts = {page: (SITE / page).read_text(encoding="utf-8") for page in PAGES}
    sources = [(page, text.count('class="math notranslate')) for page, text in texts.items()]
    page, count = max(sources, key=lambda pair: pair[1])
    found, _ = visit(browser, site, page, "wide")
    assert count > 10 and found["maths"] == count
