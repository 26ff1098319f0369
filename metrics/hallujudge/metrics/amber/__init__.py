"""AMBER: object words in descriptions of images, and yes/no questions about images."""
