"""What every test shares: hypothesis without deadlines, since two cores are shared with others."""

from hypothesis import settings

settings.register_profile("halfgraph", deadline=None, max_examples=50)
settings.load_profile("halfgraph")
