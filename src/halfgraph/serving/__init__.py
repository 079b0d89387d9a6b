"""For people and programs: a standard SPARQL endpoint with predictions, a JSON API and a page."""
