"""Responses as models write them: thoughts, marks of templates, repeated prompts, cut sentences."""
