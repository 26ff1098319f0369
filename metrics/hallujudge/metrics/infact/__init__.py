"""INFACT: answers under induced conditions."""
