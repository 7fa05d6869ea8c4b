"""Showing: the explorer's page and what it asks. Python computes, the browser draws."""
