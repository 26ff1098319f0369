"""Images, videos and their frames: found in folders, bounded in size, and never fetched."""
