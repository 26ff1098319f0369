"""Videos: reading frames, writing files, and the operators that degrade them.

Needs the extra ``video``. Nothing else of the SDK imports PyAV.
"""
