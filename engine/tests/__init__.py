"""Tests go through public entry points; the models stand in for a language model only."""
