"""The messages of a thread's history, whoever wrote them: models, clients, tools.

Guarantees that any provider takes the history that it is sent: each call has one result in its
place, ids are unique, text is whole.
"""
