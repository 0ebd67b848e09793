"""What the agent can do: the list of its tools, by the tool group that a mode needs."""

TOOLS = (
    ("orders", "tools.orders:order_tools"),
    ("refunds", "tools.orders:refund_tools"),
    (None, "tools.conversation:conversation_tools"),
)
