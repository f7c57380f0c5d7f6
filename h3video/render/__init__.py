"""From a job to a video file."""
