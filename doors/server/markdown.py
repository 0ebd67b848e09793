"""``render_trees``: Markdown as a tree of a few known elements, for a client to make nodes of.

No HTML goes over the wire: a node is text, or ``[tag, attributes, children]``.
"""

import asyncio
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

Node = str | list[Any]
MAX_TEXTS = 100
MAX_CHARACTERS = 400_000
MAX_DEPTH = 40
"""Of lists and quotes in each other: a browser, too, has a limit."""
SCHEMES = ("http", "https", "mailto")
_TAGS = {"p", "ul", "ol", "li", "blockquote", "em", "strong", "s", "a"}
_TAGS |= {"h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"}


async def render_markdown(request: Request) -> Response:
    """What is too long, and what cannot be parsed, comes back as plain text.

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
    if not _are_texts(texts):
        return JSONResponse({"detail": f"give 'texts': at most {MAX_TEXTS} texts"}, 422)
    return JSONResponse({"trees": await asyncio.to_thread(render_trees, texts)})


def _are_texts(given: Any) -> bool:
    return (
        isinstance(given, list)
        and len(given) <= MAX_TEXTS
        and all(isinstance(one, str) for one in given)
    )


def render_trees(texts: list[str]) -> list[list[Node]]:
    """A tree for each text; blocks."""
    left, trees = MAX_CHARACTERS, list[list[Node]]()
    for text in texts:
        left -= len(text)
        trees.append(_render(text) if left >= 0 else [text])
    return trees


def _render(text: str) -> list[Node]:
    from markdown_it import MarkdownIt  # noqa: PLC0415  # at the first use: the start stays fast

    options = {"html": False, "maxNesting": MAX_DEPTH}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    return _build(parser.parse(text))


def _build(tokens: list[Any]) -> list[Node]:
    """The nodes of a flat list of opening and closing tokens."""
    root: list[Node] = []
    open_nodes = [root]
    for token in tokens:
        if token.hidden:
            continue
        if token.nesting == 1:
            children: list[Node] = []
            open_nodes[-1].append([_name(token), _attributes(token), children])
            open_nodes.append(children)
        elif token.nesting == -1:
            open_nodes.pop()
        else:
            open_nodes[-1].extend(_leaf(token))
    return root


def _leaf(token: Any) -> list[Node]:
    match token.type:
        case "inline":
            return _build(token.children)
        case "fence" | "code_block":
            language = token.info.split()[0] if token.info.split() else ""
            code: Node = ["code", {"language": language[:30]}, highlight(token.content, language)]
            return [["pre", {}, [code]]]
        case "code_inline":
            return [["code", {}, [token.content]]]
        case "image":  # nothing is fetched: it would tell its host
            return [f"[picture: {token.content} {token.attrs.get('src', '')}]"]
        case "hardbreak" | "hr":
            return [["br" if token.type == "hardbreak" else "hr", {}, []]]
    return ["\n" if token.type == "softbreak" else token.content]


def _name(token: Any) -> str:
    return token.tag if token.tag in _TAGS else "span"


def _attributes(token: Any) -> dict[str, str]:
    found = {}
    if "start" in token.attrs:
        found["start"] = str(token.attrs["start"])
    href = str(token.attrs.get("href", ""))
    if urlsplit(href).scheme.lower() in SCHEMES:
        found["href"] = href
    elif href:
        found["title"] = href
    return found


def highlight(text: str, language: str) -> list[Node]:
    """The code with ``span`` around what the language names; as it is in one that is unknown."""
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415
    from pygments.token import STANDARD_TYPES  # noqa: PLC0415
    from pygments.util import ClassNotFound  # noqa: PLC0415

    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return [text]
    nodes: list[Node] = []
    for kind, piece in lexer.get_tokens(text):
        name = STANDARD_TYPES.get(kind, "")
        nodes.append(["span", {"class": name}, [piece]] if name else piece)
    return nodes


ROUTES = [Route("/modeshift/markdown", render_markdown, methods=["POST"])]
