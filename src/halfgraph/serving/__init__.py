"""The HTTP server: SPARQL endpoints, a JSON API and a web page."""
