"""Static checks of the built site: alt text, captions, links, downloads, nothing taken from outside.

Build it first with `make book`. What only a browser can tell is in test_browser.py.
"""

import json
import os
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest
import yaml
from bs4 import BeautifulSoup

from xorlib import __version__, claims, outputs

ROOT = Path(__file__).resolve().parents[1]
SITE = Path(os.environ.get("XOR_SITE", ROOT / "_build" / "html"))
# Under _static lie the theme's own fragments, which are no pages.
PAGES = sorted(
    page for path in SITE.rglob("*.html") if not (page := path.relative_to(SITE).as_posix()).startswith("_static/")
)
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
OUTSIDE = re.compile(r"(?:https?:)?//", re.IGNORECASE)
PATH_LIKE = re.compile(r"[/\\]|\.(?:png|jpe?g|svg|gif|webp)\b", re.IGNORECASE)

# Outputs that the book can show, and those that are meant for programs only and stand beside one that it can show.
KNOWN_MIME = {"text/plain", "text/html", "text/markdown", "text/latex", "image/png", "image/svg+xml"}
OURS = {claims.MIME: "text/html", outputs.FIGURE_MIME: "image/png"}


@cache
def soup(page: str) -> BeautifulSoup:
    return BeautifulSoup((SITE / page).read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(page: str) -> frozenset:
    return frozenset(tag["id"] for tag in soup(page).find_all(id=True))


def test_site_is_built():
    assert PAGES, f"no built book in {SITE}: run `make book` first"


def test_every_page_of_the_toc_is_built():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    files = [toc["root"]] + [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    assert len(files) == len(set(files))
    missing = [file for file in files if f"{file}.html" not in PAGES]
    assert not missing, f"in _toc.yml but not in the built book: {missing}"
    unlisted = [stem for stem in NOTEBOOKS if f"notebooks/{stem}" not in files]
    assert not unlisted, f"notebooks that _toc.yml does not list: {unlisted}"


def test_every_image_has_alt_text():
    poor = []
    # Every file, the theme's fragments too. Words, since a sign such as "-" passes for alt text but tells nothing.
    for path in SITE.rglob("*.html"):
        page = path.relative_to(SITE).as_posix()
        for image in soup(page).find_all("img"):
            alt = (image.get("alt") or "").strip()
            if len(re.findall(r"[^\W\d_]{2,}", alt)) < 2 or PATH_LIKE.search(alt):
                poor.append(f"{page}: {image.get('src', '')[:80]} has alt text {alt!r}")
    assert not poor, "\n".join(poor)


@pytest.mark.parametrize("page", PAGES)
def test_figures_have_captions(page):
    article = soup(page).find("article") or soup(page)
    for figure in article.find_all("figure"):
        caption = figure.find("figcaption")
        assert caption and len(caption.get_text(strip=True)) > 20, f"{page}: figure without a caption: {figure}"
    for image in article.select("div.cell_output img"):
        assert image.find_parent("figure") or image.find_parent(class_="animation"), (
            f"{page}: an output image that is no figure: give its cell a caption, a name and alt text"
        )


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_loaded_from_outside(page):
    loaded = [(tag.name, tag["src"]) for tag in soup(page).find_all(src=True)]
    loaded += [(tag.name, tag["href"]) for tag in soup(page).find_all("link", href=True)]
    outside = [f"<{name}> {url}" for name, url in loaded if OUTSIDE.match(url)]
    assert not outside, f"{page} loads from outside: {outside}"


@pytest.mark.parametrize("page", PAGES)
def test_internal_links_resolve(page):
    broken = []
    for tag in soup(page).find_all(["a", "link", "script", "img"]):
        url = tag.get("href") or tag.get("src")
        if not url or OUTSIDE.match(url) or re.match(r"(?:mailto|data|javascript):", url):
            continue
        path, fragment = urldefrag(url)
        path = unquote(urljoin(page, path.split("?")[0]))
        if not (SITE / path).is_file():
            broken.append(url)
        elif fragment and path.endswith(".html") and unquote(fragment) not in anchors(path):
            broken.append(url)
    assert not broken, f"{page} has links that lead nowhere: {broken}"


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_notebook_pages_offer_downloads(notebook):
    page = f"notebooks/{notebook}.html"
    for suffix in (".ipynb", ".md"):
        source = ROOT / "notebooks" / f"{notebook}{suffix}"
        for where in ("p.xor-downloads a[download]", ".dropdown-download-buttons a"):
            links = [a["href"] for a in soup(page).select(where) if a["href"].endswith(notebook + suffix)]
            assert len(links) == 1, f"{page}: expected one {suffix} link at {where!r}, found {links}"
            target = SITE / urljoin(page, links[0])
            assert target.read_bytes() == source.read_bytes(), (
                f"{target.name} offered for download is not the current one: run `make book`"
            )


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_notebook_outputs_are_of_known_types(notebook):
    """The build is told to be silent about unknown output types; this is why it may be."""
    cells = json.loads((ROOT / "notebooks" / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    for data in (out["data"] for cell in cells for out in cell.get("outputs", []) if "data" in out):
        found = {mime for mime in data if not mime.startswith("application/papermill.record/")}  # myst_nb's glue
        assert found <= KNOWN_MIME | OURS.keys(), f"{notebook}: {found - KNOWN_MIME - OURS.keys()}"
        assert all(OURS[mime] in data for mime in found & OURS.keys()), f"{notebook}: the book has nothing to show"


def test_no_machine_paths_in_pages():
    for page in PAGES:
        text = soup(page).get_text()
        assert str(ROOT) + "/" not in text and not re.search(r"/h[o]me/\w+/|/r[o]ot/|site-packages/", text), page


def test_citation_names_the_released_version():
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(cff["version"]) == __version__
    assert cff["license"] == "MIT" and "MIT License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
