"""Tests with the clients that people use, each against a server process."""
