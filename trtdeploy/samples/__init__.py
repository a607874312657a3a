"""Sample inputs: array files, folders of images, or made up; a stream, one batch at a time."""
