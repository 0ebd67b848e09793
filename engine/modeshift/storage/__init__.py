"""The one way to a database: SQLite in a file, or Postgres.

Imports of this project only the errors.
"""
