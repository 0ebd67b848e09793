"""``render_trees``: Markdown as a tree of a few known elements, which a client makes nodes of.

No HTML goes over the wire: a node is text, or ``[tag, attributes, children]``.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterator
from html import unescape
from urllib.parse import unquote, urlsplit

from markdown_it.token import Token
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

TreeNode = str | list[object]
MAX_TEXTS = 100
MAX_CHARACTERS = 400_000
MAX_BRACKETS = 5000
"""Brackets in a text: from each that opens, the parser looks for the one that closes it."""
MAX_DEPTH = 40
"""How deep lists and quotes may be nested: a browser, too, has a limit."""
MAX_SECONDS = 1
"""Processor time for the colours of code in all texts of a request."""
MAX_LABEL = 100
"""Characters of the language behind a fence."""
_WORD = re.compile(r"[^\W\d_]+")
SCHEMES = ("http", "https", "mailto")
_TAGS = {"p", "ul", "ol", "li", "blockquote", "em", "strong", "s", "a"}
_TAGS |= {"h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"}


async def render_markdown(request: Request) -> Response:
    """Render texts; one that is too long, or cannot be parsed, comes back as plain text.

    ---
    summary: Markdown as trees, with code highlighted
    tags: [Page]
    requestBody:
      content:
        application/json:
          schema: {type: object, properties: {texts: {type: array, items: {type: string}}}}
    responses:
      "200": {description: "trees: a list of nodes for each text"}
      "422": {description: Too many texts, or something else than texts}
    """
    try:
        texts = (await request.json())["texts"]
    except (ValueError, RecursionError, LookupError, TypeError):
        texts = None
    is_list = isinstance(texts, list) and len(texts) <= MAX_TEXTS
    if not is_list or not all(isinstance(text, str) for text in texts):
        return JSONResponse({"detail": f"give 'texts': at most {MAX_TEXTS} texts"}, 422)
    return JSONResponse({"trees": await asyncio.to_thread(render_trees, texts)})


def render_trees(texts: list[str]) -> list[list[TreeNode]]:
    """A tree for each text; blocks."""
    left, trees, end = MAX_CHARACTERS, list[list[TreeNode]](), time.thread_time() + MAX_SECONDS
    for text in texts:
        left -= len(text)
        trees.append(_render(text, end) if left >= 0 else [text])
    return trees


def _render(text: str, end: float) -> list[TreeNode]:
    """The tree of a text; the text itself if Markdown would hide a word, as it may be a plan.

    Hidden would be a link's definition, a cell too many in a row, or what is nested too deeply.
    """
    from markdown_it import MarkdownIt  # noqa: PLC0415  # at the first use: the start stays fast

    if text.count("[") > MAX_BRACKETS:
        return [text]
    options = {"html": False, "maxNesting": MAX_DEPTH}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    tokens = parser.parse(text)
    words = Counter(_WORD.findall(unescape(text)))
    shown = Counter(word for piece in _list_shown(tokens) for word in _WORD.findall(piece))
    return _build(tokens, end) if words <= shown else [text]


def _list_shown(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        yield unquote(str(token.attrs.get("href", "")))
        if token.type == "image":
            yield f"{token.content} {unquote(str(token.attrs.get('src', '')))}"
        elif token.children is not None:
            yield from _list_shown(token.children)
        else:
            yield unescape(f"{token.content} {token.info[:MAX_LABEL]}")


def _build(tokens: list[Token], end: float) -> list[TreeNode]:
    root: list[TreeNode] = []
    open_nodes = [root]
    for token in tokens:
        if token.hidden:
            continue
        if token.nesting == 1:
            children: list[TreeNode] = []
            tag = token.tag if token.tag in _TAGS else "span"
            open_nodes[-1].append([tag, _attributes(token), children])
            open_nodes.append(children)
        elif token.nesting == -1:
            open_nodes.pop()
        else:
            open_nodes[-1].extend(_leaf(token, end))
    return root


def _leaf(token: Token, end: float) -> list[TreeNode]:
    match token.type:
        case "inline":
            return _build(token.children or [], end)
        case "fence" | "code_block":
            language = token.info.split()[0] if token.info.split() else ""
            label = {"language": token.info.strip()[:MAX_LABEL]}
            code: TreeNode = ["code", label, highlight(token.content, language, end)]
            return [["pre", {}, [code]]]
        case "code_inline":
            return [["code", {}, [token.content]]]
        case "image":  # the picture is not fetched: that would tell its host
            return [f"[picture: {token.content} {token.attrs.get('src', '')}]"]
        case "hardbreak" | "hr":
            return [[token.tag, {}, []]]
    return ["\n" if token.type == "softbreak" else token.content]


def _attributes(token: Token) -> dict[str, str]:
    attributes = {}
    if "start" in token.attrs:
        attributes["start"] = str(token.attrs["start"])
    href = str(token.attrs.get("href", ""))
    if urlsplit(href).scheme.lower() in SCHEMES:
        attributes["href"] = href
    elif href:
        attributes["title"] = href
    return attributes


def highlight(text: str, language: str, end: float) -> list[TreeNode]:
    """The code with ``span`` around its tokens; as it is if the language is unknown.

    Also if this is not done at ``end``: some languages' lexers take minutes for blank lines.
    """
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415
    from pygments.token import STANDARD_TYPES  # noqa: PLC0415
    from pygments.util import ClassNotFound  # noqa: PLC0415

    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return [text]
    nodes: list[TreeNode] = []
    for kind, piece in lexer.get_tokens(text):
        if time.thread_time() > end:
            return [text]
        name = STANDARD_TYPES.get(kind, "")
        nodes.append(["span", {"class": name}, [piece]] if name else piece)
    return nodes


ROUTES = [Route("/modeshift/markdown", render_markdown, methods=["POST"])]
