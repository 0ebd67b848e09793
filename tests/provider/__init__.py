"""The scripted provider: OpenAI Chat Completions and Responses, Anthropic Messages, on loopback.

It stands in for the service, not for its client: the real client library talks HTTP to it.
``script`` says what is answered; ``openai_chat``, ``openai_responses`` and
``anthropic_messages`` how that looks on the wire, and which histories the real service would
refuse; ``server`` serves it.
"""
