"""What ``make`` runs: dev, doctor, modes, trust, diagram, readme, clean-data, acp.

Imports all the rest; nothing but the Makefile and the tests names its modules.
"""

__all__ = (  # modules; what is not here is the package's own
    "acp",
    "clean_data",
    "cli",
    "dev",
    "diagram",
    "doctor",
    "modes",
    "readme",
    "trust",
)
