"""Speed and memory of trtdeploy against its peers; see README.md."""
