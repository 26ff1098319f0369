"""VidHal: choosing and ordering captions of a video."""
