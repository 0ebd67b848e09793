"""The scripted provider: OpenAI Chat Completions and Responses, Anthropic Messages, on loopback.

It stands in for the service, not for its client: the real client library talks HTTP to it.
``script`` says what is answered, and ``server`` serves it. ``openai_chat``, ``openai_responses``
and ``anthropic_messages`` say how that looks on the wire; ``chat_input``, ``responses_input`` and
``anthropic_input`` which requests the real service would refuse, with ``tool_changes`` and
``allowed_tools`` for tools that come and go, ``binding`` and ``reasoning`` for what is bound to
the history before it. ``prompt_cache`` counts what a request costs.
"""
