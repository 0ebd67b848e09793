"""An MCP server as people write them, with the official SDK: over stdio, or HTTP with a port."""

import os
import sys
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp.types import ToolAnnotations

READ_ONLY = ToolAnnotations(read_only_hint=True)
app: MCPServer[Any] = MCPServer("toy")
PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15"
    b"\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00"
    b"\x00\x00IEND\xaeB`\x82"
)


@app.tool(annotations=READ_ONLY)
def get_time(zone: str = "UTC") -> str:
    """The time in a zone."""
    return f"noon in {zone}, says process {os.getpid()}"


@app.tool()
def set_time(zone: str) -> str:
    """Set the zone."""
    Path("zone.txt").write_text(zone)
    return f"set to {zone}"


@app.tool(annotations=READ_ONLY)
def get_picture() -> list[str | Image]:
    """A picture, and words about it."""
    return ["A dot:", Image(data=PNG, format="png")]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        app.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        app.run()
