"""POPE: yes/no questions about objects."""
