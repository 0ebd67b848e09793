"""What Kilo Code and Roo Code call their tools: models know these names, and prompts use them."""

from collections.abc import Container

MCP_TOOL = "mcp__SERVER__TOOL"

KILO_NAMES: dict[str, str | None] = {
    "access_mcp_resource": None,
    "apply_diff": "edit_file",
    "apply_patch": "edit_file",
    "browser_action": None,
    "codebase_search": "search_files",
    "condense": None,
    "edit": "edit_file",
    "fast_edit_file": "edit_file",
    "fetch_instructions": None,
    "generate_image": None,
    "insert_content": "edit_file",
    "list_code_definition_names": "search_files",
    "new_rule": "write_file",
    "read_command_output": "read_output",
    "report_bug": None,
    "run_slash_command": None,
    "search_and_replace": "edit_file",
    "search_replace": "edit_file",
    "simple_read_file": "read_file",
    "use_mcp_tool": MCP_TOOL,
    "write_to_file": "write_file",
}
"""The tool that does it here, by their name for it; None where none does."""


def describe_missing(name: str, tools: Container[str]) -> str:
    """What the model is told of a name that is none of ``tools``."""
    ours = KILO_NAMES.get(name)
    if ours is not None and (ours in tools or ours == MCP_TOOL):
        return f"there is no tool {name!r}; here it is {ours}, with arguments of its own"
    if name in KILO_NAMES:
        return f"there is no tool {name!r}, and no other that does it; go on without it"
    return f"there is no tool {name!r}; use only the tools you are given"
