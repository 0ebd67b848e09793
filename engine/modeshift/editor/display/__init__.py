"""What an editor shows: messages, calls with their diffs and output, questions.

Guarantees that nothing of what others have written is hidden, looks like ours, or acts as mark-
up, and that of a question no option but the chosen one counts.
"""
