"""Directives that fill the book's pages from the code, so that nothing is typed twice.

    {scorecard-totals}                     how many claims of each paper got which verdict
    {claims-table}                         the ledger with its verdicts      options: paper, notebook, verdict (a, b)
    {notebook-figure} path#figure-name     a figure of an executed notebook, with its alt text and caption
    {parameters-table}                     each notebook's parameters        argument (optional): one notebook's stem
    {versions-table}                       the pinned packages
    {citation}                             how to cite, from CITATION.cff
    {xorlib-api}                           the library's modules

Every notebook page also gets links to its .ipynb and its .md.
"""

import ast
import base64
import hashlib
import html
import importlib
import io
import os
import pkgutil
import re
import shutil
import textwrap
import tokenize
from collections import Counter
from pathlib import Path

import nbformat
import yaml
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

PAPERS = {"rfa": "RFA", "ftt": "FTT"}
VERDICTS = [
    "reproduced",
    "reproduced with practical constants",
    "reproduced after correction",
    "not reproduced",
    "out of reach",
]
MODULES = ["data", "network", "train", "measure", "theory", "population", "kernels", "invariance", "sweep", "longrun",
           "store", "claims", "outputs", "parameters", "plots"]  # fmt: skip


class BookDirective(SphinxDirective):
    """A directive that writes MyST and has it parsed in place."""

    @property
    def root(self) -> Path:
        return Path(self.env.srcdir)

    def parse(self, text: str) -> list[nodes.Node]:
        container = nodes.Element()
        lines = StringList(text.splitlines(), source=self.get_source_info()[0])
        self.state.nested_parse(lines, self.content_offset, container, match_titles=True)
        return container.children

    def depend_on(self, path: Path) -> Path:
        self.env.note_dependency(str(path))
        return path

    def chapter(self, notebook: str) -> str:
        """A link to a notebook's page, or its bare name while it is not in the book."""
        docname = f"notebooks/{notebook}"
        return f"{{doc}}`/{docname}`" if docname in self.env.found_docs else f"`{notebook}`"

    def ledger(self) -> list[dict]:
        from xorlib import claims

        for path in sorted((self.root / "notebooks").glob("*.ipynb")):
            self.depend_on(path)
        for path in sorted(Path(claims.__file__).parent.glob("claims*.yml")):
            self.depend_on(path)
        return claims.table()


def table(head: list[str], rows: list[list[str]], widths: str = "auto", classes: str = "") -> str:
    """A MyST list-table; cells hold MyST."""
    lines = ["```````{list-table}", ":header-rows: 1", f":widths: {widths}"]
    lines += [f":class: {classes}"] * bool(classes) + [""]
    for row in [head, *rows]:
        for index, cell in enumerate(row):
            cell = " ".join(str(cell).split())
            lines.append(f"{'*' if index == 0 else ' '} - {cell}")
    return "\n".join([*lines, "```````"])


def badge(verdict: str | None) -> str:
    words = verdict or "no verdict yet"
    return f'<span class="xor-badge" data-verdict="{html.escape(words)}">{html.escape(words)}</span>'


class ScorecardTotals(BookDirective):
    """Count the verdicts of each paper."""

    def run(self):
        counts = {paper: Counter() for paper in PAPERS}
        for claim in self.ledger():
            counts[str(claim["paper"]).lower()][claim["verdict"]] += 1
        seen = set().union(*counts.values())
        # An unknown verdict must show up in the totals rather than vanish from them.
        order = VERDICTS + sorted(str(v) for v in seen - set(VERDICTS) - {None}) + [None] * (None in seen)
        rows = [[badge(v), *(str(counts[p][v]) for p in PAPERS)] for v in order if v in VERDICTS or v in seen]
        rows.append(["**all claims**", *(f"**{counts[paper].total()}**" for paper in PAPERS)])
        return self.parse(table(["verdict", *PAPERS.values()], rows, classes="xor-totals"))


class ClaimsTable(BookDirective):
    """The ledger, one claim a row."""

    option_spec = dict.fromkeys(["paper", "notebook", "verdict"], directives.unchanged_required)

    def run(self):
        keep = {key: [v.strip().lower() for v in value.split(",")] for key, value in self.options.items()}
        rows = [
            [
                f"`{claim['id']}` {plain(claim['where'])}",
                f'{plain(claim["statement"])}<span class="xor-rule">*Rule:* {plain(claim["rule"])}</span>',
                badge(claim["verdict"]) + _measured(claim),
                self.chapter(claim["notebook"]),
            ]
            for claim in self.ledger()
            if all(str(claim[key]).lower() in values for key, values in keep.items())
        ]
        if not rows:
            return self.parse("None.")
        head = ["claim", "statement and pass rule", "verdict", "chapter"]
        return self.parse(table(head, rows, "20 42 26 12", "xor-claims"))


def _measured(claim: dict) -> str:
    signs = {"at_least": "≥", "at_most": "≤"}
    lines = []
    for name, value in (claim.get("measured") or {}).items():
        limits = " and ".join(f"{signs[op]} {limit:g}" for op, limit in (claim["bound"].get(name) or {}).items())
        shown = "not finite" if value is None else f"{value:.4g}"
        lines.append(f"{name.replace('_', ' ')}: {shown}" + f" ({limits})" * bool(limits))
    if claim.get("reason"):
        lines.append(claim["reason"])
    if claim.get("num_seeds"):
        lines.append(f"{claim['num_seeds']} seed" + "s" * (claim["num_seeds"] != 1))
    return "".join(f'<span class="xor-measured">{html.escape(line)}</span>' for line in lines)


def plain(text: str | None) -> str:
    """Text of the ledger as MyST: only `code` keeps its meaning."""
    parts = re.split(r"(`[^`]+`)", text or "")
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_<>\[\]{}$|#~^])", r"\\\1", part) for part in parts)


class NotebookFigure(BookDirective):
    """Show a figure of an executed notebook: image and alt text are the notebook's own."""

    required_arguments = 1
    has_content = True

    def run(self):
        name, _, figure = self.arguments[0].partition("#")
        path = self.root / f"{name}.ipynb"
        if not path.exists():
            raise self.error(f"there is no notebook {name}.ipynb")
        notebook = nbformat.read(self.depend_on(path), as_version=4)
        cells = {cell.metadata.get("mystnb", {}).get("figure", {}).get("name"): cell for cell in notebook.cells}
        cell = cells.get(figure)
        if cell is None:
            have = ", ".join(sorted(filter(None, cells))) or "none"
            raise self.error(f"{name}.ipynb has no figure named {figure!r}; it has: {have}")
        images = [out.data["image/png"] for out in cell.get("outputs", []) if "image/png" in out.get("data", {})]
        alt = cell.metadata["mystnb"].get("image", {}).get("alt")
        if not images or not alt:
            raise self.error(f"figure {figure!r} of {name}.ipynb has no {'alt text' if images else 'PNG output'}")

        data = base64.b64decode(images[0])
        folder = Path(self.env.app.outdir).parent / "notebook_figures"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{figure}-{hashlib.sha256(data).hexdigest()[:12]}.png"
        file.write_bytes(data)

        caption = "\n".join(self.content) or cell.metadata["mystnb"]["figure"].get("caption", "")
        image = nodes.image(uri="/" + os.path.relpath(file, self.root), alt=" ".join(alt.split()))
        # A legend, not a caption: the figure keeps the number it has in its chapter.
        legend = nodes.legend("", *self.parse(f"{{numref}}`{figure}`, {self.chapter(Path(name).name)}. {caption}"))
        return [nodes.figure("", image, legend, classes=["xor-preview"], align="center")]


class ParametersTable(BookDirective):
    """Each notebook's parameters: type and range from its model, default and help from its parameters cell."""

    optional_arguments = 1

    def run(self):
        from xorlib import parameters

        stems = self.arguments or [
            stem for stem in sorted(parameters.MODELS) if (self.root / f"notebooks/{stem}.ipynb").exists()
        ]
        text = []
        for stem in stems:
            model = parameters.MODELS[stem]
            declared = read_parameters(self.depend_on(self.root / f"notebooks/{stem}.ipynb"))
            unlike = set(declared) ^ set(model.model_fields)
            if unlike:
                raise self.error(f"{stem}: parameters cell and model differ in {', '.join(sorted(unlike))}")
            paper = {name: f"; `{scale[1]!r}` in `paper`" for name, scale in model.paper_scale.items()}
            rows = [
                [
                    f"`{name}`",
                    type_name,
                    re.sub(r"'(\w+)'", r"`\1`", model.allowed(name)),
                    f"`{default}`{paper.get(name, '')}",
                    plain(help_text),
                ]
                for name, (type_name, default, help_text) in declared.items()
            ]
            if not self.arguments:
                text += [f"(parameters-{stem})=", f"### {stem}", "", f"Chapter {self.chapter(stem)}.", ""]
            head = ["parameter", "type", "allowed", "default", "meaning"]
            text += [table(head, rows, "18 8 26 12 36", "xor-parameters"), ""]
        return self.parse("\n".join(text))


def read_parameters(path: Path) -> dict[str, tuple[str, str, str]]:
    """name -> (type, default as written, help) of a notebook's cell tagged `parameters`."""
    notebook = nbformat.read(path, as_version=4)
    cells = [cell.source for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if not cells:
        return {}
    comments = {
        token.start[0]: re.sub(r"^#\s*(?:help:)?\s*", "", token.string)
        for token in tokenize.generate_tokens(io.StringIO(cells[0]).readline)
        if token.type == tokenize.COMMENT
    }
    found = {}
    for line in ast.parse(cells[0]).body:
        if isinstance(line, ast.AnnAssign):
            name, kind = ast.unparse(line.target), ast.unparse(line.annotation)
        elif isinstance(line, ast.Assign):
            name, kind = ast.unparse(line.targets[0]), type(ast.literal_eval(line.value)).__name__
        else:
            continue
        default = ast.get_source_segment(cells[0], line.value)
        found[name] = (kind, default, comments.get(line.end_lineno, ""))
    return found


class VersionsTable(BookDirective):
    """The pins of requirements.txt."""

    def run(self):
        lines = self.depend_on(self.root / "requirements.txt").read_text(encoding="utf-8").splitlines()
        pins = [re.split(r"==", line.split("#")[0].split(";")[0].strip()) for line in lines if "==" in line]
        return self.parse(table(["package", "version"], [[f"`{n.strip()}`", v.strip()] for n, v in pins]))


class Citation(BookDirective):
    """How to cite, from CITATION.cff."""

    def run(self):
        cff = yaml.safe_load(self.depend_on(self.root / "CITATION.cff").read_text(encoding="utf-8"))
        who = " and ".join(a.get("name") or f"{a['given-names']} {a['family-names']}" for a in cff["authors"])
        year = str(cff["date-released"])[:4]
        text = f"""
        > {who} ({year}). *{cff["title"]}*, version {cff["version"]}. {cff["license"]} licence.

        ```bibtex
        @software{{executable_xor,
          title   = {{{cff["title"]}}},
          author  = {{{{{who}}}}},
          year    = {{{year}}},
          version = {{{cff["version"]}}},
          license = {{{cff["license"]}}}
        }}
        ```
        """
        return self.parse(textwrap.dedent(text))


class Api(BookDirective):
    """One section a module, in the order in which data flow through them."""

    def run(self):
        import xorlib

        found = {module.name for module in pkgutil.iter_modules(xorlib.__path__) if module.name[0] != "_"}
        found -= {"version"}  # nothing to call there
        text = []
        for name in [m for m in MODULES if m in found] + sorted(found - set(MODULES)):
            importlib.import_module(f"xorlib.{name}")
            text += [f"## xorlib.{name}", "", "```{eval-rst}", f".. automodule:: xorlib.{name}",
                     "   :members:", "```", ""]  # fmt: skip
        return self.parse("\n".join(text))


def plain_docstring(app, what, name, obj, options, lines):
    """Turn a plain docstring into reStructuredText: `code` becomes a literal, indented lines a literal block."""
    blocks, out = "\n".join(lines).strip("\n").split("\n\n"), []
    for block in blocks:
        rows = block.splitlines()
        if any(row[:1].isspace() and row.strip() for row in rows) and not rows[0].lstrip().startswith(("- ", "* ")):
            lead = next(index for index, row in enumerate(rows) if row[:1].isspace())
            out += [*map(_escape, rows[:lead]), *([""] * (lead > 0)), "::", ""]
            out += ["    " + row for row in rows[lead:]] + [""]
        else:
            for row in rows:
                mark = re.match(r"\s*[-*] ", row)
                if mark and out and out[-1] and not re.match(r"\s*- ", out[-1]):
                    out.append("")
                out.append("- " + _escape(row[mark.end() :]) if mark else _continued(out, row))
            out.append("")
    lines[:] = out


def _continued(out: list[str], row: str) -> str:
    return ("  " if out and re.match(r"(- |  )", out[-1]) else "") + _escape(row.strip())


def _escape(row: str) -> str:
    parts = re.split(r"(``.+?``|`[^`]+`)", row)
    return "".join(
        "``" + part.strip("`") + "``" if part.startswith("`") else re.sub(r"([\\*|`]|_(?=\W|$))", r"\\\1", part)
        for part in parts
    )


def no_model_signature(app, what, name, obj, options, signature, return_annotation):
    """A model's signature repeats its fields with all their limits; the parameters table says it better."""
    if what == "class" and hasattr(obj, "model_fields"):
        return "", None


def skip_member(app, what, name, obj, skip, options):
    """Leave out what Python and pydantic add by themselves: fields of named tuples, a model's settings."""
    generated = name == "model_config" or (getattr(obj, "__doc__", None) or "").startswith("Alias for field number")
    return True if generated else None


def add_alt_to_html_outputs(app, doctree):
    """Give a cell's alt text to images inside its HTML output too, such as an animation's."""
    for cell in doctree.findall(nodes.container):
        alt = cell.get("cell_metadata", {}).get("mystnb", {}).get("image", {}).get("alt")
        if not alt:
            continue
        image = f'<img alt="{html.escape(" ".join(alt.split()))}"'.replace("\\", r"\\")
        for raw in cell.findall(nodes.raw):
            raw[:] = [nodes.Text(re.sub(r"<img\b(?![^>]*\balt=)", image, raw.astext()))]


def add_downloads(app, pagename, templatename, context, doctree):
    """Offer the notebook and its text twin: in the theme's download menu, and as a line under the title."""
    source = Path(app.srcdir) / f"{pagename}.ipynb"
    twin = source.with_suffix(".md")
    if doctree is None or not source.exists():
        return
    base = f"{context['pathto']('_sources', 1)}/{pagename}"
    links = [("notebook (.ipynb)", f"{base}.ipynb")]
    if twin.exists():
        links.append(("text (.md)", f"{base}.md"))
        target = Path(app.outdir) / "_sources" / f"{pagename}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(twin, target)
        for group in context.get("header_buttons", []):
            if group.get("label") == "download-buttons":
                group["buttons"].insert(
                    1,
                    {
                        "type": "link",
                        "url": f"{base}.md",
                        "text": ".md",
                        "icon": "fas fa-file-lines",
                        "tooltip": "Download the chapter as text",
                        "label": "download-text-button",
                    },
                )
    anchors = " · ".join(f'<a href="{url}" download>{words}</a>' for words, url in links)
    line = f'<p class="xor-downloads">Download this chapter: {anchors}</p>'
    context["body"] = context["body"].replace("</h1>", "</h1>\n" + line, 1)


def refuse_errors(app, env, docnames):
    """Stop the build, every time, when a notebook holds the output of a cell that raised."""
    raised = [
        f"{path.name}, cell {number}: {output.ename}: {output.evalue}"
        for path in (Path(env.doc2path(name)) for name in sorted(env.found_docs) if name.startswith("notebooks/"))
        for number, cell in enumerate(nbformat.read(path, as_version=4).cells)
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    ]
    if raised:
        raise ExtensionError("a cell raised an error: " + "; ".join(raised))


def setup(app):
    for name, directive in {
        "scorecard-totals": ScorecardTotals,
        "claims-table": ClaimsTable,
        "notebook-figure": NotebookFigure,
        "parameters-table": ParametersTable,
        "versions-table": VersionsTable,
        "citation": Citation,
        "xorlib-api": Api,
    }.items():
        app.add_directive(name, directive)
    app.connect("autodoc-process-docstring", plain_docstring)
    app.connect("autodoc-process-signature", no_model_signature)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("doctree-read", add_alt_to_html_outputs)
    app.connect("html-page-context", add_downloads, priority=600)
    app.connect("env-before-read-docs", refuse_errors)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
