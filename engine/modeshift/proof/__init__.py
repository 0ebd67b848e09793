"""The proof: explores what the state machine can do, on the real chart and the real verdicts."""
