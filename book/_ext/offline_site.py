"""Keep the built site self-contained: MathJax from the installed package, nothing fetched from outside."""

import importlib.util
import re
from pathlib import Path

from sphinx.errors import ExtensionError
from sphinx.util.fileutil import copy_asset, copy_asset_file

# What a page needs to typeset: the combined component and the fonts it loads by itself. The rest of the
# package (22 MB) is speech, SVG and MathML output. The TeX extensions are loaded on first use of, say, \cancel.
MATHJAX_SCRIPT = "tex-chtml.js"
MATHJAX_FOLDERS = ["output/chtml/fonts/woff-v2", "input/tex/extensions"]

# Tags in notebook outputs that make a browser fetch something, such as the icon font of matplotlib's animations
# (the theme has these icons already).
OUTSIDE_TAG = re.compile(
    r"""<link\b[^>]*\bhref\s*=\s*["']?(?:https?:)?//[^>]*>"""
    r"""|<script\b[^>]*\bsrc\s*=\s*["']?(?:https?:)?//[^>]*>\s*</script>""",
    re.IGNORECASE,
)


def _mathjax_folder() -> Path:
    # The package's name has hyphens, so it cannot be imported by name.
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise ExtensionError("sphinx-mathjax-offline is not installed: pip install -r requirements.txt")
    return Path(spec.origin).parent / "static" / "mathjax"


def _use_local_mathjax(app, config):
    config.mathjax_path = f"mathjax/{MATHJAX_SCRIPT}"


def _copy_mathjax(app, exception):
    if exception is not None or app.builder.format != "html":
        return
    source, target = _mathjax_folder(), Path(app.outdir) / "_static" / "mathjax"
    target.mkdir(parents=True, exist_ok=True)
    copy_asset_file(source / MATHJAX_SCRIPT, target / MATHJAX_SCRIPT)
    for folder in MATHJAX_FOLDERS:
        copy_asset(source / folder, target / folder)


def _drop_outside_tags(app, pagename, templatename, context, doctree):
    if context.get("body"):
        context["body"] = OUTSIDE_TAG.sub("", context["body"])


def setup(app):
    app.connect("config-inited", _use_local_mathjax)
    app.connect("html-page-context", _drop_outside_tags)
    app.connect("build-finished", _copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
