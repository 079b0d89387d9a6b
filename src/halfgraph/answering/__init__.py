"""The engine that answers SPARQL queries: exact answers, predictions and explanations."""
