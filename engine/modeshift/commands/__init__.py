"""What ``make`` runs: dev, doctor, modes, trust, diagram, clean-data.

Each module's ``main`` gives the lines to print; ``__main__`` has their options. Guarantees that a
command prints all, up to a question that it asks, or only an error.
"""
